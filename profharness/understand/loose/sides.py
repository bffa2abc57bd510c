"""One of two that are compared: a run, a trace file, or the CSV of a scan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.analysis.curves.records import Series
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.records import SCHEMA, Summary
from profharness.errors import InputError
from profharness.rundir.foreign.small_files import open_regular
from profharness.rundir.paths import MANIFEST
from profharness.trace.wanted import Wanted
from profharness.understand import report_run
from profharness.understand.load import Loaded, check_paths, load, told
from profharness.understand.loose.scans import is_scan, read_scan
from profharness.understand.replays import with_captures

if TYPE_CHECKING:
    from profharness.analysis.compare.operators.content import Content
    from profharness.analysis.compare.records import Comparison

_FIGURES = re.compile(rb'\s*\{\s*"schema"\s*:\s*(\d{1,9})\s*,\s*"source"')
_HEAD_BYTES = 4 << 10


@dataclass(frozen=True)
class Side:
    """A side with its figures; `series` are the curves of a CSV, and None of all else. `content` is
    what it did by operator, None where that is not known.
    """

    path: Path
    summary: Summary
    series: tuple[Series, ...] | None = None
    content: Content | None = None

    @property
    def is_run(self) -> bool:
        """Whether it is a run directory."""
        return (self.path / MANIFEST).is_file()


def read_side(path: Path, step_range: str = "", operator_input: OperatorInput = NO_INPUT) -> Side:
    """Read what was named. Raises InputError for what cannot be read, and for figures, which are no
    trace: those of an earlier version may mean something else.
    """
    check_paths([path])
    _refuse_figures(path)
    if is_scan([path]):
        scan = read_scan(path)
        return Side(path, scan.summary, scan.series)
    shown = load([path], wanted=Wanted.SHOWN)
    loaded = with_captures(told(shown), operator_input.captures)
    summary = report_run.summarise(loaded, step_range, operator_input)
    return Side(path, summary, content=content_of_loaded(shown, step_range, operator_input))


def _refuse_figures(path: Path) -> None:
    """Raises InputError for a JSON document of our own, with what its steps mean."""
    if not path.is_file():
        return
    with open_regular(path) as file:
        found = _FIGURES.match(file.read(_HEAD_BYTES))
    if found is not None:
        schema = int(found[1])
        steps = "by what they launched" if schema >= SCHEMA else "on the marks of the host"
        raise InputError(
            f"{path}: figures that profharness wrote (schema {schema}, with steps and windows "
            f"{steps}), and no trace",
            "name the trace or the run that they are of: both sides are measured anew",
        )


def content_of_loaded(
    shown: Loaded, step_range: str = "", operator_input: OperatorInput = NO_INPUT
) -> Content | None:
    """What was done by operator, in the pass that speaks for kernels or the first one that recorded
    operators; `shown` holds Python's functions too. None of a scan, whose points are compared.
    """
    from profharness.analysis.compare.operators.content import content_of
    from profharness.understand.hotspots import passes_in_order
    from profharness.understand.steps import stepped

    if shown.manifest is not None and shown.manifest.kind == "scan":
        return None
    loaded = stepped(with_captures(shown, operator_input.captures), step_range)
    contents = (content_of(records) for _, records in passes_in_order(loaded))
    return next((content for content in contents if content is not None), None)


def compare_sides(a: Side, b: Side) -> Comparison:
    """What changed from `a` to `b`, with the work of both where they hold operators."""
    from profharness.analysis.compare.operators.joined import with_work
    from profharness.analysis.compare.runs import compare

    return with_work(compare(a.summary, b.summary), (a.summary, a.content), (b.summary, b.content))
