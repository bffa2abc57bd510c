"""Which steps the layers inside the processes captured of a command, and where that is not what
training or inference needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from profharness.analysis.run.steps import OWN_LAYER
from profharness.findings import Finding, finding
from profharness.rundir.manifest import Manifest
from profharness.trace.columns.table import NULL
from profharness.trace.model import FIRST_STEP, STEPS, ClockDomain, Source, Trace
from profharness.units import format_ns

_LISTED = 4


@dataclass(frozen=True)
class _Capture:
    """One process of a pass: how many steps it logged, how many of them began while it was
    recorded, for how long that was (ns), and the steps that its files say they hold.
    """

    label: str
    steps: int
    inside: int
    recorded_ns: int
    held: tuple[tuple[int, int], ...]

    @property
    def words(self) -> str:
        """`5 to 24`, or `none`."""
        return (
            ", ".join(f"{first} to {first + count - 1}" for first, count in self.held)
            if self.held
            else "none"
        )


def capture_findings(manifest: Manifest, trace: Trace) -> tuple[Finding, ...]:
    """A capture that holds none of the steps of its process, and ranks that captured different
    steps. Only of commands, and of passes whose processes logged steps.
    """
    if manifest.kind != "command" or manifest.attached is not None:
        return ()
    hooked = manifest.hooked()
    return tuple(
        item
        for record in manifest.passes
        for layer in record.layers
        if layer in hooked and layer != "telemetry"
        for item in _of_layer(layer, _captures(trace, record.name, layer))
    )


def _of_layer(layer: str, captures: list[_Capture]) -> Iterator[Finding]:
    missed = [one for one in captures if not one.held and not one.inside and one.recorded_ns]
    for one in missed[:1]:
        others = f" (nor those of {len(missed) - 1} further processes)" if missed[1:] else ""
        yield finding(
            "steps-not-captured",
            f"{layer} recorded {format_ns(one.recorded_ns)} of {one.label}, and none of its "
            f"{one.steps} steps{others}: the figures are of what came before or after them",
            steps=one.steps,
            processes=len(missed),
        )
    if len({one.held for one in captures}) > 1:
        listed = "; ".join(f"{one.label}: {one.words}" for one in captures[:_LISTED])
        more = f"; and {len(captures) - _LISTED} more" if len(captures) > _LISTED else ""
        yield finding(
            "captures-differ",
            f"the processes captured different steps with {layer} ({listed}{more})",
            processes=len(captures),
        )


def _captures(trace: Trace, pass_name: str, layer: str) -> list[_Capture]:
    """Of each process that logged steps and left files of the layer."""
    numbered = [
        (place, source)
        for place, source in enumerate(trace.sources)
        if source.pass_name == pass_name
    ]
    captures = []
    for place, log in numbered:
        if log.layer != OWN_LAYER:
            continue
        files = [
            (other, source)
            for other, source in numbered
            if source.layer == layer
            and (source.host, source.pid) == (log.host, log.pid)
            and not source.format.endswith("-marker")
        ]
        if files:
            captures.append(_capture(trace, place, files))
    return captures


def _capture(trace: Trace, log: int, files: list[tuple[int, Source]]) -> _Capture:
    marks, source = trace.marks, trace.sources[log]
    starts = marks.start_ns[
        (marks.source == log) & (marks.kind == trace.strings.find("step")) & (marks.kind != NULL)
    ]
    spans = [
        span
        for place, file in files
        if file.clock is ClockDomain.RUN and (span := _recorded(trace, place)) is not None
    ]
    inside = np.zeros(len(starts), np.bool_)
    for opened, closed in spans:
        inside |= (starts >= opened) & (starts < closed)
    held = {
        (int(facts[FIRST_STEP]), int(facts[STEPS]))
        for facts in (dict(file.details) for _, file in files)
        if FIRST_STEP in facts and STEPS in facts
    }
    return _Capture(
        f"rank {source.rank}" if source.rank is not None else f"process {source.pid}",
        len(starts),
        int(inside.sum()),
        sum(closed - opened for opened, closed in spans),
        tuple(sorted(held)),
    )


def _recorded(trace: Trace, place: int) -> tuple[int, int] | None:
    """From the first operator or call of a source to the end of the last; None without any."""
    spans = [
        (int(table.start_ns[rows].min()), int((table.start_ns[rows] + table.dur_ns[rows]).max()))
        for table in (trace.ops, trace.api)
        if (rows := table.source == place).any()
    ]
    return (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else None
