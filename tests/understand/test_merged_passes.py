"""A merged file of a run with several passes: its figures are of the pass that the run's own
hotspots are of, and not of all together.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.readers.perfetto.passes import ATTRIBUTE, MergedPass, merged_passes
from profharness.understand.load import load
from profharness.understand.merge.command import MergeOptions, merge_to_file
from profharness.understand.report_run import finish
from tests.fakes.rocprofv3_program import program
from tests.understand.test_device_use import run_of

KERNELS = 20


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pass of torch and one of counters, each with the same kernels."""
    root = tmp_path_factory.mktemp("run")
    run_of(root, program(3, KERNELS, pid=1, host="node1", counters=True))
    finish(root)
    return root


def answer(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, object]:
    assert run_cli([*map(str, words), "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_the_figures_are_of_the_pass_of_the_hotspots(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merged = run / "merged.pftrace"
    kernels = len(load([merged], every_pass=True).trace.kernels)
    tables = [answer(capsys, "hotspots", path) for path in (run, merged)]
    figures = answer(capsys, "metrics", merged)
    chosen = tables[0]["pass"]
    assert tables[1]["pass"] == chosen
    rows = [
        [(row["name"], row["calls"], row["total_ns"]) for row in table["rows"]] for table in tables
    ]
    assert rows[0] == rows[1]
    assert figures["trace"]["pass"] == chosen
    assert figures["trace"]["kernels"] == sum(row[1] for row in rows[0])
    assert kernels == 2 * figures["trace"]["kernels"]
    notes = [row for row in figures["problems"] if "were merged into this file" in row["message"]]
    assert [(row["severity"], row["count"]) for row in notes] == [("info", 2)]
    assert f"(torch, counters): its figures are of {chosen}" in notes[0]["message"]
    # the counters of the other pass speak for the kernels of this one, as in the run
    assert [row["counter"] for row in tables[0]["counters"]] == [
        row["counter"] for row in tables[1]["counters"]
    ]


def test_a_file_is_judged_alike_alone_and_among_others(run: Path, tmp_path: Path) -> None:
    from profharness.understand.loose.summaries import summarise_paths
    from profharness.understand.many.figures import summarise_files

    alone, among = (ask([run / "merged.pftrace"]) for ask in (summarise_paths, summarise_files))
    assert (among.trace, among.metrics) == (alone.trace, alone.metrics)


def test_merging_it_again_keeps_every_pass(run: Path, tmp_path: Path) -> None:
    merged = run / "merged.pftrace"
    again = merge_to_file([merged], tmp_path / "again.pftrace", MergeOptions()).path
    first, second = (load([path], every_pass=True).trace for path in (merged, again))
    assert len(second.kernels) == len(first.kernels)
    assert [source.pass_name for source in second.sources] == [
        source.pass_name for source in first.sources
    ]


def test_passes_stand_in_the_order_of_their_tools_files() -> None:
    sources = (
        *(("bare", "trials"), ("onnxruntime", "trials"), ("torch", "trials"), ("", "telemetry")),
        *(("torch", "torch"), ("onnxruntime", "onnxruntime")),
    )
    told = {
        f"{ATTRIBUTE}{number}.{what}": value
        for number, source in enumerate(sources)
        for what, value in zip(("pass", "layer"), source, strict=True)
    }
    expected = (
        MergedPass("bare", ("trials",)),
        MergedPass("torch", ("trials", "torch")),
        MergedPass("onnxruntime", ("trials", "onnxruntime")),
    )
    assert merged_passes(told) == expected
    assert merged_passes(told | {f"{ATTRIBUTE}{'9' * 5000}.pass": "x"}) == expected
