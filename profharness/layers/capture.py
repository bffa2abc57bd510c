"""`--capture` as the tracers need it: a period of time, or everything. Pure; the hooks follow steps by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from profharness.errors import UsageError
from profharness.units import parse_duration_ns


@dataclass(frozen=True)
class Period:
    """Record from `after_ns` on, for `for_ns` (None: to the end), counted from the start of the process."""

    after_ns: int
    for_ns: int | None


def period(capture: str) -> Period | None:
    """The period of `after=30s,for=10s`; None for captures that no clock bounds (default, all, steps=A:B).

    Raises UsageError for a text of another form.
    """
    if capture in ("default", "all") or capture.startswith("steps="):
        return None
    parts = dict(part.partition("=")[::2] for part in capture.split(","))
    if not parts or set(parts) - {"after", "for"}:
        raise UsageError(f"--capture: {capture!r} is not a capture window", "use all, steps=10:30, or after=30s,for=10s")
    return Period(parse_duration_ns(parts.get("after", "0s"), "--capture"),
                  parse_duration_ns(parts["for"], "--capture") if "for" in parts else None)
