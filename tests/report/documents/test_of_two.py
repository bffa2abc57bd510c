"""A comparison in Markdown, PDF and as a notebook: the same changes as `compare` tells."""

from __future__ import annotations

import ast
import json
import re

import msgspec
import pytest

from profharness.analysis.compare.records import Comparison
from profharness.analysis.compare.runs import compare
from profharness.analysis.records import Figure, Summary
from profharness.report.documents import pdf as pdf_pages
from profharness.report.documents.figures import figures_of_two
from profharness.report.documents.markdown import markdown, paragraph
from profharness.report.documents.notebook import Opened, cells_of_two, notebook
from profharness.report.documents.of_two import CHANGES, extract_two
from profharness.report.md.comparison import comparison_markdown
from profharness.report.tables.both import both_points_table
from profharness.report.tables.comparison import delta_values, over_text
from profharness.report.text.comparison import answer
from profharness.report.text.limits import short_verdict
from tests.report.samples import SAMPLES, command, gpu_scan

HOSTILE = "x | y `$(id)` <img src=x onerror=alert(1)> [a](http://e.org)"


def faster(summary: Summary, factor: float = 1.25) -> Summary:
    """The same points with their figures so many times as large."""

    def scaled(figure: Figure) -> Figure:
        value, low, high = (
            None if one is None else factor * one for one in (figure.value, figure.low, figure.high)
        )
        return msgspec.structs.replace(figure, value=value, low=low, high=high)

    points = tuple(
        msgspec.structs.replace(
            point, metrics={name: scaled(one) for name, one in point.metrics.items()}
        )
        for point in summary.points
    )
    metrics = {name: scaled(one) for name, one in summary.metrics.items()}
    return msgspec.structs.replace(summary, points=points, metrics=metrics)


@pytest.fixture(params=SAMPLES)
def both(request: pytest.FixtureRequest) -> tuple[Comparison, Summary, Summary]:
    a = SAMPLES[request.param]()
    b = faster(a)
    return compare(a, b), a, b


def test_the_page_says_what_compare_says(both):
    text = markdown(extract_two(*both))
    assert f"\n{paragraph('Answer', answer(both[0]))}\n" in text
    assert len(re.findall(r"^\*\*[AB]\*\* ", text, re.MULTILINE)) == 2
    assert "\n\n\n" not in text
    for rows in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()}) == 1


def change_rows(text: str) -> list[str]:
    """The rows of the table of changes, however wide its columns are."""
    (table,) = re.findall(r"^\| point.*what it says.*\n(?:\|.*\n)+", text, re.MULTILINE)
    return [re.sub(r" +", " ", row) for row in table.splitlines()[2:]]


def test_the_table_of_changes_is_that_of_compare():
    a = gpu_scan()
    found = compare(a, faster(a))
    rows = change_rows(comparison_markdown(found, ()))
    text = markdown(extract_two(found, a, faster(a)))
    assert change_rows(text) == rows[:CHANGES]
    assert f"{len(rows) - CHANGES} further rows are not shown." in text
    assert all(" times |" in row for row in rows)


def test_a_row_for_each_point_with_both_verdicts():
    a = gpu_scan()
    found = compare(a, faster(a))
    table = both_points_table(found, a, a)
    assert table is not None
    titles = [column.title for column in table.columns]
    assert titles[:4] == ["point", "throughput, A", "B", "B over A"]
    assert titles[-2:] == ["verdict, A", "verdict, B"]
    for row, point, summary in zip(table.rows, found.points, a.points, strict=True):
        texts = [cell.text for cell in row]
        (rate,) = [delta for delta in point.deltas if delta.name == "throughput"]
        assert texts[0] == point.point
        assert texts[3] == over_text(rate)
        assert texts[-1] == texts[-2] == short_verdict(summary.verdict, summary.partition)


def test_of_commands_the_figures_of_the_whole_stand_in_markdown_too():
    a = command()
    text = comparison_markdown(compare(a, faster(a)), ())
    assert "Nothing in common" not in text
    rows = [line for line in text.splitlines() if line.startswith("| whole run")]
    assert any("steps per second" in row and "1.25" in row for row in rows)


def test_every_change_has_a_row_for_programs():
    a = gpu_scan()
    found = compare(a, faster(a))
    table = delta_values(found)
    rows = [[cell.value for cell in row] for row in table.rows]
    expected = [(p.point, d.name, d.a, d.b) for p in found.points for d in p.deltas]
    expected += [(None, d.name, d.a, d.b) for d in found.run]
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == expected


def test_names_are_text():
    a = msgspec.structs.replace(command(), run=None, source=f"{HOSTILE}.json")
    text = markdown(extract_two(compare(a, command()), a, command()))
    assert "\\<img" in text
    assert not re.search(r"(?<!\\)<img|(?<!\\)`\$|(?<!\\)\[a\]", text)


def test_a_notebook_opens_both_and_compares_them(both):
    nbformat = pytest.importorskip("nbformat")
    opened = Opened(['it\'s "a"'], "run"), Opened(["b.json"], "recording")
    written = notebook(cells_of_two(extract_two(*both), both[0], opened))
    nbformat.validate(nbformat.reads(written.decode(), as_version=4))
    code = ["".join(c["source"]) for c in json.loads(written)["cells"] if c["cell_type"] == "code"]
    for source in code:
        ast.parse(source)
    a, b = ast.parse(code[0]).body[1:]
    assert ast.unparse(a) == "a = profharness.open('it\\'s \"a\"')"
    assert ast.unparse(b) == "b = profharness.read('b.json')"
    assert "a.compare(b)" in code


@pytest.mark.slow
def test_a_pdf_is_one_page_and_the_same_each_time(both):
    pytest.importorskip("matplotlib")
    page = pdf_pages.pdf(extract_two(*both), figures_of_two(*both[1:]))
    assert len(re.findall(rb"/Type /Page\b", page)) == 1
    assert page == pdf_pages.pdf(extract_two(*both), figures_of_two(*both[1:]))
