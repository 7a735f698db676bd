"""ONNX files: bytes to a plain graph (scanner), a graph to a Model of net source ops (parser), a table of ops."""

from mcugen.frontends.onnx.parser import load_onnx

__all__ = ["load_onnx"]
