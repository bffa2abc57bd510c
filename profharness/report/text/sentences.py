"""The three lines that open every report: Answer (is it saturated), Next (what to try), Trust (how
sure).

Wording follows the kind of run (scan, command, loose files) and the device (GPU or CPU). A sentence
is left out when its figures are missing; it is never filled with a guess.
"""

from __future__ import annotations

from dataclasses import dataclass

from profharness.analysis.communication.clocks import BY_COMMON_END
from profharness.analysis.records import PointSummary, SourceRow, Summary
from profharness.report.axes import words as axes_words
from profharness.report.text import command_sentences, scan_sentences
from profharness.report.text.figures import finite
from profharness.report.text.findings import all_findings, finding_count, finding_place
from profharness.report.text.labels import is_command, point_names_by_id
from profharness.report.text.measured.endings import failed_before_anything
from profharness.report.text.measured.vendors import for_device
from profharness.trace.model import ClockDomain
from profharness.units import format_ns

_PROVIDER = "ExecutionProvider"


@dataclass(frozen=True)
class Sentences:
    """The three lines, each one to three sentences of plain text.

    `trust` ends with `findings`; a form that lists the findings itself prints `trust_alone`
    instead.
    """

    answer: str
    next: str
    trust_alone: str
    findings: str

    @property
    def trust(self) -> str:
        return f"{self.trust_alone} {self.findings}".strip()


def sentences(summary: Summary) -> Sentences:
    """Answer, Next and Trust of a summary of any kind."""
    return Sentences(
        answer=answer(summary),
        next=next_step(summary),
        trust_alone=trust(summary),
        findings=_sentence(finding_count(summary)),
    )


def answer(summary: Summary) -> str:
    """Whether the device is saturated, from the curve of a scan or the partition of a window;
    first, whether all is there.
    """
    missing = next(
        (finding.message for finding in summary.findings if finding.id == "run-incomplete"), ""
    )
    return (
        f"{_sentence(missing)} {_measured_answer(summary)}"
        if missing
        else _measured_answer(summary)
    )


def _measured_answer(summary: Summary) -> str:
    if failed_all(summary.points):
        first = next((point.error for point in summary.points if point.error), "")
        why = f" The first says: {first.rstrip('.')}." if first else ""
        return f"No figures: {_all_failed(len(summary.points))}.{why}"
    if measured(summary.points) and not is_command(summary):
        return scan_sentences.answer(summary)
    return command_sentences.answer(summary)


def next_step(summary: Summary) -> str:
    """What to do now: repair first, then the largest bound on a gain, then what would tell more,
    with the tools that know the device.
    """
    return for_device(_next_step(summary), summary)


def _next_step(summary: Summary) -> str:
    blocking = next(
        (
            finding
            for finding in all_findings(summary)
            if finding.severity == "error"
            and finding.advice
            and not (finding.id == "nothing-recorded" and failed_before_anything(summary))
        ),
        None,
    )
    if blocking is not None:
        place = finding_place(point_names_by_id(summary), blocking)
        return f"First {place}: {blocking.advice.rstrip('.')}."
    if measured(summary.points) and not is_command(summary):
        return scan_sentences.next_step(summary)
    return command_sentences.next_step(summary)


def trust(summary: Summary) -> str:
    """How sources were aligned, what the figures rest on, what failed; without the findings."""
    parts = [
        alignment(summary.sources),
        _statistics(summary) if summary.axes is None else axes_words.trust(summary.axes),
        f"execution providers: {ran}" if (ran := execution_providers(summary)) else "",
        _overheads(summary),
        _failed(summary.points),
    ]
    problems = sum(row.count for row in summary.problems if row.severity != "info")
    if problems:
        parts.append(
            f"{problems} {'problem' if problems == 1 else 'problems'} while reading the files"
        )
    return " ".join(_sentence(part) for part in parts if part)


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def measured(points: tuple[PointSummary, ...]) -> tuple[PointSummary, ...]:
    """The points that have a throughput."""
    return tuple(point for point in points if finite(point.throughput) is not None)


def failed_all(points: tuple[PointSummary, ...]) -> bool:
    """Whether there are points and none of them gave figures."""
    return bool(points) and all(point.state != "ok" for point in points)


def alignment(sources: tuple[SourceRow, ...]) -> str:
    """`3 sources aligned: torch ≤ 0.3 µs, rocprofv3 ≤ 1.9 µs (causal bound 0.8 µs)`; the worst of
    each layer.

    A source is aligned when its times are on the run's clock, or collectives put them on that of
    others. Layers that carry no markers to check
    the alignment with are named last, without a figure.
    """
    if not sources:
        return ""
    if len(sources) == 1:
        return "one source, so nothing to align"
    layers: dict[str, list[SourceRow]] = {}
    for source in sources:
        layers.setdefault(source.layer or source.format, []).append(source)
    lost = sum(not _aligned(source) for source in sources)
    checked = [
        _layer_alignment(name, group) for name, group in layers.items() if any(map(_stated, group))
    ]
    plain = [name for name, group in layers.items() if not any(map(_stated, group))]
    named = " and ".join([", ".join(plain[:-1]), plain[-1]] if len(plain) > 1 else plain)
    parts = [*checked, f"{named} by the host's clock readings"] if plain else checked
    return (
        f"{len(sources)} sources {f'read, {lost} not aligned' if lost else 'aligned'}: "
        f"{', '.join(parts)}"
    )


def _aligned(source: SourceRow) -> bool:
    return source.clock == ClockDomain.RUN or BY_COMMON_END in source.alignment


def _stated(source: SourceRow) -> bool:
    """Whether there is something to say on its alignment: a bound, or that it has none."""
    return source_bound(source) is not None or not _aligned(source)


def _layer_alignment(name: str, group: list[SourceRow]) -> str:
    bounds = [bound for source in group if (bound := source_bound(source)) is not None]
    if not all(map(_aligned, group)) or not bounds:
        return f"{name} unaligned"
    causal = [(source.causal_low_ns, source.causal_high_ns) for source in group]
    widths = [
        max(abs(low), abs(high)) for low, high in causal if low is not None and high is not None
    ]
    extra = f" (causal bound {_brief(max(widths))})" if widths else ""
    return f"{name} ≤ {_brief(max(bounds))}{extra}"


def source_bound(source: SourceRow) -> int | None:
    """The bound of a source's alignment in ns, or its residual where no bound is known."""
    return source.residual_ns if source.bound_ns is None else source.bound_ns


def _brief(ns: int) -> str:
    """Two digits, in microseconds below a millisecond: bounds of several sources compare at a
    glance.
    """
    if ns >= 1_000_000:
        return format_ns(ns, significant=2)
    return f"{float(f'{ns / 1000:.2g}'):g} µs"


def _statistics(summary: Summary) -> str:
    for counts, unit in (
        ([point.trials for point in measured(summary.points) if point.trials], "trials per point"),
        (
            [point.requests for point in measured(summary.points) if point.requests],
            "requests per level",
        ),
    ):
        if counts:
            low, high = min(counts), max(counts)
            return f"throughput from {low if low == high else f'{low} to {high}'} {unit}"
    return ""


def execution_providers(summary: Summary) -> str:
    """What onnxruntime ran each backend's points on, where that is more than the CPU."""
    ran = dict.fromkeys(
        (point.backend, point.providers)
        for point in summary.points
        if point.providers not in ((), (f"CPU{_PROVIDER}",))
    )
    return "; ".join(
        f"{backend} on {', '.join(name.removesuffix(_PROVIDER) for name in names)}"
        for backend, names in ran
    )


def _overheads(summary: Summary) -> str:
    """What is known of the profiler's cost where no bare pass stands beside it."""
    if summary.run is None:
        return "the profiler's own cost is in these shares" if summary.partition is not None else ""
    if is_command(summary) and not any(row.overhead for row in summary.passes):
        how = "add --bare" if summary.run.attached is None else "the process ran already"
        return f"overhead not measured ({how})" if any(row.layers for row in summary.passes) else ""
    return ""


def _failed(points: tuple[PointSummary, ...]) -> str:
    failed = sum(point.state != "ok" for point in points)
    return f"{failed} of {len(points)} points failed" if failed and failed < len(points) else ""


def _all_failed(count: int) -> str:
    return "the only point failed" if count == 1 else f"all {count} points failed"
