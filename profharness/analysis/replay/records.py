"""What `profharness replay` says, as records (docs/json.md#other-documents). Times are ns of one
call.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from profharness.analysis.kernels.counter_records import CounterRow
from profharness.stats.estimate import Estimate
from profharness.trace.calls.plan import ThreadsBy

Reading = Literal["own", "cold-caches", "surroundings", "doubtful"]


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """The in-trace time in four parts, in ns: the operator's own, what the profiler costs, what
    cold caches explain at most, and the rest of what surrounded it.
    """

    own_ns: float
    profiler_ns: float
    cold_ns: float
    rest_ns: float


class ReplayRow(msgspec.Struct, frozen=True, kw_only=True):
    """One call in the trace and alone. `share` is that of its self time among all operators.

    `alone` is warm, `profiled` the same under torch's profiler, `cold` with its arguments out of
    the caches. `ratio` is in-trace time over profiled time. `chosen` names what no trace records.
    `waited` is the share of the time alone in which other programs had the cores: it is taken off
    the times alone. `counters` are hardware counters of the call's kernels, where they were asked
    for.
    """

    name: str
    overload: str
    shapes: str
    dtypes: str
    calls: int
    share: float
    self_ns: int
    in_trace: Estimate
    in_trace_median: float
    alone: Estimate
    alone_median: float
    profiled: Estimate
    cold: Estimate
    ratio: Estimate
    split: Split
    reading: Reading
    chosen: tuple[str, ...] = ()
    steady: bool = True
    waited: float = 0.0
    counters: tuple[CounterRow, ...] = ()


class NotReplayed(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was not run, and why."""

    name: str
    shapes: str
    dtypes: str
    calls: int
    share: float
    reason: str


class Replays(msgspec.Struct, frozen=True, kw_only=True):
    """All that was replayed. `sum` is the split of `in_trace_ns`, the time of all rows but the
    doubtful ones, each call counted once; `total_ns` the self time of all operators of the trace.
    `threads_by` says what the number of `threads` follows.
    """

    schema: int = 1
    source: str
    pass_name: str | None = msgspec.field(default=None, name="pass")
    device: str = ""
    device_name: str = ""
    torch: str = ""
    threads: int = 0
    threads_by: ThreadsBy = ""
    seed: int = 0
    on_device: bool = False
    total_ns: int = 0
    in_trace_ns: int = 0
    sum: Split = Split(own_ns=0.0, profiler_ns=0.0, cold_ns=0.0, rest_ns=0.0)
    rows: tuple[ReplayRow, ...] = ()
    not_replayed: tuple[NotReplayed, ...] = ()
