"""Do replays of device graphs show all their kernels?

Tracers have dropped kernels of graph launches (ROCm 7.2.0 recorded 448 of 512), so that a busy
device looks idle. Without the graph's definition in the trace there are two witnesses: a launch
that shows no kernel at all, and a launch that shows fewer kernels than its counterpart in the other
steps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels import patterns
from profharness.analysis.time.device_work import Work
from profharness.analysis.time.steps import Step, steps
from profharness.analysis.verdict.host_files import of_host_files
from profharness.findings import Finding, finding
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]
_NEEDED_STEPS = 3


def graph_kernels_missing(trace: Trace, work: Work) -> list[Finding]:
    """Graph launches with no kernels, or with fewer than at the same place of the other steps.

    The last launch of a trace is left out: its kernels may have run beyond the end of the file.
    """
    api = trace.api
    launches = np.flatnonzero(
        patterns.matching(trace.strings, api, patterns.GRAPH_LAUNCH)
        & ~of_host_files(trace)[api.source]
    )
    launches = launches[np.argsort(api.start_ns[launches], kind="stable")]
    counted = np.bincount(
        work.call[: work.kernels][work.call[: work.kernels] != NULL], minlength=len(api)
    )[launches]
    launches, counted = _outermost(trace, launches, counted)
    judged = np.ones(len(launches), np.bool_)
    judged[-1:] = len(launches) == 1 and not work.kernels
    empty = int((counted[judged] == 0).sum())
    short, lost = _short_replays(trace, api.start_ns[launches], counted, judged)
    if not empty and not short:
        return []
    parts = [f"{empty} of {len(launches)} graph launches show no kernel"] if empty else []
    parts += (
        [f"{short} replays show {lost} kernels less than their counterparts in other steps"]
        if short
        else []
    )
    return [
        finding(
            "graph-kernels-missing",
            "; ".join(parts),
            graph_launches=len(launches),
            without_kernels=empty,
            short_replays=short,
            lost_kernels=lost,
        )
    ]


def _outermost(trace: Trace, launches: I64, counted: I64) -> tuple[I64, I64]:
    """The launches without driver calls inside a runtime call: those begin before an earlier launch
    of the thread has returned.
    """
    api = trace.api
    order = np.lexsort(
        (api.start_ns[launches], api.tid[launches], api.pid[launches], api.source[launches])
    )
    rows = launches[order]
    end = api.start_ns[rows] + api.dur_ns[rows]
    same = (
        (api.tid[rows[1:]] == api.tid[rows[:-1]])
        & (api.pid[rows[1:]] == api.pid[rows[:-1]])
        & (api.source[rows[1:]] == api.source[rows[:-1]])
    )
    nested = np.zeros(len(rows), np.bool_)
    nested[1:] = same & (api.start_ns[rows[1:]] < end[:-1])
    keep = np.ones(len(rows), np.bool_)
    keep[order] = ~nested | (counted[order] > 0)
    return launches[keep], counted[keep]


def _short_replays(
    trace: Trace, start: I64, counted: I64, judged: npt.NDArray[np.bool_]
) -> tuple[int, int]:
    """Judged launches with fewer kernels than the median at their place within a step, and how many
    kernels those lack.

    Judged per process, where at least three steps hold equally many graph launches. Launches with
    no kernel at all are not counted again.
    """
    by_process: dict[int, list[Step]] = {}
    for step in steps(trace):
        by_process.setdefault(step.process, []).append(step)
    short = lost = 0
    for of_process in by_process.values():
        first = np.searchsorted(start, [step.start_ns for step in of_process])
        sizes = np.searchsorted(start, [step.end_ns for step in of_process]) - first
        if len(of_process) < _NEEDED_STEPS or sizes[0] <= 0 or np.any(sizes != sizes[0]):
            continue
        places = first[:, np.newaxis] + np.arange(sizes[0])
        table = counted[places]
        usual = np.median(table, axis=0)
        behind = (table < usual) & (table > 0) & judged[places]
        short += int(behind.sum())
        lost += int((usual - table)[behind].sum())
    return short, lost
