"""What the records of a window can carry: whether a verdict may be made of them at all, and which
of its kernels do work that nobody knows (docs/metrics.md#verdict).
"""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels import patterns
from profharness.analysis.kernels.categories import kernel_category
from profharness.analysis.kernels.roofline import UNDETERMINED
from profharness.analysis.measurement import Measurement
from profharness.analysis.time.timeline import is_communication
from profharness.analysis.verdict.host_files import of_host_files
from profharness.analysis.verdict.integrity import recorded_calls
from profharness.analysis.verdict.records import CategoryTime, Grounds, KernelParts, ordered
from profharness.analysis.verdict.start_up import needs_of
from profharness.findings import ways
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.call_names import is_call
from profharness.trace.columns.keys import coded
from profharness.trace.columns.table import NULL
from profharness.trace.graphs.captures import captured_calls
from profharness.trace.model import Trace

Mask = npt.NDArray[np.bool_]
_MATRIX_WORK = frozenset({"gemm", "conv", "attention"})
COPIES_ONLY = f"kernels in the trace, as it holds copies only (record them too: {ways.KERNELS_TOO})"
COUNTED = "a pass without counters, as counters make kernels run one after another"
_NO_SHAPES = "record the operators' shapes (--profile torch, or record_shapes=True)"
_IN_GRAPHS = (
    "they ran in graphs, whose capture the trace does not hold (--capture-trace FILE adds it)"
)
_UNLINKED = "their launches lie before the recording, or no operator stands around them"
_NO_FORMULA = "no formula tells the work of their operators (--formulas FILE adds some)"
_COUNTERS = f"{ways.COUNTING} would tell"
_OF_TORCH = re.compile(r"\bat::|\btriton_|N2at\d")
"""In names of kernels that torch brings or makes: its namespace, readable or mangled, and Triton's
of torch.compile.
"""


def grounds_of(m: Measurement) -> Grounds:
    """What a verdict on the measured windows can stand on."""
    if not len(m.trace.kernels) and not len(m.trace.copies):
        return Grounds()
    withheld = m.timeless or _withheld(m)
    if m.timeless:
        return Grounds(withheld=withheld)
    unknown = unknown_work(m)
    return Grounds(
        withheld=withheld,
        host_calls=bool(is_call(m.trace.strings, m.trace.api).any()),
        records=_records(m),
        longest_gap_ns=sum(
            m.whole.idle.longest(device, m.windows.on(device)) for device in m.devices
        ),
        unknown=_by_category(m, unknown),
        remedy=_remedy(m, unknown),
        ceilings=_ceilings(m),
        start_up=needs_of(m),
        torch=of_torch(m.trace),
    )


def _withheld(m: Measurement) -> str:
    """What a verdict would take; empty where the records carry one."""
    if not len(m.trace.kernels):
        return COPIES_ONLY
    if not m.facts.timed:
        return COUNTED
    captured, launches = _captured_launches(m)
    if 2 * captured > launches and not m.work.links.in_graph.any():
        return (
            "the replays of the captured graphs, as "
            f"{captured} of {launches} kernel launches were captured into graphs and ran nothing"
        )
    return ""


def _captured_launches(m: Measurement) -> tuple[int, int]:
    """How many kernel launches only went into a graph that was captured, and how many there are."""
    trace = m.trace
    launches = (
        patterns.matching(trace.strings, trace.api, patterns.LAUNCH)
        & ~patterns.matching(trace.strings, trace.api, patterns.GRAPH_LAUNCH)
        & ~of_host_files(trace)[trace.api.source]
    )
    captured = launches & captured_calls(trace)
    if not captured.any():
        return 0, int(launches.sum())
    return int((captured & ~recorded_calls(trace, m.work)).sum()), int(launches.sum())


def _records(m: Measurement) -> int:
    """Kernels and copies that reach into the windows."""
    copies = m.trace.copies
    moved = m.windows.inside_ns(intervals.lasting(copies.start_ns, copies.dur_ns), copies.device)
    return int((m.kernel_ns > 0).sum()) + int((moved > 0).sum())


def kernel_parts(m: Measurement) -> KernelParts:
    """How the time divides in which kernels compute; sums to `m.partition.compute_ns`."""
    compute, bandwidth, inside, unjudged = m.filled_split.ns
    known = _known_unjudged_ns(m)
    return KernelParts(
        compute_bound_ns=compute,
        bandwidth_bound_ns=bandwidth,
        inside_kernel_ns=inside,
        underfilled_ns=m.partition.compute_ns - sum(m.filled_split.ns),
        undetermined_ns=known,
        unknown_work_ns=unjudged - known,
    )


def _known_unjudged_ns(m: Measurement) -> int:
    """The part of the filled time of no class in which a kernel of known work runs."""
    kernels, rates = m.trace.kernels, m.facts.rates
    judged = rates.kind != UNDETERMINED
    known = ~judged & ~unknown_work(m) & ~is_communication(m.trace.strings, kernels)
    if not known.any():
        return 0
    judged &= ~is_communication(m.trace.strings, kernels)
    spans, total = m.kernel_spans, 0

    def running(rows: Mask) -> Intervals:
        return intervals.merge(Intervals(spans.start[rows], spans.end[rows]))

    for device, part in zip(m.devices, m.offered, strict=True):
        here = kernels.device == device
        left = intervals.subtract(part.filled, running(here & judged))
        total += intervals.intersect(running(here & known), left).total
    return total


def unknown_work(m: Measurement) -> Mask:
    """Per kernel, whether neither its FLOPs nor its traffic are known: of kernels of matrix work
    bytes alone do not count. False for collectives.
    """
    kernels, rates = m.trace.kernels, m.facts.rates
    names, place = coded(kernels.name)
    matrix = np.array(
        [kernel_category(m.trace.strings[int(code)]) in _MATRIX_WORK for code in names], np.bool_
    )[place]
    known = np.isfinite(rates.flops) | (np.isfinite(rates.moved) & (~matrix | rates.counted))
    unknown: Mask = (
        (rates.kind == UNDETERMINED) & ~known & ~is_communication(m.trace.strings, kernels)
    )
    return unknown


def _by_category(m: Measurement, rows: Mask) -> tuple[CategoryTime, ...]:
    names, place = coded(m.trace.kernels.name)
    times = np.bincount(place[rows], weights=m.kernel_ns[rows], minlength=len(names))
    totals: dict[str, int] = {}
    for code, total in zip(names, times, strict=True):
        if total:
            category = kernel_category(m.trace.strings[int(code)])
            totals[category] = totals.get(category, 0) + int(total)
    return ordered(totals)


def _remedy(m: Measurement, unknown: Mask) -> str:
    """Why the work of most of these kernels is not known, or what would make it known."""
    times = np.where(unknown, m.kernel_ns, 0)
    if not times.any():
        return ""
    trace = m.trace
    if not of_torch(m.trace):
        return _COUNTERS
    amd = any("amd" in device.vendor.lower() for device in trace.devices)
    counters = f"; {_COUNTERS}" if amd else ""
    if not len(trace.ops) or not (trace.ops.shapes != NULL).any():
        return f"{_NO_SHAPES}{counters}"
    without = trace.kernels.op == NULL
    in_graph = without & m.work.links.in_graph
    reasons = {
        _IN_GRAPHS: int(times[in_graph].sum()),
        _UNLINKED: int(times[without & ~in_graph].sum()),
        _NO_FORMULA: int(times[~without].sum()),
    }
    return f"{max(reasons, key=lambda reason: reasons[reason])}{counters}"


def of_torch(trace: Trace) -> bool:
    """Whether anything in a trace is torch's: its profiler's file, operators of the host, or
    kernels by their names.
    """
    if len(trace.ops) or any(source.format == "kineto" for source in trace.sources):
        return True
    names, _ = coded(trace.kernels.name)
    return any(_OF_TORCH.search(trace.strings[int(code)]) for code in names)


def _ceilings(m: Measurement) -> Literal["measured", "data sheet", "none"]:
    dtypes = m.facts.work.dtypes
    used = [
        ceiling.measured
        for roof in m.facts.roofs.values()
        for ceiling in (roof.bandwidth, *map(roof.flops, dtypes))
        if ceiling is not None
    ]
    return "none" if not used else "measured" if all(used) else "data sheet"
