"""How much of a file is needed: readers may leave out the rest, to save time."""

from __future__ import annotations

from enum import Enum


class Wanted(Enum):
    """What must be in the trace; each level holds the one before it."""

    TIMES = "times"
    """What ran on which device, and when."""
    DEVICES = "devices"
    """All that is known of what ran on devices: queue, geometry, the id of the call."""
    ALL = "all"
    """What the host did too: calls, operators, ranges, and which of them launched what."""
    LAUNCHED = "launched"
    """Also the names of kernels that calls launch, where calls say them."""

    @property
    def host(self) -> bool:
        """Whether what the host did is needed."""
        return self in (Wanted.ALL, Wanted.LAUNCHED)
