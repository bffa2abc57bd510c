"""A certificate, and the check of one, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.certificate.records import Judged, Judgement
from profharness.report.certificate.words import interval_text, limit_text
from profharness.rundir.shown.screen import lines_text, one_line


def text(judgement: Judgement) -> str:
    """The answer, and a line for each criterion."""
    return lines_text(_lines(judgement))


def _lines(judgement: Judgement) -> Iterator[str]:
    yield one_line(judgement.answer)
    width = max(len(one.id) for one in judgement.judged)
    for one in judgement.judged:
        yield one_line(f"  {one.id:<{width}}  {one.state:<14}  {_said(one)}")


def _said(one: Judged) -> str:
    measured = one.value is not None or interval_text(one)
    said = f"{one.text} ({_numbers(one)})" if measured and one.threshold else one.text
    return f"{said}; needs {one.needs}" if one.needs else said


def _numbers(one: Judged) -> str:
    """The interval and the threshold; the value stands in the sentence."""
    interval = interval_text(one)
    return f"{interval}; {limit_text(one)}" if interval else limit_text(one)
