"""How tables are written that other programs open."""

from __future__ import annotations

from typing import Annotated

from profharness.options.declared import Option

RawCsv = Annotated[
    bool,
    Option("In CSV, leave names as they are that a spreadsheet would take for formulas."),
]
