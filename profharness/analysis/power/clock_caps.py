"""What held a device's clock down: the modifier of a verdict (docs/metrics.md#clock-caps), never a
limiter of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from profharness.analysis.records import Figure
from profharness.units import format_share

THROTTLED = 0.1  # of the time, from which it is worth a word
LOWERED = 0.9  # of the peak clock, below which a busy device's clock is
BUSY = 0.9  # of the time: idle devices lower their clock by themselves
_CAUSES = (
    ("throttle_power", "its power limit"),
    ("throttle_thermal", "its temperature"),
    ("throttle_external", "a signal from outside"),
)


def clock_caps(figures: Mapping[str, Figure], busy: float = 0.0) -> Iterator[str]:
    """One clause per cause, from throttle residency; without any, the clock itself where the device
    was `busy` (a share) nearly always.

    The clock's share of its peak is `mfu` over `mfu_at_clock`, which divide by the peak at either
    clock.
    """
    shares = {
        words: share for name, words in _CAUSES if (share := _value(figures, name)) is not None
    }
    yield from (
        f"{words} held the clock down {format_share(share)} of the time"
        for words, share in shares.items()
        if share >= THROTTLED
    )
    whole, at_clock = _value(figures, "mfu"), _value(figures, "mfu_at_clock")
    if not shares and busy >= BUSY and whole and at_clock and whole < LOWERED * at_clock:
        yield (
            f"the clock was at {format_share(whole / at_clock)} of its peak, "
            "for a reason that the driver does not tell"
        )


def _value(figures: Mapping[str, Figure], name: str) -> float | None:
    figure = figures.get(name)
    return None if figure is None or figure.value is None else float(figure.value)
