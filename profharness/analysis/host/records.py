"""What the host did in a window, as the reports print it."""

from __future__ import annotations

from typing import Literal

import msgspec


class HostPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the time, by what the host was in.

    `cause` is the cause of idle time that it is a part of (empty where the host's own time is
    split), `kind` the key of a `Kind` (empty where the host did not hold the device up), `name`
    that of the operator, call, range, file and line (empty for `others`, a number of smaller parts
    of the kind taken together). `share` is of the window. `computed` counts the stretches in which
    the host was in an operator itself to which no work of a device belongs; None for all others,
    and where no such work belongs to any operator.
    Where the part rests on samples of Python's lines, `samples` is their number, `low` and `high`
    are the 95 % interval of its share, and `running` is the share of the part in which the thread
    ran on a core: it waited in the rest.
    """

    cause: str = ""
    kind: str = ""
    name: str = ""
    ns: int
    share: float
    others: int = 0
    computed: int | None = None
    samples: int | None = None
    low: float | None = None
    high: float | None = None
    running: float | None = None


class AfterWait(msgspec.Struct, frozen=True, kw_only=True):
    """Idle time in gaps of the devices that a host's waiting call of this `name` opened: the device
    had run dry, the call returned inside of the gap, and what was launched next ended it. `share`
    is of the window.
    """

    name: str
    gaps: int
    ns: int
    share: float


class HostTime(msgspec.Struct, frozen=True, kw_only=True):
    """What the host was in: while the devices were idle (`of` is "idle"), or over the whole window
    where no device works ("window"), each process by the thread that runs its steps.

    `parts` sum to `total_ns` exactly, the largest first; `after_waits` is the same idle time looked
    at from its beginning, for gaps that a synchronisation opened. `window_ns` is the window, summed
    over devices or processes; with `of` "window" it is `total_ns`. `steps` counts the steps in it.
    """

    of: Literal["idle", "window"]
    window_ns: int
    total_ns: int
    steps: int = 0
    processes: int = 1
    parts: tuple[HostPart, ...]
    after_waits: tuple[AfterWait, ...] = ()

    def kind_ns(self, *keys: str) -> int:
        """Time of all parts of these kinds, in ns."""
        return sum(part.ns for part in self.parts if part.kind in keys)
