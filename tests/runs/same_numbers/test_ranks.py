"""Of the files of several ranks, too, the numbers are the same wherever they are told."""

from __future__ import annotations

import csv
import io
import json
import warnings
from pathlib import Path

import pytest

import profharness
from profharness.understand import frames
from tests.generated import generate
from tests.runs.same_numbers.printed import text_of
from tests.runs.same_numbers.test_same_numbers import (
    WHOLE,
    Told,
    agree,
    blocks,
    figure_tables,
    in_frame,
    in_rows,
    measured,
    said,
    same,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("same-numbers-of-ranks")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("ranks")
    return [
        generate(folder, f"rank{n}.json", 400, "--seed", str(n), "--rank", str(n)).path
        for n in range(3)
    ]


@pytest.fixture(scope="module")
def told(files: list[Path]) -> Told:
    document = json.loads(said("metrics", *files, "--json"))
    assert document["trace"]["ranks"] == 3
    verdict = document["verdict"]
    return Told(
        files[0],
        {WHOLE: document["metrics"]},
        json.loads(said("hotspots", *files, "--json")),
        verdict["text"] if verdict else document["verdict_needs"],
    )


def test_the_terminal_prints_the_same(told: Told, files: list[Path]) -> None:
    text = said("metrics", *files)
    figures = told.figures[WHOLE]
    assert max(agree(block, figures) for block in blocks(text)) >= len(measured(figures)) // 2 > 3
    assert told.verdict in " ".join(text.split())


def test_the_page_holds_the_same(told: Told, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    said("report", *files, "-o", out)
    page = out.read_text(encoding="utf-8")
    figures = told.figures[WHOLE]
    assert agree(next(figure_tables(page)), figures) == len(measured(figures))
    assert told.verdict in text_of(page)


def test_csv_and_json_hold_the_numbers_in_full(
    told: Told, files: list[Path], tmp_path: Path
) -> None:
    in_rows(csv.DictReader(io.StringIO(said("hotspots", *files, "--format", "csv"))), told)
    document = json.loads(said("report", *files, "--json", "-o", tmp_path / "page.html"))
    assert document["metrics"] == told.figures[WHOLE]


def test_python_holds_the_numbers_in_full(told: Told, files: list[Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = profharness.read(*files)
        of_api, rows = opened.metrics(), opened.hotspots()
        in_frame(frames.metrics(files).to_dict("records"), "figure", told)
    assert {row["name"] for row in of_api.to_dict("records")} == told.figures[WHOLE].keys()
    for row in of_api.to_dict("records"):
        assert same(told.figures[WHOLE][row["name"]]["value"], row["value"]), row
    assert list(rows["name"]) == [row["name"] for row in told.rows]
    assert list(rows["total_ns"]) == [row["total_ns"] for row in told.rows]
