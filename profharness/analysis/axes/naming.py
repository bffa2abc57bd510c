"""What a setting of a scan over axes is called in every sentence and table."""

from __future__ import annotations

from collections.abc import Mapping


def setting_text(parameters: Mapping[str, int | float | str]) -> str:
    """`batch 16, workers 2`; a variable without its `env:`."""
    return ", ".join(
        f"{name.removeprefix('env:')} {value_text(value)}" for name, value in parameters.items()
    )


def value_text(value: float | str) -> str:
    """A value of an axis without spaces between thousands: people copy it."""
    if isinstance(value, str):
        return value
    short = f"{value:g}"
    return short if float(short) == value else str(value)
