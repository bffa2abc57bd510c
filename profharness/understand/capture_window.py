"""A capture window that a tool could not keep to by itself, applied to what it recorded:
`PassRecord.cut`.

Steps are taken from the hooks' own log of the same process, times count from the start of the pass.
Device work belongs where the call stands that launched it.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.readers.own import steps
from profharness.rundir.capture import period
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.names import is_plain_name
from profharness.rundir.manifest import ClockSnapshot, Manifest, PassRecord
from profharness.rundir.paths import RunDir
from profharness.trace.clocks import align as clocks
from profharness.trace.model import ClockDomain, Problem, Source, Trace
from profharness.trace.parts.started import started_within

Window = tuple[int, int]
_EVER: Window = (int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max))
_OWN = frozenset(
    {"telemetry", "trials"}
)  # never cut; of steps only those remain of whose device work the trace tells


@dataclass(frozen=True)
class Clocks:
    """How times of a host come onto the run's clock, and by its name each pass that is to be cut
    there (`cut_passes`).
    """

    snapshots: Mapping[str, Sequence[ClockSnapshot]]
    reference: str
    cut: Mapping[str, PassRecord] = field(default_factory=dict)

    def monotonic(self, host: str, at_ns: int) -> int | None:
        """A reading of CLOCK_MONOTONIC of that host; None where its readings do not allow it."""
        way = clocks.route(ClockDomain.MONOTONIC, host, self.snapshots, self.reference)
        return None if isinstance(way, str) else int(way(np.array([at_ns], np.int64))[0])


def cut_passes(manifest: Manifest) -> dict[str, PassRecord]:
    """The passes that are to be cut, by name; most runs have none."""
    return {record.name: record for record in manifest.passes if record.cut}


def within_window(run: RunDir, trace: Trace, at: Clocks) -> Trace:
    """The aligned trace of some tool's files without what lies outside of the window that its pass
    was asked for.
    """
    if not any(source.pass_name in at.cut and source.layer not in _OWN for source in trace.sources):
        return trace
    windows: list[Window] = []
    problems: list[Problem] = []
    for source in trace.sources:
        record = at.cut.get(source.pass_name) if source.layer not in _OWN else None
        window = _EVER if record is None else _window(run, source, record, at)
        if window is None:
            problems.append(
                Problem(
                    "warning",
                    source.path,
                    1,
                    "its window could not be found (no marked steps, or another clock): "
                    "nothing was cut off",
                )
            )
        windows.append(window or _EVER)
    kept = started_within(
        trace,
        np.array([low for low, _ in windows], np.int64),
        np.array([high for _, high in windows], np.int64),
    )
    return replace(kept, problems=(*kept.problems, *problems))


def _window(run: RunDir, source: Source, record: PassRecord, at: Clocks) -> Window | None:
    """From (included) and to (not included), on the run clock; None where the run lacks it."""
    if source.clock is not ClockDomain.RUN:
        return None
    asked = period(record.cut)
    if asked is None:
        first, _, last = record.cut.removeprefix("steps=").partition(":")
        return _of_steps(run, source, record, (int(first), int(last)), at)
    if record.start_boot_ns is None:
        return None
    low = record.start_boot_ns + asked.after_ns
    return (low, _EVER[1] if asked.for_ns is None else low + asked.for_ns)


def _of_steps(
    run: RunDir, source: Source, record: PassRecord, wanted: tuple[int, int], at: Clocks
) -> Window | None:
    """From the process's own log; for one that marked no steps, what those of all others span."""
    inside = Inside(run.root)
    host = glob.escape(source.host) if is_plain_name(source.host) else "*"
    logs = inside.found(f"artifacts/steps/{host}/*/steps-{source.pid}.jsonl").paths
    if not logs:
        logs = inside.found("artifacts/steps/**/steps-*.jsonl").paths
    windows = [window for path in logs if (window := _of_log(path, record, wanted, at)) is not None]
    return (min(low for low, _ in windows), max(high for _, high in windows)) if windows else None


def _of_log(path: Path, record: PassRecord, wanted: tuple[int, int], at: Clocks) -> Window | None:
    """The wanted steps of one log, an empty window where it has none of them; None for a log of
    another pass.
    """
    try:
        with reading(path):
            ends = {line.n: line.monotonic_ns for line in steps.lines(path)}
    except InputError:
        return None  # it is among the problems of the run already
    moved = {
        number: at.monotonic(path.parent.parent.name, ns)
        for number, ns in ends.items()
        if number in (wanted[0] - 1, wanted[1] - 1, 0, max(ends))
    }
    begun = moved.get(0)
    if (
        begun is None
        or begun < (record.start_boot_ns or _EVER[0])
        or begun > (record.end_boot_ns or _EVER[1])
    ):
        return None
    low = _EVER[0] if wanted[0] == 0 else moved.get(wanted[0] - 1)
    if low is None:
        return (_EVER[1], _EVER[0])
    high = moved.get(wanted[1] - 1)
    return (low, _EVER[1] if high is None else high)
