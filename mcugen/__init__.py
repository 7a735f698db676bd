"""mcugen: trained models to verified, quantized C for microcontrollers.

The verbs of the command line are functions here: ``load``, ``export``, ``run``, ``verify``, ``compare``, ``inspect``.
"""

from typing import TYPE_CHECKING, Any

from mcugen.version import VERSION as __version__

_VERBS = ("ExportOptions", "ExportResult", "compare", "export", "inspect", "load", "run", "verify")

if TYPE_CHECKING:
    from mcugen.build import ExportOptions, ExportResult, compare, export, inspect, load, run, verify

__all__ = ["ExportOptions", "ExportResult", "__version__", "compare", "export", "inspect", "load", "run", "verify"]


def __getattr__(name: str) -> Any:
    """The verbs are loaded when first used: ``import mcugen`` itself is light."""
    if name in _VERBS:
        from mcugen import build  # noqa: PLC0415

        return getattr(build, name)
    raise AttributeError(f"module 'mcugen' has no attribute '{name}'")
