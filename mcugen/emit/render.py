"""The one place that fills templates. Templates hold the skeleton of a file; arrays and calls come as finished text."""

from __future__ import annotations

import jinja2

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("mcugen.emit", "templates"),
    undefined=jinja2.StrictUndefined,
    autoescape=False,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, **values: object) -> str:
    """The text of ``template``; an unknown or missing value is an error of mcugen."""
    return _ENVIRONMENT.get_template(template).render(**values)
