"""The tasks of a job array as one summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.rundir.jobs.arrays import PlannedTask, TaskPlan, keep_plan
from profharness.understand.many.tasks import missing, tasks_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three tasks, of which two are done. Their throughput is 100 items/s for each item."""
    tasks = (PlannedTask(number=n, value=f"batch_sizes={2**n}") for n in range(3))
    keep_plan(tmp_path, TaskPlan(name="x", tasks=tuple(tasks)))
    for number in (0, 2):
        left(tmp_path, number)
    return tmp_path


def left(folder: Path, number: int) -> None:
    root, size = folder / f"{number:04d}-5", 2**number
    root.mkdir()
    facts = {"schema": 1, "id": root.name, "created": "", "state": "done", "exit_status": 0}
    scan = {"name": "x", "item": "jet", "settings": {"model": "a/m.onnx"}, "planned": {}}
    point = {"id": f"torch-b{size}", "pass_name": "bare", "backend": "torch", "state": "ok"}
    document = {**facts, "profharness": "0", "argv": [], "cwd": "/", "kind": "scan", "scan": scan}
    (root / "manifest.json").write_text(json.dumps({**document, "points": [point]}))
    shown = {"point": point["id"], "backend": "torch", "batch_size": size, "verdict": {"a": 1}}
    rates = {"throughput": 100.0 * size, "throughput_sem": 1.0, "latency_ms": 10.0}
    summary = {"points": [{**shown, **rates}], "findings": []}
    (root / "summary.json").write_text(json.dumps(summary))


def test_points_of_all_tasks_are_on_one_curve(folder: Path) -> None:
    tasks = tasks_of(folder)
    (curve,) = tasks.summary.series
    assert (list(curve.levels), curve.axis) == ([1, 4], "batch_size")
    assert [point.throughput for point in tasks.summary.points] == [100.0, 400.0]
    assert tasks.facts[:2] == ("m", "direct")


def test_the_command_fits_that_curve_and_tells_what_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["saturation", str(folder), "--json"]) == 0
    out, err = capsys.readouterr()
    assert [curve["levels"] for curve in json.loads(out)["series"]] == [[1, 4]]
    assert "1 of 3 tasks lack a run that is done: 1 (batch_sizes=2)" in err


def test_tasks_that_are_missing_have_names(folder: Path) -> None:
    (found,) = missing(tasks_of(folder).rows)
    assert (found.id, found.figures) == ("tasks-missing", {"missing": 1, "tasks": 3})
    assert found.message == "1 of 3 tasks lack a run that is done: 1 (batch_sizes=2)"


def test_where_all_are_done_none_is_missing(folder: Path) -> None:
    left(folder, 1)
    assert missing(tasks_of(folder).rows) == ()


def test_a_damaged_run_of_a_task_costs_no_other(folder: Path) -> None:
    (folder / "0002-5/summary.json").write_text("{")
    tasks = tasks_of(folder)
    assert [point.batch_size for point in tasks.summary.points] == [1]
    said = [found.message for found in tasks.summary.findings if found.id == "run-incomplete"]
    assert len(said) == 1
    assert said[0].startswith("task 2: ")
