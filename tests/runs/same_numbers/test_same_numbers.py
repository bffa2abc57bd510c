"""The numbers of one run, and of one trace file, are the same wherever they are told: the page, the
terminal, CSV, JSON, frames in Python, and an agent's tools.

`metrics --json` and `hotspots --json` hold them in full; what is printed must be these, rounded.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import profharness
from profharness.cli import run_cli
from profharness.report.text.names import title_of
from profharness.understand import frames
from tests.cli.test_hostile_names import trace
from tests.conftest import shared_path
from tests.runs.same_numbers.printed import Tables, read_back, text_of, with_later_rows
from tests.samples.keep import unpacked

if TYPE_CHECKING:
    from tests.agent_client import Agent

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("same-numbers")]

RUN, SERVED = "0.1-scan-torch", "0.1-served"
RECORDED = "fixtures/kineto/mi300x_bert_small.json.gz"
WHOLE = ""
HEADING = re.compile(r"\S.*:(?:  .*)?$")
Figures = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Told:
    """One run or trace file, with its numbers in full: figures by point (the whole has none), rows
    of hotspots, and the verdict or what it needs.
    """

    path: Path
    figures: Mapping[str, Figures]
    hotspots: Mapping[str, Any]
    verdict: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.hotspots["rows"]
        return rows


def said(*words: object) -> str:
    """What a command prints; it must end well."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert run_cli([*map(str, words)]) == 0, words
    return out.getvalue()


def told_of(path: Path) -> Told:
    document = json.loads(said("metrics", path, "--json"))
    points = {point["point"]: point["metrics"] for point in document["points"]}
    verdict = document["verdict"]
    return Told(
        path,
        {WHOLE: document["metrics"], **points},
        json.loads(said("hotspots", path, "--json")),
        verdict["text"] if verdict else document["verdict_needs"],
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return told_of(unpacked(RUN, tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="module")
def page(run: Told) -> str:
    """The run's page, written with all else that `report` keeps in it."""
    return page_of(run)


def page_of(run: Told) -> str:
    said("report", run.path)
    return (run.path / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Told:
    path: Path = tmp_path_factory.mktemp("file") / "trace.json"
    path.write_text(json.dumps(trace("gemm_kernel")))
    return told_of(path)


@pytest.fixture(scope="module")
def recorded(shared: Path) -> Told:
    return told_of(shared / RECORDED)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return told_of(unpacked(SERVED, tmp_path_factory.mktemp("served")))


@pytest.fixture(params=["run", "served", "made", "recorded"])
def either(request: pytest.FixtureRequest) -> Told:
    found: Told = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["made", "recorded"])
def file(request: pytest.FixtureRequest) -> Told:
    found: Told = request.getfixturevalue(request.param)
    return found


def measured(figures: Figures) -> dict[str, Mapping[str, Any]]:
    return {name: one for name, one in figures.items() if one["value"] is not None}


def same(a: float | None, b: float | None) -> bool:
    """The same number, not the same digits: a sum may be added in another order."""
    if a is None or b is None or math.isnan(float(b)):
        return a is None and (b is None or math.isnan(float(b)))
    return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-15)


def agree(printed: Iterable[tuple[str, str]], figures: Figures) -> int:
    """How many figures were printed, by name or title; each is one of those that are so called."""
    by_label: dict[str, list[str]] = {}
    for name in measured(figures):
        for label in {name, title_of(name)}:
            by_label.setdefault(label, []).append(name)
    seen: set[str] = set()
    for label, text in printed:
        names = by_label.get(label, ())
        fitting = [
            name
            for name in names
            if (back := read_back(text, figures[name]["unit"])) is not None
            and back.is_of(float(figures[name]["value"]))
        ]
        assert fitting or not names, (label, text, [figures[name] for name in names])
        seen.update(fitting)
    return len(seen)


# ------------------------------------------------------------------ the terminal


def blocks(text: str) -> list[list[tuple[str, str]]]:
    """What `metrics` prints: below each heading, the first two cells of its lines."""
    found: list[list[tuple[str, str]]] = []
    for line in text.splitlines():
        if HEADING.match(line):
            found.append([])
        elif line.startswith("  ") and found:
            cells = [cell for cell in line.strip().split("  ") if cell.strip()]
            if len(cells) > 1:
                found[-1].append((cells[0].strip(), cells[1].strip()))
    return found


def test_the_terminal_prints_the_figures(either: Told) -> None:
    known = {label for name in either.figures[WHOLE] for label in (name, title_of(name))}
    printed = [
        block
        for block in blocks(said("metrics", either.path))
        if sum(label in known for label, _ in block) > 3
    ]
    assert len(printed) == len(either.figures)
    for block, figures in zip(printed, either.figures.values(), strict=True):
        assert agree(block, figures) >= len(measured(figures)) // 2 > 3


def test_the_terminal_prints_the_rows(either: Told) -> None:
    lines = said("hotspots", either.path, "--top", 3).splitlines()
    for row, line in zip(either.rows[:3], lines[2:5], strict=False):
        share, total, calls = [cell.strip() for cell in line.split("  ") if cell.strip()][:3]
        assert row["name"] in line
        assert read_back(share, "share").is_of(row["share"])
        assert read_back(total, "ns").is_of(row["total_ns"])
        assert read_back(calls, "").is_of(row["calls"])


def test_the_terminal_says_the_verdict(either: Told) -> None:
    assert either.verdict
    assert either.verdict in " ".join(said("metrics", either.path).split())


def test_the_summary_of_a_run_prints_throughput_and_latency(run: Told) -> None:
    lines = said("report", run.path).splitlines()
    rows = [line.split("  ") for line in lines[1 : len(run.figures)]]
    for row, figures in zip(rows, list(run.figures.values())[1:], strict=True):
        _, rate, latency = [cell.strip() for cell in row if cell.strip()][:3]
        # the unit of the rate stands in the head of its column
        assert read_back(rate, "").is_of(figures["throughput"]["value"])
        assert read_back(latency, figures["latency_p50"]["unit"]).is_of(
            figures["latency_p50"]["value"]
        )


# ------------------------------------------------------------------ the page


def test_the_page_holds_the_figures(run: Told, page: str) -> None:
    tables = list(figure_tables(page))
    assert len(tables) == len(run.figures)
    for table, figures in zip(tables, run.figures.values(), strict=True):
        assert agree(table, figures) == len(measured(figures))


def test_the_page_of_a_served_scan_holds_the_same(served: Told) -> None:
    page = page_of(served)
    tables = list(figure_tables(page))
    assert len(tables) == len(served.figures)
    for table, figures in zip(tables, served.figures.values(), strict=True):
        assert agree(table, figures) == len(measured(figures))
    rows = next(rows for caption, rows in Tables(page).tables if caption.startswith("The points"))
    points = list(served.figures.values())[1:]
    for shown, figures in zip(rows[1:], points, strict=True):
        cells = dict(zip(rows[0], shown, strict=True))
        assert read_back(cells["items/s"], "").is_of(figures["throughput"]["value"])
        for title in ("latency p50", "latency p99"):
            if title in cells and (figure := figures[title.replace(" ", "_")])["value"]:
                assert read_back(cells[title], figure["unit"]).is_of(figure["value"])
    with (served.path / "results.csv").open(encoding="utf-8") as results:
        rates = [float(row["throughput"]) for row in csv.DictReader(results)]
    for rate, figures in zip(rates, points, strict=True):
        assert same(rate, figures["throughput"]["value"])


def figure_tables(page: str) -> Iterator[list[tuple[str, str]]]:
    """The figures of the whole, then those of each point: in tables of their own, or in one whose
    first column names the point.
    """
    for _, (head, *rows) in Tables(with_later_rows(page)).tables:
        if head[:2] == ["figure", "value"]:
            yield [(row[0], row[1]) for row in rows]
        elif head[:3] == ["point", "figure", "value"]:
            for point in dict.fromkeys(row[0] for row in rows):
                yield [(row[1], row[2]) for row in rows if row[0] == point]


def test_the_page_holds_the_rows(run: Told, page: str) -> None:
    rows = next(rows for caption, rows in Tables(page).tables if caption.startswith("Operations"))
    head = rows[0]
    for row, shown in zip(run.rows, rows[1:], strict=False):
        cells = dict(zip(head, shown, strict=True))
        assert cells["name"] == row["name"]
        assert read_back(cells["calls"], "").is_of(row["calls"])
        assert read_back(cells["total"], "ns").is_of(row["total_ns"])
        assert read_back(cells["share"], "share").is_of(row["share"])
    assert len(rows) > 3


def test_the_page_holds_the_points_and_the_verdict(run: Told, page: str) -> None:
    rows = next(rows for caption, rows in Tables(page).tables if caption.startswith("The points"))
    for shown, figures in zip(rows[1:], list(run.figures.values())[1:], strict=True):
        cells = dict(zip(rows[0], shown, strict=True))
        rate = read_back(cells["items/s"], "")
        assert rate.is_of(figures["throughput"]["value"])
        assert read_back(cells["latency p50"], (p50 := figures["latency_p50"])["unit"]).is_of(
            p50["value"]
        )
    assert run.verdict in text_of(page)


def test_the_page_of_a_trace_file_holds_the_same(file: Told, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    if run_cli(["report", str(file.path), "-o", str(out)]) == 4:
        pytest.skip("reports are of runs alone")
    text = out.read_text(encoding="utf-8")
    figures = file.figures[WHOLE]
    assert agree(next(figure_tables(text)), figures) == len(measured(figures))
    assert file.verdict in text_of(text)


# ------------------------------------------------------------------ tables and documents


def test_the_tables_of_a_run_hold_the_numbers_in_full(run: Told, page: str) -> None:
    results = list(csv.DictReader((run.path / "results.csv").open(encoding="utf-8")))
    for row, figures in zip(results, list(run.figures.values())[1:], strict=True):
        assert same(float(row["throughput"]), figures["throughput"]["value"])
        assert same(float(row["latency_ms"]) * 1e6, in_ns(figures["latency_mean"]))
    in_rows(csv.DictReader((run.path / "hotspots.csv").open(encoding="utf-8")), run)


def in_ns(figure: Mapping[str, Any]) -> float:
    return float(figure["value"]) * {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}[figure["unit"]]


def in_rows(table: Iterable[dict[str, str]], told: Told) -> None:
    rows = list(table)
    assert [row["name"] for row in rows] == [row["name"] for row in told.rows]
    for row, whole in zip(rows, told.rows, strict=True):
        for key in ("calls", "total_ns", "share", "mean_ns", "kernel_ns", "flops"):
            assert same(float(row[key]) if row[key] else None, whole[key]), (key, row)


def test_csv_of_hotspots_holds_the_numbers_in_full(either: Told) -> None:
    in_rows(csv.DictReader(io.StringIO(said("hotspots", either.path, "--format", "csv"))), either)


def test_the_documents_of_a_run_hold_the_same_numbers(run: Told, page: str) -> None:
    summary = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
    points = {WHOLE: summary["metrics"]} | {
        point["point"]: point["metrics"] for point in summary["points"]
    }
    assert points.keys() == run.figures.keys()
    for point, figures in points.items():
        assert figures.keys() == run.figures[point].keys()
        for name, figure in figures.items():
            for key in ("value", "low", "high"):
                assert same(figure[key], run.figures[point][name][key]), (point, name)
    printed = json.loads(said("report", run.path, "--json"))
    for row in printed["points"]:
        figures = run.figures[row["point"]]
        assert same(row["throughput"], figures["throughput"]["value"])
        assert same(row["latency_ms"] * 1e6, in_ns(figures["latency_mean"]))
    for document in (summary, printed):
        verdict = document["verdict"]
        assert (verdict["text"] if verdict else document["verdict_needs"]) == run.verdict
    assert [row["total_ns"] for row in summary["hotspots"][0]["rows"]] == [
        row["total_ns"] for row in run.rows
    ]


# ------------------------------------------------------------------ Python


def test_frames_hold_the_numbers_in_full(either: Told) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figures, rows = frames.metrics(either.path), frames.hotspots(either.path)
    in_frame(figures.to_dict("records"), "figure", either)
    for row, whole in zip(rows.to_dict("records"), either.rows, strict=True):
        assert row["name"] == whole["name"]
        for key in ("calls", "total_ns", "share", "mean_ns"):
            assert same(whole[key], row[key]), key


def in_frame(rows: list[dict[str, Any]], name: str, told: Told) -> None:
    assert len(rows) == sum(map(len, told.figures.values()))
    for row in rows:
        point = row.get("point")
        whole = told.figures[point if isinstance(point, str) else WHOLE][row[name]]
        assert row["unit"] == whole["unit"]
        for key in ("value", "low", "high"):
            assert same(whole[key], row[key]), row


def test_points_of_frames_are_those_of_the_run(run: Told) -> None:
    for row in frames.points(run.path).to_dict("records"):
        figures = run.figures[row["point"]]
        for end in ("value", "low", "high"):
            column = "throughput" if end == "value" else f"throughput_{end}"
            assert same(figures["throughput"][end], row[column])
        assert same(in_ns(figures["latency_p50"]), row["latency_p50"] * 1e6)


@pytest.mark.skipif(not hasattr(profharness, "open"), reason="needs profharness.open")
def test_the_python_api_holds_the_numbers_in_full(either: Told) -> None:
    opened = profharness.open if either.path.is_dir() else profharness.read  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = opened(either.path)
        figures, rows = one.metrics(), one.hotspots()
    whole = [row for row in figures.to_dict("records") if not isinstance(row.get("point"), str)]
    assert {row["name"] for row in whole} == either.figures[WHOLE].keys()
    for row in whole:
        assert same(either.figures[WHOLE][row["name"]]["value"], row["value"]), row
    assert list(rows["name"]) == [row["name"] for row in either.rows]
    assert list(rows["total_ns"]) == [row["total_ns"] for row in either.rows]


# ------------------------------------------------------------------ agents


@pytest.fixture(scope="module")
def asked(run: Told, served: Told, made: Told) -> Iterator[Agent]:
    """One server for all of them."""
    pytest.importorskip("mcp")
    from tests.agent_client import agent

    folders = [one.path.parent for one in (run, served, made)]
    recorded = shared_path(RECORDED).parent
    with agent(*folders, *([recorded] if recorded.is_dir() else [])) as one:
        yield one


def test_an_agent_gets_the_numbers_in_full(either: Told, asked: Agent) -> None:
    path = str(either.path)
    groups = {WHOLE: asked.ask("metrics", path=path, names=[])["figures"]}
    for point in list(either.figures)[1:]:
        answer = asked.ask("metrics", path=path, points=[point])
        groups[point] = answer["points"][0]["figures"]
        assert answer["figures_left_out"] == 0
    rows = asked.ask("hotspots", path=path, top=200)["rows"]
    answer = asked.ask("answer", path=path)
    for point, figures in groups.items():
        assert [figure["name"] for figure in figures] == list(either.figures[point])
        for figure in figures:
            whole = either.figures[point][figure["name"]]
            assert figure["unit"] == whole["unit"]
            for key in ("value", "low", "high"):
                assert same(figure[key], whole[key]), figure
    assert [row["total_ns"] for row in rows] == [row["total_ns"] for row in either.rows][:200]
    verdict = answer["verdict"]
    assert (verdict["text"] if verdict else answer["verdict_needs"]) == either.verdict
