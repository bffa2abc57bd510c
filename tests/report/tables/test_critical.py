"""The critical path and forecasts in every form of the report."""

from __future__ import annotations

import json

import msgspec

from profharness.analysis.critical.records import (
    BatchForecast,
    CriticalPath,
    Forecast,
    PathPart,
    PathRow,
    RankPath,
    Refusal,
    StepForecast,
)
from profharness.analysis.records import Summary
from profharness.report.documents.extract import extract
from profharness.report.documents.markdown import markdown
from profharness.report.json import run_json, summary_json
from profharness.report.md.metrics import metrics_markdown
from profharness.report.page import html
from profharness.report.tables.critical import critical_tables
from profharness.report.text.measured.critical_path import critical_path_text
from profharness.report.text.terminal import render
from tests.report import samples

MS = 1_000_000


def what_if(change: str, forecast_ns: int, **more: object) -> Forecast:
    return Forecast(
        change=change,
        window_ns=40 * MS,
        forecast_ns=forecast_ns,
        steps=4,
        at_most_ns=30 * MS,
        next_limit="kernel",
        next_limit_share=0.9,
        touched=0 if forecast_ns == 40 * MS else 3,
        residual_ns=0,
        **more,  # type: ignore[arg-type]
    )


def path(point: str = "", places: dict[str, int] | None = None) -> RankPath:
    rows = (
        PathRow(
            kind="kernel", name="gemm", operator="aten::mm", ns=30 * MS, share=0.75, segments=4
        ),
        PathRow(kind="host_operator", name="aten::add", ns=10 * MS, share=0.25, segments=2),
    )
    if places:
        rows = tuple(msgspec.structs.replace(row, process="rank 1") for row in rows)
    return RankPath(
        process="rank 0",
        point=point,
        rank=0,
        window="4 steps",
        start_ns=0,
        window_ns=40 * MS,
        segments={
            "kernel": PathPart(ns=30 * MS, segments=4),
            "host_operator": PathPart(ns=10 * MS, segments=2),
        },
        rows=rows,
        steps=(),
        what_if=(
            what_if("no change", 40 * MS),
            what_if("graphs", 32 * MS),
            what_if("no-sync", 28 * MS),
            what_if("dataloader", 40 * MS),
        ),
        places=places or {},
    )


def of_all(*paths: RankPath, **more: object) -> CriticalPath:
    return CriticalPath(
        window_ns=sum(one.window_ns for one in paths),
        segments=paths[0].segments,
        processes=paths,
        **more,  # type: ignore[arg-type]
    )


BATCHES = (
    BatchForecast(
        size=4,
        rests_on=(1, 16),
        inside=True,
        traced=StepForecast(
            forecast_ns=11 * MS,
            low_ns=9 * MS,
            high_ns=12 * MS,
            measured_ns=10 * MS,
            measured_low_ns=10 * MS,
            measured_high_ns=10 * MS,
            error=0.1,
        ),
        bare=StepForecast(forecast_ns=8 * MS, low_ns=7 * MS, high_ns=9 * MS),
    ),
)


def scan() -> Summary:
    return msgspec.structs.replace(
        samples.cpu_scan(),
        critical_path=of_all(path("b4"), batches=BATCHES),
    )


def test_changes_that_shorten_the_window_stand_by_their_gain() -> None:
    titles = {table.title: table for table in critical_tables(of_all(path()))}
    worth = titles["What a change would be worth"]
    assert [[cell.text for cell in row] for row in worth.rows] == [
        ["no-sync", "10.00 ms", "at most -75.0 %"],
        ["graphs", "10.00 ms", "at most -75.0 %"],
    ]
    assert worth.note == (
        "The replay without a change misses the measured window by 0 ns. Recording itself slows a "
        "host that launches much, so that graphs gain less of a run that nobody records."
    )


def test_rows_of_a_path_over_ranks_say_where_they_lie() -> None:
    crossing = path(places={"rank 1": 40 * MS})
    titles = {table.title: table for table in critical_tables(of_all(crossing))}
    assert titles["What lies on it most"].columns[-1].title == "on"
    assert [row[-1].text for row in titles["What lies on it most"].rows] == ["rank 1", "rank 1"]
    text = critical_path_text(of_all(crossing))
    assert "it lies on rank 1 100.0 %" in text
    assert "kernels: gemm of aten::mm on rank 1, 4 times" in text


def test_each_form_has_the_batch_sizes_with_their_errors() -> None:
    summary = scan()
    wide = str(render(summary, 140, color=False))
    for text in (
        wide,
        metrics_markdown(summary),
        markdown(extract(summary)),
        html.render(summary),
        critical_path_text(summary.critical_path),
    ):
        assert "A step of each batch size" in text
        assert "11.00 ms" in text
        assert "+10.0 %" in text
    assert "no-sync: 10.00 ms, at most -75.0 %" in wide


def test_json_has_the_forecasts_without_what_touches_nothing() -> None:
    document = json.loads(run_json(scan()))["forecasts"]
    [process] = document["processes"]
    assert [made["change"] for made in process["what_if"]] == ["graphs", "no-sync"]
    assert [made["forecast_ns"] for made in process["what_if"]] == [None, None]
    assert document["batches"][0]["traced"]["error"] == 0.1
    whole = json.loads(summary_json(scan()))["critical_path"]
    assert whole["batches"][0]["rests_on"] == [1, 16]
    told = {made["change"]: made["forecast_ns"] for made in whole["processes"][0]["what_if"]}
    assert (told["no change"], told["graphs"], told["no-sync"]) == (40 * MS, None, None)


def test_a_command_shows_the_path_in_the_terminal() -> None:
    summary = msgspec.structs.replace(samples.command(), critical_path=of_all(path()))
    text = str(render(summary, 120, color=False))
    assert "critical path" in text
    assert "kernels 75.0 %, host: operators 25.0 %" in text
    assert "graphs: 10.00 ms, at most -75.0 %" in text


def test_changes_are_those_of_the_rank_that_holds_the_longest_path() -> None:
    """Rank 0's path is the longest, and lies on rank 1, where one change gains most."""
    first = path(places={"rank 1": 30 * MS, "rank 0": 10 * MS})
    there = (what_if("no change", 40 * MS), what_if("op:^aten::mm$=0.5", 21 * MS))
    second = msgspec.structs.replace(path(), process="rank 1", rank=1, what_if=there)
    found = of_all(first, msgspec.structs.replace(second, window_ns=39 * MS))
    titles = [table.title for table in critical_tables(found)]
    assert "What a change would be worth of rank 1" in titles
    summary = msgspec.structs.replace(samples.command(), critical_path=found)
    text = " ".join(str(render(summary, 140, color=False)).split())
    assert "rank 0 (rank 1 holds 75.0 %): kernels 75.0 %" in text
    assert "gemm on rank 1 75.0 %" in text
    assert "op:^aten::mm$=0.5 on rank 1: 10.00 ms, at most -75.0 %" in text
    assert "replayed without a change: 40.00 ms, 0 ns off what was measured" in text


def test_what_cannot_be_forecast_is_said() -> None:
    refused = (Refusal(change="batch=64", why="too far"),)
    assert critical_path_text(of_all(path(), refused=refused)).endswith(
        "no forecast of batch=64: too far\n"
    )
    text = critical_path_text(of_all(path()))
    assert "    no-sync: step 10.00 ms, at most -75.0 %\n" in text
    assert "graphs: step 10.00 ms, at most -75.0 %\n" in text
