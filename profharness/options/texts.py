"""Texts that stand for lists and tables: `4..2048`, `torch,onnxruntime`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profharness.errors import UsageError
from profharness.options.declared import TextForm
from profharness.units import parse_counts


def _counts(value: object, named: str) -> object:
    return parse_counts(value, named) if isinstance(value, str) else value


def _names(value: object, _named: str) -> object:
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _rates(value: object, named: str) -> object:
    return parse_rates(value, named) if isinstance(value, str) else value


def _whole_number(value: object, _named: str) -> object:
    return int(value) if isinstance(value, str) and value.isdigit() else value


_RANGE = r"\s*\d+(\.\.\d+(:\d+)?)?\s*"
_RATE = r"\s*(\d+(\.\d+)?|\.\d+)\s*"

COUNTS = TextForm(_counts, f"^{_RANGE}(,{_RANGE})*$")
"""`1,4,16`, `4..2048` (doubling) or `120..132:4` (in steps of 4)."""

RATES = TextForm(_rates, f"^{_RATE}(,{_RATE})*$")
NAMES = TextForm(_names)
NUMBER = TextForm(_whole_number, r"^\d+$")


def joined_by_commas(words: Sequence[str]) -> str:
    """What was given by repeating an option, as one text."""
    return ",".join(words)


def parse_rates(text: str, option: str) -> tuple[float, ...]:
    """`10,20.5` as positive numbers. Raises UsageError naming `option`."""
    rates = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\d+(\.\d+)?|\.\d+", rate) and float(rate) > 0 for rate in rates):
        raise UsageError(
            f"{option}: {text!r} is not a list of positive rates",
            "write requests per second, such as 10,20,40",
        )
    return tuple(float(rate) for rate in rates)
