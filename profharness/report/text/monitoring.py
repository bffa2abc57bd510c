"""What `profharness telemetry` says at its end: the figures over the sampled time, findings, and a
verdict.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from profharness.analysis.power.device_counters import for_verdict
from profharness.analysis.power.run_telemetry import figures_in, rows
from profharness.analysis.records import SCHEMA, Figure, TelemetryRow
from profharness.analysis.run.checks import telemetry_findings
from profharness.analysis.verdict.cpu import CORES_BUSY, CORES_IDLE
from profharness.analysis.verdict.records import Verdict
from profharness.analysis.verdict.telemetry import CONFIDENCE, telemetry_verdict
from profharness.analysis.verdict.window import NOTHING_MEASURED, Judgement
from profharness.analysis.verdict.wording import verdict_of, with_remark
from profharness.findings import Finding
from profharness.report.json import verdict_object
from profharness.report.tables.device import device_lines
from profharness.report.tables.telemetry import sampled_table
from profharness.report.text.figures import brief_text
from profharness.report.text.listing import listing
from profharness.rundir.shown.screen import encoded, lines_text
from profharness.stats.intervals import window
from profharness.stats.package_figures import power_figures
from profharness.stats.packages import package_findings, packages
from profharness.stats.streams import streams
from profharness.trace.model import Trace
from profharness.units import format_number

SOURCE = "telemetry"
_INDENT = " " * 11
IDLE_NODE = 0.5  # below this share of busy cores a node is called idle


class Concluded(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: figures by name, every series as a row, findings, and the verdict, or what it
    would take.
    """

    schema: int = SCHEMA
    seconds: float
    figures: dict[str, Figure]
    rows: tuple[TelemetryRow, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict | None
    verdict_needs: str = ""
    missing: dict[str, str] = {}


def conclude(
    trace: Trace,
    start_ns: int,
    end_ns: int,
    *,
    cores: int,
    followed: bool,
    idle_ns: tuple[int, int] = (0, 0),
) -> Concluded:
    """Judge the time from `start_ns` to `end_ns` (the trace's clock). `cores` may be used;
    `followed` says that a command ran.

    Without a command the whole node is judged in its place. `idle_ns` is when the devices rested
    before it, (0, 0) where they did not.
    """
    every = streams(trace)
    when = window(start_ns, end_ns)
    package_streams = packages(every, window(*idle_ns))
    figures = {
        **figures_in(every, when, SOURCE),
        **power_figures(every, package_streams, when, None, SOURCE, "--seconds {:g}"),
    }
    if idle_ns != (0, 0) and "power_idle" not in figures:
        figures["power_idle"] = Figure(
            value=None,
            unit="W",
            needs="a longer --idle-seconds" if package_streams else "a device that reports power",
        )
    if not followed and "cpu_node" in figures:
        figures["cores_used"] = figures["cpu_node"]
    figures["cores_allowed"] = Figure(
        value=float(cores),
        unit="cores",
        source="the affinity of the command" if followed else "the node",
    )
    details = dict(trace.sources[0].details)
    shown = tuple(
        row
        for row in rows(_after(trace, idle_ns[1]))
        if followed or not row.metric.partition("_wait")[0].endswith(("_tree", "_other"))
    )
    missing = {
        name.removeprefix("missing."): why
        for name, why in details.items()
        if name.startswith("missing.")
    }
    judgement = (
        telemetry_verdict(for_verdict(figures, trace))
        if followed or on_device(figures)
        else node_verdict(figures)
    )
    return Concluded(
        seconds=(end_ns - start_ns) / 1e9,
        figures=figures,
        rows=shown,
        findings=(*telemetry_findings(trace, figures), *package_findings(package_streams)),
        verdict=judgement.verdict,
        verdict_needs=judgement.needs,
        missing=missing,
    )


def _after(trace: Trace, rested_until_ns: int) -> Trace:
    """The trace without what was sampled while the devices rested."""
    return (
        replace(
            trace,
            samples=trace.samples.take(np.flatnonzero(trace.samples.until_ns > rested_until_ns)),
        )
        if rested_until_ns
        else trace
    )


def on_device(figures: dict[str, Figure]) -> bool:
    """Whether a device was sampled, so that the verdict is about it."""
    return any(
        (figure := figures.get(name)) is not None and figure.value is not None
        for name in ("gpu_activity_mean", "gpu_percent")
    )


def node_verdict(figures: dict[str, Figure]) -> Judgement:
    """How busy the node's cores were, by whatever ran on it. No process is followed, so there is no
    bound on a gain.
    """
    used, cores = figures.get("cores_used"), figures["cores_allowed"].value
    if used is None or used.value is None or not cores:
        return Judgement(None, NOTHING_MEASURED, None)
    share = min(used.value / cores, 1.0)
    evidence = (
        f"the node kept {brief_text(used.value, 3)} of its {cores:g} cores busy, whatever ran on it"
    )
    said = (
        verdict_of("idle-cores", 1 - share, evidence, opening=CORES_IDLE)
        if share < IDLE_NODE
        else verdict_of("undetermined", share, evidence, opening=CORES_BUSY)
    )
    return Judgement(with_remark(said, CONFIDENCE), "", None)


def document(concluded: Concluded, files: Sequence[Path]) -> bytes:
    """The JSON of `--json`: series without their plots' points, and the files that were made."""
    short = [msgspec.structs.replace(row, at_s=(), values=()) for row in concluded.rows]
    whole = msgspec.to_builtins(msgspec.structs.replace(concluded, rows=tuple(short)))
    judged = {
        "verdict": verdict_object(concluded.verdict),
        "verdict_needs": concluded.verdict_needs or None,
    }
    return encoded({**whole, **judged, "files": [str(path) for path in files]})


def text(concluded: Concluded, files: Sequence[Path], width: int = 110) -> str:
    """A row per series, then energy, what is missing, findings, the verdict, and the files;
    sentences in lines of `width` characters.
    """
    lines = [
        f"{concluded.seconds:.1f} s sampled",
        *listing(sampled_table(concluded.rows), heads=True),
    ]
    lines += [f"device     {line}" for line in device_lines(concluded.rows)]
    lines += [line for line in (_idle(concluded.figures), _energy(concluded.figures)) if line]
    reasons = dict.fromkeys(concluded.missing.values())
    notes = [
        "not sampled: "
        f"{', '.join(name for name, other in concluded.missing.items() if other == why)}: {why}"
        for why in reasons
    ]
    notes += [f"{item.severity}: {item.message}; {item.advice}" for item in concluded.findings]
    lines += [part for line in notes for part in _wrapped(line, width, "  ")]
    lines += _wrapped(f"verdict    {_verdict_text(concluded)}", width, _INDENT)
    lines += [
        f"{'made' if index == 0 else '':<{len(_INDENT)}}{path}" for index, path in enumerate(files)
    ]
    return lines_text(lines)


def _verdict_text(concluded: Concluded) -> str:
    if concluded.verdict is None:
        return f"none: needs {concluded.verdict_needs}"
    return concluded.verdict.text


def _wrapped(line: str, width: int, indent: str) -> list[str]:
    """Lines of at most `width` characters; a path or name longer than that stays whole, so that it
    can be copied.
    """
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _idle(figures: dict[str, Figure]) -> str:
    idle = figures.get("power_idle")
    if idle is None:
        return ""
    return (
        f"idle       not measured: needs {idle.needs}"
        if idle.value is None
        else f"idle       {format_number(idle.value, 1)} W before the command began"
    )


def _energy(figures: dict[str, Figure]) -> str:
    energy = figures.get("energy")
    if energy is None:
        return ""
    if energy.value is None:
        return f"energy     not measured: needs {energy.needs}"
    return f"energy     {format_number(energy.value, 1)} J ({energy.source}; {energy.note})"
