"""Many runs at a glance: what an index shows of each, from its manifest, its `summary.json` and its
notes alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import msgspec

from profharness.errors import InputError
from profharness.report.sheets.entries import Entry
from profharness.report.text.measured.vendors import for_device_named
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.listing import IndexedRun, read_indexed
from profharness.rundir.foreign.small_files import read_file
from profharness.rundir.harness_process import state_of
from profharness.rundir.notes import Notes, read_notes

_MOST_BYTES = 256 << 20  # of a summary: one of 20,000 points has 200 MB
_NO_SUMMARY = "no figures yet: profharness report makes them"
_RATES = ("steps_per_second", "throughput")


class _Number(msgspec.Struct, frozen=True):
    value: float | None = None
    unit: str = ""


class _Rates(msgspec.Struct, frozen=True):
    """The figures that an index shows; all others are passed over."""

    throughput: _Number | None = None
    steps_per_second: _Number | None = None


class _Judged(msgspec.Struct, frozen=True):
    kind: str = ""
    text: str = ""


class _Point(msgspec.Struct, frozen=True):
    point: str
    throughput: float | None = None
    metrics: _Rates = _Rates()
    verdict: _Judged | None = None


class _Severity(msgspec.Struct, frozen=True):
    severity: str = ""


class _Run(msgspec.Struct, frozen=True):
    device: str = ""
    cpu_model: str = ""
    asked: dict[str, str] = {}


class _Summary(msgspec.Struct, frozen=True):
    run: _Run | None = None
    points: tuple[_Point, ...] = ()
    metrics: _Rates = _Rates()
    verdict: _Judged | None = None
    findings: tuple[_Severity, ...] = ()


_DECODER = msgspec.json.Decoder(_Summary)


def entries(roots: Sequence[Path], beside: Path) -> tuple[Entry, ...]:
    """What an index in the folder `beside` shows of each run; a run that cannot be read has the
    reason.
    """
    return tuple(_entry(root, beside) for root in roots)


def _entry(root: Path, beside: Path) -> Entry:
    page = root / "report.html"
    bare = Entry(
        name=root.name,
        path=str(root),
        # `./` keeps a colon in a folder's name from making a scheme of it
        page=f"./{quote(os.path.relpath(page, beside), errors='surrogateescape')}"
        if page.is_file()
        else "",
    )
    try:
        run = read_indexed(root)
    except InputError as error:
        return replace(bare, state="damaged", problem=error.message)
    try:
        summary, problem = _summary(root)
        notes = read_notes(root)
    except InputError as error:
        summary, problem, notes = _Summary(), error.message, Notes()
    return _filled(bare, run, summary, notes, problem)


def _summary(root: Path) -> tuple[_Summary, str]:
    """The run's figures, and what is wrong where it has none. Raises InputError."""
    path = root / "summary.json"
    if not path.is_file():
        return _Summary(), _NO_SUMMARY
    with reading(path, "no readable summary"):
        data = read_file(Inside(root).require(path), _MOST_BYTES)
        return _DECODER.decode(data), ""


def _filled(bare: Entry, run: IndexedRun, summary: _Summary, notes: Notes, problem: str) -> Entry:
    measured = [point for point in summary.points if point.throughput is not None]
    best = max(measured, key=lambda point: point.throughput or 0.0, default=None)
    rate = _rate(summary, best)
    verdict = summary.verdict or (best.verdict if best is not None else None) or _Judged()
    severities = [finding.severity for finding in summary.findings]
    device = "" if summary.run is None else summary.run.device or summary.run.cpu_model
    return replace(
        bare,
        created=run.created,
        state=state_of(run),
        what=_what(run, summary),
        device=device,
        best=rate.value,
        best_at=best.point if best is not None else "",
        unit=rate.unit,
        verdict=for_device_named(verdict.text, device),
        verdict_kind=verdict.kind,
        errors=severities.count("error"),
        warnings=severities.count("warning"),
        commit="" if run.git is None else run.git.commit[:12],
        dirty=run.git is not None and run.git.dirty,
        tags=notes.tags,
        note=notes.note,
        problem=problem,
    )


def _rate(summary: _Summary, best: _Point | None) -> _Number:
    """Of a scan its best throughput, of a command its steps, else items, per second."""
    if best is not None:
        named = best.metrics.throughput
        return _Number(best.throughput, named.unit if named is not None else "items/s")
    figures = (getattr(summary.metrics, name) for name in _RATES)
    return next((one for one in figures if one is not None and one.value), _Number())


def _what(run: IndexedRun, summary: _Summary) -> str:
    """The command, or the scan with its model."""
    if run.command:
        return " ".join(run.command)
    scan = run.scan.name if run.scan is not None else run.kind
    model = "" if summary.run is None else summary.run.asked.get("model", "")
    shown = model.rstrip("/").rsplit("/", 1)[-1]
    return scan if shown in ("", scan) else f"{scan}: {shown}"
