"""Garbage collections of this process, as CPython tells them (`gc.callbacks`).

The callback runs inside of the collector, which may start at any place of any thread, our own code
included: it takes no lock, starts no collection, and calls nothing but functions of C.
"""

from __future__ import annotations

import _thread
import gc
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


LISTED_NS = 100_000  # shorter collections are added up
MOST = 100_000  # collections that are listed one by one, in the whole run
SUM_NS = 10**9


class Collections:
    """What was collected since the last `take`: `listed` are start, duration, generation, objects
    found and thread; `short` the sums of shorter ones over a second: from, until, number, duration
    and thread. `left_out` counts those that would have been listed beyond the bound.
    """

    def __init__(self) -> None:
        self.listed: list[tuple[int, int, int, int, int]] = []
        self.short: list[tuple[int, int, int, int, int]] = []
        self.left_out = 0
        self._sum = [0, 0, 0, 0, 0]
        self._callback = self._made()

    def begin(self) -> None:
        """Listen from now on. A second call does nothing."""
        if self._callback not in gc.callbacks:
            gc.callbacks.append(self._callback)

    def end(self) -> None:
        """Listen no more; what was collected stays to be taken."""
        if self._callback in gc.callbacks:
            gc.callbacks.remove(self._callback)

    def take(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], int]:
        """`listed`, `short` and `left_out` since the last call. Collections that come meanwhile are
        kept for the next one.
        """
        listed, short = _taken(self.listed), _taken(self.short)
        if self._sum[2]:
            whole, self._sum[:] = tuple(self._sum), (0, 0, 0, 0, 0)
            short.append(whole)
        left_out, self.left_out = self.left_out, 0
        return listed, short, left_out

    def _made(self) -> Callable[[str, dict[str, Any]], None]:
        clock, boottime = time.clock_gettime_ns, time.CLOCK_BOOTTIME
        thread = _thread.get_native_id
        listed, short, sums, room = self.listed, self.short, self._sum, [MOST]
        began = [0]

        def collected(phase: str, facts: dict[str, Any]) -> None:
            if phase == "start":
                began[0] = clock(boottime)
                return
            start = began[0]
            lasted = clock(boottime) - start
            if not start or lasted < 0:
                return
            began[0] = 0
            if lasted >= LISTED_NS and room[0]:
                room[0] -= 1
                listed.append((start, lasted, facts["generation"], facts["collected"], thread()))
                return
            if lasted >= LISTED_NS:
                self.left_out += 1
            if sums[2] and start - sums[0] >= SUM_NS:
                short.append((sums[0], sums[1], sums[2], sums[3], sums[4]))
                sums[2] = 0
            if not sums[2]:
                sums[:] = (start, start, 0, 0, thread())
            sums[1], sums[2], sums[3] = start + lasted, sums[2] + 1, sums[3] + lasted

        _hidden_from_compilers(collected)
        return collected


def _taken(entries: list[Any]) -> list[Any]:
    count = len(entries)
    part = entries[:count]
    del entries[:count]
    return part


def _hidden_from_compilers(function: Callable[..., object]) -> None:
    """The collector may run it inside of a region that torch.compile traces."""
    torch = sys.modules.get("torch")
    try:
        torch._C._dynamo.eval_frame.skip_code(function.__code__)  # type: ignore[union-attr]
    except AttributeError:  # an older torch, or none
        pass
