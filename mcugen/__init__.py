"""mcugen: trained models to verified, quantized C for microcontrollers.

The verbs of the command line are functions here: ``load``, ``export``, ``run``, ``verify``, ``profile``, ``compare``,
``inspect``, ``check_ld``, ``check_elf``. ``features`` is a module: what a device computes from windows of samples, in
Python. ``Filter`` is a filter on its own, to be exported.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mcugen.version import VERSION as __version__

_VERBS = (
    "ExportOptions",
    "ExportResult",
    "check_elf",
    "check_ld",
    "compare",
    "export",
    "inspect",
    "load",
    "profile",
    "run",
    "verify",
)

if TYPE_CHECKING:
    from mcugen.build import (
        ExportOptions,
        ExportResult,
        check_elf,
        check_ld,
        compare,
        export,
        inspect,
        load,
        profile,
        run,
        verify,
    )
    from mcugen.pipelines import Filter

__all__ = [
    "ExportOptions",
    "ExportResult",
    "Filter",
    "__version__",
    "check_elf",
    "check_ld",
    "compare",
    "export",
    "inspect",
    "load",
    "profile",
    "run",
    "verify",
]


def __getattr__(name: str) -> Any:
    """The verbs are loaded when first used: ``import mcugen`` itself is light."""
    if name in _VERBS:
        from mcugen import build  # noqa: PLC0415

        return getattr(build, name)
    if name == "Filter":
        return import_module("mcugen.pipelines").Filter
    if name == "features":
        return import_module("mcugen.features")  # "from mcugen import features" would come back here
    raise AttributeError(f"module 'mcugen' has no attribute '{name}'")


class _PackageAndVerb(ModuleType):
    """A package that has the name of a verb, and is the verb when called."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from mcugen import build  # noqa: PLC0415

        return getattr(build, self.__name__.rpartition(".")[2])(*args, **options)


class _Mcugen(ModuleType):
    """An import of ``mcugen.verify.…`` puts that package where users expect the verb: make it both."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _VERBS and isinstance(value, ModuleType):
            value.__class__ = _PackageAndVerb
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Mcugen
