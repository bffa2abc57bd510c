"""The results folder of a job array: one plan however many tasks begin at once, and what became of
each task.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from profharness.errors import InputError, UsageError
from profharness.rundir.jobs import arrays
from profharness.rundir.jobs.arrays import PlannedTask, TaskPlan


def plan(*values: str) -> TaskPlan:
    tasks = (PlannedTask(number=number, value=value) for number, value in enumerate(values))
    return TaskPlan(name="x", tasks=tuple(tasks))


def left(folder: Path, name: str, state: str = "done", *, status: int = 0, at: int = 0) -> None:
    root = folder / name
    root.mkdir()
    facts = {"id": name, "created": f"2026-01-01T00:00:{at:02d}Z", "state": state}
    (root / "manifest.json").write_text(json.dumps({"schema": 1, "exit_status": status, **facts}))


@pytest.mark.parametrize("links", [True, False])
def test_of_many_that_keep_a_plan_at_once_all_find_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, links: bool
) -> None:
    """Also where the file system has no links. Nothing else is left behind."""
    if not links:

        def refuse(_source: object, _target: object) -> None:
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(os, "link", refuse)
    with ThreadPoolExecutor(16) as pool:
        kept = list(pool.map(lambda _: arrays.keep_plan(tmp_path, plan("a", "b")), range(64)))
    assert set(kept) == {plan("a", "b")}
    assert [path.name for path in tmp_path.iterdir()] == ["array.json"]


def test_the_plan_of_another_array_is_not_joined(tmp_path: Path) -> None:
    arrays.keep_plan(tmp_path, plan("a", "b"))
    assert arrays.keep_plan(tmp_path, plan("a")) == plan("a", "b")
    for other in (plan("a", "c"), plan("a", "b", "c")):
        with pytest.raises(UsageError, match="is of another array"):
            arrays.keep_plan(tmp_path, other)


def test_the_try_that_counts_is_the_last_that_was_done_else_the_last(tmp_path: Path) -> None:
    arrays.keep_plan(tmp_path, plan("a", "b", "c", "d"))
    left(tmp_path, "0000-12", at=1)
    left(tmp_path, "0000-15", status=1, at=2)
    left(tmp_path, "0001-13", "interrupted", at=1)
    left(tmp_path, "0001-13-again1", "failed", at=3)
    left(tmp_path, "0002-14", status=1)
    left(tmp_path, "something-else")
    (tmp_path / "0003-16").mkdir()  # begun, and nothing in it yet
    rows = arrays.tasks_in(tmp_path)
    found = [(row.state, row.tries, row.run and row.run.name) for row in rows]
    assert found == [
        ("done", 2, "0000-12"),
        ("failed", 2, "0001-13-again1"),
        ("failed", 1, "0002-14"),
        ("missing", 0, None),
    ]
    assert arrays.lacking(rows) == (1, 2, 3)


def test_each_try_has_a_folder_of_its_own() -> None:
    first = {"SLURM_JOB_ID": "4718"}
    again = {**first, "SLURM_RESTART_COUNT": "1"}
    assert arrays.try_name(7, first) == "0007-4718"
    assert arrays.try_name(7, again) == "0007-4718-again1"
    assert arrays.try_name(12345, first) == "12345-4718"


@pytest.mark.parametrize("text", ["", "[]", '{"tasks":[{"number":-1}]}', '{"schema":9}'])
def test_a_plan_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "array.json").write_text(text)
    with pytest.raises(InputError, match=r"array\.json"):
        arrays.read_plan(tmp_path)
