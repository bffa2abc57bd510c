"""What `profharness telemetry` says at its end: the figures over the sampled time, findings, and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from profharness.analysis.intervals import window
from profharness.analysis.packages import package_findings, packages, power_figures
from profharness.analysis.records import SCHEMA, Figure, TelemetryRow, Verdict
from profharness.analysis.run_checks import telemetry_findings
from profharness.analysis.run_telemetry import figures_in, rows
from profharness.analysis.streams import streams
from profharness.analysis.telemetry_verdict import CONFIDENCE, telemetry_verdict
from profharness.findings import Finding
from profharness.report.figures import brief_text
from profharness.report.live import value_text
from profharness.report.names import title_of
from profharness.trace.model import Trace
from profharness.units import format_number

SOURCE = "telemetry"
IDLE_NODE = 0.5  # below this share of busy cores a node is called idle


class Concluded(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: figures by name, every series as a row, findings, and the verdict (None without one)."""

    schema: int = SCHEMA
    seconds: float
    figures: dict[str, Figure]
    rows: tuple[TelemetryRow, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict | None
    missing: dict[str, str] = {}


def conclude(trace: Trace, start_ns: int, end_ns: int, *, cores: int, followed: bool) -> Concluded:
    """Judge the time from `start_ns` to `end_ns` (the trace's clock). `cores` may be used; `followed` says that a command ran.

    Without a command the whole node is judged in its place.
    """
    every = streams(trace)
    when = window(start_ns, end_ns)
    found = packages(every)
    figures = {**figures_in(every, when, SOURCE), **power_figures(every, found, when, None, SOURCE)}
    if not followed and "cpu_node" in figures:
        figures["cores_used"] = figures["cpu_node"]
    figures["cores_allowed"] = Figure(value=float(cores), unit="cores", source="the affinity of the command" if followed else "the node")
    details = dict(trace.sources[0].details)
    shown = tuple(row for row in rows(trace) if followed or not row.metric.partition("_wait")[0].endswith("_tree"))
    missing = {name.removeprefix("missing."): why for name, why in details.items() if name.startswith("missing.")}
    return Concluded(seconds=(end_ns - start_ns) / 1e9, figures=figures, rows=shown,
                     findings=(*telemetry_findings(trace, figures), *package_findings(found)), verdict=telemetry_verdict(figures) if followed or on_device(figures) else node_verdict(figures), missing=missing)


def on_device(figures: dict[str, Figure]) -> bool:
    """Whether a device was sampled, so that the verdict is about it."""
    return any((figure := figures.get(name)) is not None and figure.value is not None for name in ("gpu_activity_mean", "gpu_percent"))


def node_verdict(figures: dict[str, Figure]) -> Verdict | None:
    """How busy the node's cores were, by whatever ran on it. No process is followed, so there is no bound on a gain."""
    used, cores = figures.get("cores_used"), figures["cores_allowed"].value
    if used is None or used.value is None or not cores:
        return None
    share = min(used.value / cores, 1.0)
    evidence = f"the node kept {brief_text(used.value, 3)} of its {cores:g} cores busy, whatever ran on it ({CONFIDENCE})"
    return Verdict(limiter="idle" if share < IDLE_NODE else "undetermined", share=1 - share if share < IDLE_NODE else share, evidence=evidence)


def document(concluded: Concluded, files: Sequence[Path]) -> bytes:
    """The JSON of `--json`: series without their plots' points, and the files that were made."""
    short = [msgspec.structs.replace(row, at_s=(), values=()) for row in concluded.rows]
    whole = msgspec.to_builtins(msgspec.structs.replace(concluded, rows=tuple(short)))
    return msgspec.json.encode({**whole, "files": [str(path) for path in files]})


def text(concluded: Concluded, files: Sequence[Path]) -> str:
    """A row per series, then energy, what is missing, findings, the verdict, and the files."""
    several = len({row.device for row in concluded.rows if row.device}) > 1
    titles = [title_of(row.metric) + (f" {row.device}" if several and row.device else "") for row in concluded.rows]
    width = max((len(title) for title in titles), default=6)
    lines = [f"{concluded.seconds:.1f} s sampled", f"{'metric':<{width}}  {'mean':>12}  {'lowest':>12}  {'highest':>12}"]
    for title, row in zip(titles, concluded.rows, strict=True):
        cells = (value_text(row.metric, value) for value in (row.mean, row.low, row.high))
        lines.append(f"{title:<{width}}  " + "  ".join(f"{cell:>12}" for cell in cells))
    lines += [line for line in (_energy(concluded.figures),) if line]
    lines += [f"not sampled: {name}: {why}" for name, why in concluded.missing.items()]
    lines += [f"{one.severity}: {one.message}; {one.advice}" for one in concluded.findings]
    lines.append("verdict    " + ("none: nothing was sampled that could give one" if concluded.verdict is None
                                  else f"{concluded.verdict.limiter}: {concluded.verdict.evidence}"))
    return "\n".join((*lines, "made       " + "  ".join(str(path) for path in files))) + "\n"


def _energy(figures: dict[str, Figure]) -> str:
    energy = figures.get("energy")
    if energy is None:
        return ""
    if energy.value is None:
        return f"energy     not measured: needs {energy.needs.replace('--min-seconds', '--seconds')}"
    return f"energy     {format_number(energy.value, 1)} J ({energy.source}; {energy.note})"
