"""Answers, figures and comparisons of runs and trace files: what `report`, `metrics` and `compare`
say of them, as records.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from profharness.analysis.compare.records import WORK_TABLES
from profharness.analysis.records import Figure, PointSummary, Summary
from profharness.analysis.verdict.records import Verdict
from profharness.cli.agents.limits import MOST_FIGURES, MOST_FINDINGS, MOST_ROWS, cut
from profharness.cli.agents.records import (
    Answer,
    Breach,
    ComparedRuns,
    Headroom,
    Metrics,
    NamedFigure,
    PointFigures,
    ShownVerdict,
)
from profharness.cli.agents.roots import Roots
from profharness.errors import UsageError
from profharness.report.text import names as titles

_HEADROOM = (
    titles.GPU_PERCENT,
    titles.BUSY,
    titles.FILL,
    titles.MFU,
    titles.BANDWIDTH_SHARE,
    titles.POWER_SATURATION,
    titles.CORES_USED,
    titles.CORES_ALLOWED,
    titles.STEP_TIME,
)
"""How full the device is, and of what a gain would be one."""


def answer(roots: Roots, path: str) -> Answer:
    """The three sentences on a run or trace file, its verdict and how much is left. Raises as
    `Roots.find` does, and InputError for what cannot be read.
    """
    from profharness.report.text.findings import all_findings
    from profharness.report.text.limits import gain_text
    from profharness.report.text.sentences import sentences

    place = roots.find(path)
    summary = _summary(place)
    words = sentences(summary)
    findings = all_findings(summary)
    verdict = summary.verdict
    return Answer(
        path=str(place),
        answer=words.answer,
        next=words.next,
        trust=words.trust,
        verdict=_shown(verdict),
        verdict_needs=summary.verdict_needs,
        headroom=Headroom(
            at_most=None if verdict is None else verdict.at_most,
            text="" if verdict is None else gain_text(verdict),
            figures=tuple(_measured(summary.metrics)),
        ),
        findings=tuple(findings[:MOST_FINDINGS]),
        findings_left_out=max(len(findings) - MOST_FINDINGS, 0),
    )


def metrics(
    roots: Roots, path: str, names: Sequence[str] = (), points: Sequence[str] = ()
) -> Metrics:
    """The figures of a run or trace file: those of these names and points, or all. Raises
    UsageError for a name or point that it does not have.
    """
    place = roots.find(path)
    summary = _summary(place)
    known = dict.fromkeys(
        name
        for figures in (summary.metrics, *(point.metrics for point in summary.points))
        for name in figures
    )
    _require("figure", names, known)
    _require("point", points, dict.fromkeys(point.point for point in summary.points))
    left = MOST_FIGURES
    whole = () if points else tuple(islice(_named(summary.metrics, names), left))
    left -= len(whole)
    shown: list[PointFigures] = []
    for point in summary.points:
        if left and (not points or point.point in points):
            shown.append(_of_point(point, names, left))
            left -= len(shown[-1].figures)
    return Metrics(
        path=str(place),
        figures=whole,
        points=tuple(shown),
        figures_left_out=_asked(summary, names, points) - (MOST_FIGURES - left),
    )


def compare(roots: Roots, a: str, b: str, fail_on: str = "", top: int = 20) -> ComparedRuns:
    """Two runs or trace files side by side as `compare` says it, with `top` rows of each table and
    without the tree of operators. Raises UsageError for a condition in `fail_on` that is none.
    """
    from profharness.analysis.compare.gate import breaches, parse
    from profharness.understand.loose.sides import compare_sides, read_side

    conditions = parse(fail_on) if fail_on else ()
    first, second = (read_side(roots.find(path)) for path in (a, b))
    comparison = compare_sides(first, second)
    found = breaches(comparison, conditions)
    fields = {name: getattr(comparison, name) for name in comparison.__struct_fields__}
    whole = [len(table.rows) for table in comparison.hotspots]
    whole += [len(table.rows) for table in comparison.work]
    return ComparedRuns(
        **{
            **fields,
            **{
                name: msgspec.structs.replace(table, rows=table.rows[:top])
                for name in WORK_TABLES
                if (table := fields[name]) is not None
            },
            "tree": None,
            "points": comparison.points[:MOST_ROWS],
            "only_a": comparison.only_a[:MOST_ROWS],
            "only_b": comparison.only_b[:MOST_ROWS],
            "failed": comparison.failed[:MOST_ROWS],
            "hotspots": tuple(
                msgspec.structs.replace(table, rows=table.rows[:top])
                for table in comparison.hotspots
            ),
        },
        breaches=tuple(
            Breach(condition=one.condition, point=one.point, change=one.delta.change)
            for one in found[:MOST_ROWS]
        ),
        points_left_out=max(len(comparison.points) - MOST_ROWS, 0),
        rows_left_out=sum(max(rows - top, 0) for rows in whole),
    )


def _summary(path: Path) -> Summary:
    from profharness.trace.wanted import Wanted
    from profharness.understand import report_run as understand
    from profharness.understand.load import told

    return understand.summarise(told(understand.load([path], wanted=Wanted.SHOWN)))


def _shown(verdict: Verdict | None) -> ShownVerdict | None:
    if verdict is None:
        return None
    return ShownVerdict(kind=verdict.kind, text=verdict.text, at_most=verdict.at_most)


def _of_point(point: PointSummary, names: Sequence[str], most: int) -> PointFigures:
    return PointFigures(
        point=point.point,
        verdict=_shown(point.verdict),
        figures=tuple(islice(_named(point.metrics, names), most)),
    )


def _named(figures: Mapping[str, Figure], names: Sequence[str] = ()) -> Iterator[NamedFigure]:
    for name in names or figures:
        if name in figures:
            figure = figures[name]
            fields = {field: getattr(figure, field) for field in Figure.__struct_fields__}
            yield NamedFigure(
                name=name, title=titles.title_of(name), meaning=titles.meaning_of(name), **fields
            )


def _measured(figures: Mapping[str, Figure]) -> Iterator[NamedFigure]:
    return (figure for figure in _named(figures, _HEADROOM) if figures[figure.name].is_known)


def _asked(summary: Summary, names: Sequence[str], points: Sequence[str]) -> int:
    """How many figures were asked for and are there."""
    asked = [point.metrics for point in summary.points if not points or point.point in points]
    groups = asked if points else [summary.metrics, *asked]
    return sum(sum(name in group for name in names or group) for group in groups)


def _require(what: str, asked: Sequence[str], known: Mapping[str, object]) -> None:
    for name in asked:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            raise UsageError(
                f"there is no {what} {cut(name)!r} in it",
                f"did you mean {', '.join(map(cut, near))}?"
                if near
                else f"leave it out: then each {what} is told by its name",
            )
