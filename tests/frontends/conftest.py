"""Tests of the LightGBM front end use the text writer and the oracle of tests/cases."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "cases"))
