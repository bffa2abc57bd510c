"""Many files as one answer: each file is summarised where it is, and the summaries are joined here.

Counts, sums and hotspots of the joined answer are exactly those of all records together. Figures
belong to each file's own window: the joined one is their mean, weighted by the windows, or their
median where a mean says nothing, or the highest of a peak, with the lowest and the highest file as
its ends. Clocks need not agree for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from profharness.analysis.communication.collectives import Arrivals, arrivals, relabelled
from profharness.analysis.communication.figures import merge_communication
from profharness.analysis.communication.provenance import of_ranks, sources_on_clock
from profharness.analysis.communication.rank_times import times_of_file
from profharness.analysis.files_figure import figure_of_files
from profharness.analysis.host.sums import add_host_times
from profharness.analysis.kernels import counter_table
from profharness.analysis.kernels.facts import NO_YARDSTICK, KernelFacts, Yardstick
from profharness.analysis.kernels.hotspots import default_tally
from profharness.analysis.kernels.tally import Tally, alike, join
from profharness.analysis.memory.allocator import merge_memory
from profharness.analysis.memory.copies import merge_copy_rows
from profharness.analysis.metrics import is_highest
from profharness.analysis.operators.records import add_known_work, add_operator_shares
from profharness.analysis.pictures.of_files import FilePictures, of_files
from profharness.analysis.pictures.ranks import shares_of_files
from profharness.analysis.pictures.records import Pictures
from profharness.analysis.records import (
    DeviceCounts,
    Figure,
    Partition,
    PointSummary,
    Summary,
    TraceCounts,
)
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.counts import device_keys, ranks_of
from profharness.analysis.time.timeless import placed
from profharness.analysis.time.timeline import add
from profharness.analysis.use.device_use import UseSums, files_use, use_sums
from profharness.analysis.verdict.records import Grounds, add_grounds
from profharness.analysis.verdict.window import judge
from profharness.findings import Finding
from profharness.trace.columns.keys import distinct
from profharness.trace.model import ClockDomain, Trace
from profharness.units import format_number

KEPT_ALIKE = 3


@dataclass(frozen=True, eq=False)
class Part:
    """What one file says, small enough to send. Times are of its own clock.

    `identities` are host and identity of the devices that have one: files that share one are to be
    read together.
    """

    summary: Summary
    tally: Tally
    ranks: frozenset[int | None]
    passes: tuple[str, ...]
    clocks: frozenset[tuple[str, str]]
    span: tuple[int, int] | None
    device_names: tuple[tuple[str, str, str], ...]
    identities: frozenset[tuple[str, str]]
    arrivals: tuple[Arrivals, ...] = ()
    use: UseSums | None = None
    pictures: Pictures | None = None


def part(
    trace: Trace,
    source: str,
    findings: Sequence[Finding] = (),
    yardstick: Yardstick = NO_YARDSTICK,
    *,
    with_use: bool = False,
) -> Part:
    """The part of one file; `findings` are those on its clock, `yardstick` is what its devices were
    measured to reach. Only `with_use` it tells how well they were used.
    """
    facts = KernelFacts(trace, yardstick)
    tables = (trace.kernels, trace.copies)
    starts = np.concatenate([placed(table).start_ns for table in tables])
    ends = np.concatenate([table.start_ns + table.dur_ns for table in tables])
    working = [
        trace.sources[int(position)]
        for position in distinct(np.concatenate([table.source for table in tables]))
    ] or list(trace.sources)
    keys = device_keys(trace)
    names = []
    for position, key in keys.items():
        device = trace.devices[position] if position >= 0 else None
        rank = device.rank if device is not None else None
        names.append(
            (
                key,
                f"{(device.host if device else '') or '-'}/{'-' if rank is None else rank}",
                device.index if device else "unknown",
            )
        )
    return Part(
        summary=summarise_trace(trace, source, findings=findings, facts=facts),
        tally=default_tally(trace, facts=facts),
        ranks=frozenset(file_source.rank for file_source in working),
        passes=tuple(sorted({one.pass_name for one in working if one.pass_name})),
        clocks=frozenset((file_source.clock.value, file_source.host) for file_source in working),
        span=(int(starts.min()), int(ends.max())) if len(starts) else None,
        device_names=tuple(names),
        identities=frozenset(
            (origin.host, origin.identity)
            for origin in (trace.devices[position] for position in keys if position >= 0)
            if origin.identity
        ),
        arrivals=arrivals(trace),
        use=use_sums(facts) if with_use else None,
    )


def combine(parts: Sequence[Part], source: str) -> Summary:
    """The summary of all parts, which share no device; a single one is its own."""
    use = files_use([(_file_name(file_part.summary.source), file_part.use) for file_part in parts])
    if len(parts) == 1:
        return msgspec.structs.replace(parts[0].summary, use=use, pictures=parts[0].pictures)
    summaries = [file_part.summary for file_part in parts]
    figures = _figures(summaries)
    split = _partition([one.partition for one in summaries if one.partition is not None])
    files = [_file_name(summary.source) for summary in summaries]
    ranks = relabelled([(file, one.arrivals) for file, one in zip(files, parts, strict=True)])
    talk = merge_communication(
        [(file, summary.communication) for file, summary in zip(files, summaries, strict=True)],
        ranks,
        [
            (file, times_of_file(one.summary, tuple(one.ranks)))
            for file, one in zip(files, parts, strict=True)
        ],
    )
    findings = (*_findings(summaries), *of_ranks(talk))
    grounds = _grounds(summaries)
    judged = judge(split, figures, findings, grounds)
    table = join(alike([file_part.tally for file_part in parts])).table()
    return Summary(
        source=source,
        trace=_counts(parts, distinct=len(table.rows) if table.by == "kernel" else 0),
        devices=_devices(parts),
        points=_points(summaries, findings),
        metrics=figures,
        findings=findings,
        problems=tuple(problem for summary in summaries for problem in summary.problems),
        sources=sources_on_clock(
            [(one.summary.sources, len(one.arrivals)) for one in parts], ranks, talk
        ),
        partition=judged.partition,
        verdict=judged.verdict,
        verdict_needs=judged.needs,
        grounds=grounds,
        work=add_known_work(summary.work for summary in summaries),
        operator_share=add_operator_shares(summary.operator_share for summary in summaries),
        hotspots=(table,),
        communication=talk,
        memory=merge_memory(
            [(file, one.memory) for file, one in zip(files, summaries, strict=True)]
        ),
        copies_by=merge_copy_rows(summary.copies_by for summary in summaries),
        counters=counter_table.merge_counter_rows(summary.counters for summary in summaries),
        device_names=tuple(dict.fromkeys(name for one in summaries for name in one.device_names)),
        use=use,
        pictures=_pictures(parts, () if talk is None else talk.standing_out),
        host=add_host_times(summary.host for summary in summaries),
    )


def _pictures(parts: Sequence[Part], first: Sequence[str]) -> Pictures:
    """Those of the files that have any, and how the window of each rank divides."""
    of_parts = [
        FilePictures(_label(file_part), file_part.pictures)
        for file_part in parts
        if file_part.pictures is not None
    ]
    ranks = shares_of_files((file_part.summary, file_part.ranks) for file_part in parts)
    return msgspec.structs.replace(of_files(of_parts, first), ranks=ranks)


def _label(file_part: Part) -> str:
    """The rank that worked in a file, else the file's name."""
    ranks = tuple(file_part.ranks)
    if len(ranks) == 1 and ranks[0] is not None:
        return f"rank {ranks[0]}"
    return _file_name(file_part.summary.source)


def _counts(parts: Sequence[Part], distinct: int) -> TraceCounts:
    counts = [file_part.summary.trace for file_part in parts]
    judged = [count.unlinked_kernels for count in counts if count.unlinked_kernels is not None]
    passes = sorted({name for file_part in parts for name in file_part.passes})

    placed = all(count.span_ns is not None for count in counts)

    def total(value: Callable[[TraceCounts], int]) -> int:
        return sum(value(count) for count in counts)

    return TraceCounts(
        pass_name=", ".join(passes) or None,
        kernels=total(lambda c: c.kernels),
        copies=total(lambda c: c.copies),
        devices=total(lambda c: c.devices),
        streams=total(lambda c: c.streams),
        ranks=len(
            ranks_of(
                {rank for file_part in parts for rank in file_part.ranks},
                of_run=any(file_part.passes for file_part in parts),
            )
        ),
        span_ns=_span_ns(parts) if placed else None,
        busy_ns=total(lambda c: c.busy_ns or 0) if placed else None,
        busy_any_ns=total(lambda c: c.busy_any_ns or 0) if placed else None,
        sum_kernel_ns=_sum_kernel_ns(counts),
        unlinked_kernels=sum(judged) if judged else None,
        graph_launches=total(lambda c: c.graph_launches),
        kernels_in_graphs=total(lambda c: c.kernels_in_graphs),
        distinct_kernels=distinct,
    )


def _sum_kernel_ns(counts: Sequence[TraceCounts]) -> int | None:
    """Over the files whose kernels have times; None where there are kernels and no such file."""
    known = [count.sum_kernel_ns for count in counts if count.sum_kernel_ns is not None]
    return sum(known) if known else None


def _span_ns(parts: Sequence[Part]) -> int:
    """From the first start to the last end, where all times are of day or of one host's clock; else
    of the longest part.
    """
    spans = [file_part.span for file_part in parts if file_part.span is not None]
    clocks = {
        clock for file_part in parts if file_part.span is not None for clock in file_part.clocks
    }
    comparable = {clock for clock, _ in clocks} == {ClockDomain.REALTIME.value} or (
        len(clocks) == 1
        and all(clock != ClockDomain.UNKNOWN.value and host for clock, host in clocks)
    )
    if comparable:
        return max(end for _, end in spans) - min(start for start, _ in spans)
    return max((end - start for start, end in spans), default=0)


def _devices(parts: Sequence[Part]) -> dict[str, DeviceCounts]:
    """By `host/rank/device`; where files share one, the file's name stands in place of the host,
    and its whole path if need be.
    """
    taken = Counter(
        f"{owner}/{index}" for file_part in parts for _, owner, index in file_part.device_names
    )
    named: dict[str, DeviceCounts] = {}
    for file_part in parts:
        for key, owner, index in file_part.device_names:
            full = f"{owner}/{index}"
            behind = full.partition("/")[2]
            if taken[full] > 1:
                full = f"{_file_name(file_part.summary.source)}/{behind}"
            named[full if full not in named else f"{file_part.summary.source}/{behind}"] = (
                file_part.summary.devices[key]
            )
    return named


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _points(summaries: Sequence[Summary], findings: Sequence[Finding]) -> tuple[PointSummary, ...]:
    """Each point over the files that measured it, joined as the whole is; points in the order of
    the files.
    """
    by_name: dict[str, list[PointSummary]] = {}
    for summary in summaries:
        for point in summary.points:
            by_name.setdefault(point.point, []).append(point)
    merge_communication = []
    for name, points in by_name.items():
        figures, split = (
            _figures(points),
            _partition([point.partition for point in points if point.partition is not None]),
        )
        grounds = _grounds(points)
        judged = judge(
            split, figures, [item for item in findings if item.point in (None, name)], grounds
        )
        merge_communication.append(
            PointSummary(
                point=name,
                metrics=figures,
                partition=judged.partition,
                verdict=judged.verdict,
                verdict_needs=judged.needs,
                grounds=grounds,
                work=add_known_work(point.work for point in points),
            )
        )
    return tuple(merge_communication)


def _figures(summaries: Sequence[Summary] | Sequence[PointSummary]) -> dict[str, Figure]:
    names = list(dict.fromkeys(name for summary in summaries for name in summary.metrics))
    return {
        name: figure_of_files(
            [
                (summary.metrics[name], summary.partition.window_ns if summary.partition else 0)
                for summary in summaries
                if name in summary.metrics
            ],
            highest=is_highest(name),
        )
        for name in names
    }


def _partition(splits: Sequence[Partition]) -> Partition | None:
    """The sum over all windows."""
    return add(list(splits)) if splits else None


def _grounds(summaries: Sequence[Summary] | Sequence[PointSummary]) -> Grounds:
    """What a verdict on all of them stands on: on those that have a partition, where any has."""
    placed = [summary.grounds for summary in summaries if summary.partition is not None]
    return add_grounds(placed or [summary.grounds for summary in summaries])


def _findings(summaries: Sequence[Summary]) -> tuple[Finding, ...]:
    """Findings of one kind in more than a few files are reported once, of the file where they are
    gravest, with the number of files.
    """
    order = {"error": 0, "warning": 1, "info": 2}
    kinds: dict[str, list[Finding]] = {}
    for summary in summaries:
        for item in summary.findings:
            message = (
                item.message
                if summary.source in item.message
                else f"{_file_name(summary.source)}: {item.message}"
            )
            kinds.setdefault(item.id, []).append(msgspec.structs.replace(item, message=message))
    collected: list[Finding] = []
    for items in kinds.values():
        ranked = sorted(items, key=lambda item: order[item.severity])
        if len(items) <= KEPT_ALIKE:
            collected += ranked
        else:
            collected.append(
                msgspec.structs.replace(
                    ranked[0],
                    message=(
                        f"in {format_number(len(items))} of {format_number(len(summaries))} "
                        f"files, first {ranked[0].message}"
                    ),
                    figures={**ranked[0].figures, "files": len(items)},
                )
            )
    return tuple(collected)
