"""A table of formulas, and one that is none."""

from pathlib import Path

TABLE = Path(__file__).with_name("formulas.toml")
STRANGE = Path(__file__)
