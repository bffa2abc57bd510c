"""When a level has settled, and when it has gone wrong: judged from counts that are looked at now
and then.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence

from profharness_workloads.loadgen.board import Totals
from profharness_workloads.shared.timing import AGREEING, agree

BLOCKS_OF_WARM_UP = 8  # the shortest warm-up is judged from so many blocks
SHORTEST_BLOCK_NS = 50_000_000
FEWEST_PER_BLOCK = 4
SLOPE = 0.1  # of the last two blocks against the two first of those that must agree
STORM_NS, STORM_FAILURES, STORM_SHARE = 1_000_000_000, 20, 0.5
SILENT_NS, SILENT_FAILURES = 3_000_000_000, 3


class Settling:
    """Blocks of throughput and latency since the start; `settled` when the last of both belong to
    one level.

    A block lasts an eighth of the asked warm-up at least, and until some requests have ended in it.
    """

    def __init__(self, start_ns: int, warmup_ns: int, in_flight: int):
        self._block_ns = max(SHORTEST_BLOCK_NS, warmup_ns // BLOCKS_OF_WARM_UP)
        self._fewest = max(FEWEST_PER_BLOCK, min(2 * in_flight, 64))
        self._since, self._done, self._latency = start_ns, 0, 0
        self._gaps: List[int] = []
        self._latencies: List[int] = []

    def look(self, now_ns: int, totals: Totals) -> None:
        """Close the block when it is long enough."""
        done = totals.done - self._done
        if now_ns - self._since < self._block_ns or done < self._fewest:
            return
        self._gaps.append((now_ns - self._since) // done)
        self._latencies.append((totals.latency_ns - self._latency) // done)
        self._since, self._done, self._latency = now_ns, totals.done, totals.latency_ns

    @property
    def settled(self) -> bool:
        return all(agree(blocks) and level(blocks) for blocks in (self._gaps, self._latencies))


def level(blocks: Sequence[int]) -> bool:
    """Whether the last blocks have no slope: a steady rise looks like noise to a test for changes
    of level.
    """
    last = blocks[-AGREEING:]
    return abs((last[-1] + last[-2]) / (last[0] + last[1]) - 1) <= SLOPE


class _Look(NamedTuple):
    at_ns: int
    done: int
    failed: int


class Storm:
    """Whether most requests of the last second failed, or all of the last three.

    Clients pause longer and longer after failures, so a few of them fail rarely.
    """

    def __init__(self, start_ns: int, already: Optional[Totals] = None):
        first = (
            _Look(start_ns, already.done, already.failed)
            if already is not None
            else _Look(start_ns, 0, 0)
        )
        self._looks = [first]
        self._answer = first

    def look(self, now_ns: int, totals: Totals) -> bool:
        """True when the level should end."""
        if totals.done > self._answer.done:
            self._answer = _Look(now_ns, totals.done, totals.failed)
        elif (
            now_ns - self._answer.at_ns >= SILENT_NS
            and totals.failed - self._answer.failed >= SILENT_FAILURES
        ):
            return True
        self._looks.append(_Look(now_ns, totals.done, totals.failed))
        while len(self._looks) > 2 and self._looks[1].at_ns <= now_ns - STORM_NS:
            del self._looks[0]
        first = self._looks[0]
        failed, done = totals.failed - first.failed, totals.done - first.done
        long_enough = now_ns - first.at_ns >= STORM_NS
        return long_enough and failed >= STORM_FAILURES and failed > STORM_SHARE * (failed + done)
