"""`--capture` checked before anything starts, and as the tracers need it: a period of time, or
everything. Pure.

The hooks follow the same grammar by themselves (wrappers/hooks/profharness_hooks/capture.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from profharness.errors import UsageError
from profharness.units import parse_duration_ns

_STEPS = re.compile(r"steps=(\d+):(\d+)")
_NUMBERS = re.compile(r"\d+:\d+")
_TIME = re.compile(r"\d+(\.\d{1,9})?(ns|us|ms|s|min)?")
_FORMS = "use all, steps=10:30 (or 10:30), or after=30s,for=10s"


def in_full(capture: str) -> str:
    """`10:30`, as people type it, as `steps=10:30`; any other text as it is."""
    return f"steps={capture}" if _NUMBERS.fullmatch(capture) else capture


@dataclass(frozen=True)
class Period:
    """Record from `after_ns` on, for `for_ns` (None: to the end), counted from the start of the
    process.
    """

    after_ns: int
    for_ns: int | None


def period(capture: str) -> Period | None:
    """The period of `after=30s,for=10s`; None for captures that no clock bounds (default, all,
    steps=A:B).

    Raises UsageError for a text of another form, and for a window that can hold nothing.
    """
    if capture in ("default", "all"):
        return None
    if steps := _STEPS.fullmatch(capture):
        if int(steps[2]) <= int(steps[1]):
            raise UsageError(
                f"--capture: {capture} holds no step",
                "the second number is not included: steps=10:30 records steps 10 to 29",
            )
        return None
    pairs = [part.partition("=") for part in capture.split(",")]
    parts = {name: value for name, _, value in pairs}
    if (
        set(parts) - {"after", "for"}
        or len(parts) != len(pairs)
        or not all(_TIME.fullmatch(value) for value in parts.values())
    ):
        raise UsageError(f"--capture: {capture!r} is not a capture window", _FORMS)
    lasts = parse_duration_ns(parts["for"], "--capture") if "for" in parts else None
    if lasts == 0:
        raise UsageError(f"--capture: {capture} lasts no time", _FORMS)
    return Period(parse_duration_ns(parts.get("after", "0s"), "--capture"), lasts)
