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
    STACKS = "stacks"
    """Python's functions and modules too, as marks of the kind `frame`."""
    SHOWN = "shown"
    """The same for a trace that is drawn beside figures which need none of them."""

    @property
    def host(self) -> bool:
        """Whether what the host did is needed."""
        return self in (Wanted.ALL, Wanted.LAUNCHED, Wanted.STACKS, Wanted.SHOWN)

    @property
    def frames(self) -> bool:
        """Whether Python's functions and modules are needed."""
        return self in (Wanted.STACKS, Wanted.SHOWN)
