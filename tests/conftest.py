"""Options and markers of all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A gate gives the same answer twice: in CI hypothesis draws the same examples. Elsewhere every run searches on.
settings.register_profile("repeatable", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite tests/goldens/ with what mcugen generates now")


@pytest.fixture(autouse=True)
def _subnormals_live() -> Iterator[None]:
    """A library built with -ffast-math that a test loads would make this whole process flush subnormals to zero, and
    tests far away fail. It is caught where it happens: link such a library with -nostartfiles."""
    yield
    assert sys.float_info.min / 2 > 0.0, "this test made the process flush subnormals to zero"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests run where ``-m`` asks for them, or where they are named on the command line."""
    if config.getoption("-m") or any("::" in str(a) for a in config.args):
        return
    skip = pytest.mark.skip(reason="slow: run with -m slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)
