"""ONNX files: bytes to a plain graph (scanner), a graph to a Model of net source ops (parser), a table of ops.

Graphs with tree ensembles of ai.onnx.ml become Models of tree source ops instead (ml_graph and its like).
"""

from mcugen.frontends.onnx.external import embedded
from mcugen.frontends.onnx.parser import load_onnx

__all__ = ["embedded", "load_onnx"]
