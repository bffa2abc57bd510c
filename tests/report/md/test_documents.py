"""The documents in Markdown: the same rows and figures as the tables for a terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from profharness.analysis.compare.gate import breaches, parse
from profharness.analysis.compare.runs import compare
from profharness.analysis.records import Figure, Summary
from profharness.cli import run_cli
from profharness.report.md.comparison import comparison_markdown
from profharness.report.md.hotspots import hotspots_markdown
from profharness.report.md.metrics import metrics_markdown, points_markdown
from profharness.report.md.saturation import saturation_markdown
from profharness.report.tables.scan import scan_table
from tests.report.samples import command, cpu_scan, empty, gpu_hotspots, gpu_scan, odd_numbers


def tables(text: str) -> list[list[list[str]]]:
    """The cells of each table in a document; every row has as many as its heads."""
    found: list[list[list[str]]] = []
    before = False
    for line in text.splitlines():
        is_row = line.startswith("|")
        if is_row:
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if not before:
                found.append([])
            found[-1].append(cells)
        before = is_row
    for table in found:
        assert {len(row) for row in table} == {len(table[0])}
    return found


def test_points_have_the_cells_of_the_terminals_table() -> None:
    summary = gpu_scan()
    table = scan_table(summary)
    assert table is not None
    ((_, _, *rows),) = tables(points_markdown(summary))
    assert len(rows) == len(summary.points)
    assert rows[0][0] == table.rows[0][0].text
    assert any("±" in cell for cell in rows[0])


@pytest.mark.parametrize("summary", [gpu_scan(), cpu_scan(), command(), odd_numbers(), empty()])
def test_every_summary_has_a_document(summary: Summary) -> None:
    text = metrics_markdown(summary)
    assert text.startswith("## ")
    assert "\n\n\n" not in text
    tables(text)


def scaled(figure: Figure, factor: float) -> Figure:
    value, low, high = (
        None if one is None else factor * one for one in (figure.value, figure.low, figure.high)
    )
    return msgspec.structs.replace(figure, value=value, low=low, high=high)


def test_a_comparison_says_how_many_times() -> None:
    before = gpu_scan()
    points = tuple(
        msgspec.structs.replace(
            point, metrics={name: scaled(one, 1.25) for name, one in point.metrics.items()}
        )
        for point in before.points
    )
    found = compare(before, msgspec.structs.replace(before, points=points))
    broken = breaches(found, parse("throughput>5%"))
    text = comparison_markdown(found, broken)
    (head, _, *rows), *_ = tables(text)
    assert head == ["point", "figure", "A", "B", "B over A", "what it says"]
    rates = [row[4] for row in rows if row[1] == "throughput"]
    assert len(rates) == len(points)
    assert all(re.fullmatch(r"1\.2[45]\d* ± 0\.0\d+ times", rate) for rate in rates)
    assert text.count("- fails `throughput") == len(broken) > 0


def test_hotspots_have_their_name_first() -> None:
    table = gpu_hotspots()
    ((head, _, *rows),) = tables(hotspots_markdown(table, 2))
    assert head[0] == "name"
    assert rows[0][0].startswith("Cijk")
    assert len(rows) == 2


def test_levels_of_a_curve() -> None:
    curves = gpu_scan().series
    text = saturation_markdown(curves)
    for curve, (_, _, *rows) in zip(curves, tables(text), strict=True):
        assert len(rows) == len(curve.levels)
        assert max(rows, key=lambda row: int(row[2].split()[0]))[2] == "100 %"


@pytest.mark.parametrize("words", [("metrics",), ("hotspots", "--by", "op"), ("compare",)])
def test_on_the_command_line(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a|b\n| forged | <img>"
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    files = [str(path)] * (2 if words == ("compare",) else 1)
    assert run_cli([words[0], *files, *words[1:], "--format", "md"]) == 0
    text = capsys.readouterr().out
    assert "<img>" not in text
    assert not any(line.startswith("| forged") for line in text.splitlines())
    if words[0] == "hotspots":
        assert r"a\|b\\n\| forged \| \<img\>" in text or r"a\|b \| forged \| \<img\>" in text


def test_lines_of_code_have_no_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": []}))
    assert run_cli(["hotspots", str(path), "--by", "line", "--format", "md"]) == 2
    assert "--format md is not for rows by line" in capsys.readouterr().err
