"""What holds a window back, and whether the trace is complete enough to say so: each check of
a trace is a function of (trace, work).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from profharness import families
from profharness.analysis.time.device_work import Work
from profharness.findings import GROUP, NEEDS, Finding
from profharness.trace.model import Trace

CHECKS = (
    "profharness.analysis.verdict.impossible:impossible_records",
    "profharness.analysis.verdict.integrity:empty_trace",
    "profharness.analysis.verdict.integrity:kernels_missing",
    "profharness.analysis.verdict.graph_integrity:graph_kernels_missing",
    "profharness.analysis.verdict.integrity:steps_without_device_events",
    "profharness.analysis.verdict.doubted_times:times_missing",
    "profharness.analysis.verdict.doubted_times:overlong_kernels",
    "profharness.analysis.verdict.integrity:launches_missing",
    "profharness.analysis.verdict.integrity:streams_exceed_queues",
    "profharness.analysis.verdict.gpu_times:faulty_times",
    "profharness.analysis.verdict.steps_by_launch:work_of_others",
    "profharness.analysis.verdict.steps_by_launch:host_ahead",
    "profharness.analysis.verdict.providers:nodes_on_cpu",
)
"""The graver ones first."""


class _Check(Protocol):
    def __call__(self, trace: Trace, work: Work) -> Sequence[Finding]: ...


class _Foreign(Protocol):
    def check(self, trace: Trace, work: Work) -> Sequence[Finding]: ...


def check(trace: Trace, work: Work) -> list[Finding]:
    """What all checks of a trace find: ours first, then those of other packages."""
    own_checks = [cast("_Check", families.load(name)) for name in CHECKS]
    foreign_checks = [
        cast("_Foreign", member).check for _, member in families.foreign(GROUP, NEEDS)
    ]
    return [
        finding
        for run_check in (*own_checks, *foreign_checks)
        for finding in run_check(trace, work)
    ]


def foreign_names() -> tuple[str, ...]:
    """The entry points' names of those that other packages add."""
    return tuple(name for name, _ in families.foreign(GROUP, NEEDS))
