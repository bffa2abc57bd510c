"""The words of a certificate that its page and its text share."""

from __future__ import annotations

from profharness.analysis.certificate.records import Group, Judged
from profharness.units import format_number, format_share

GROUPS: dict[Group, tuple[str, str]] = {
    "trust": (
        "Can the figures be trusted?",
        "If one of these is not met, nothing is certified.",
    ),
    "saturation": (
        "Is the device saturated?",
        "All of these that apply have to be met.",
    ),
    "conditions": (
        "Under which conditions?",
        "If one of these is not met, nothing is certified; one that could not be judged is named.",
    ),
}
_AT_MOST = frozenset({"clocks"})


def value_text(one: Judged) -> str:
    """The value with its interval, or the interval alone; empty where there is none."""
    if one.value is None:
        return interval_text(one)
    text, interval = _quantity(one.value, one.unit), interval_text(one)
    return f"{text} ({interval})" if interval else text


def interval_text(one: Judged) -> str:
    """The 95 % interval, `up to` or `from` where it has one end; empty where there is none."""
    low, high = (None if end is None else _quantity(end, one.unit) for end in (one.low, one.high))
    if low is None:
        return "" if high is None else f"up to {high}"
    return f"from {low}" if high is None else f"{low} to {high}"


def limit_text(one: Judged) -> str:
    """`at least 90.0 %`, `none allowed`; empty for a criterion without a number."""
    if one.threshold is None:
        return ""
    if one.threshold == 0:
        return "none allowed"
    words = "at most" if one.id in _AT_MOST else "at least"
    return f"{words} {_quantity(one.threshold, one.unit)}"


def _quantity(value: float, unit: str) -> str:
    if unit == "share":
        return format_share(value)
    number = format_number(value, 0 if value == round(value) else 2)
    return f"{number} {unit}".rstrip()
