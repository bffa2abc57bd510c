"""Files of a run are read in their order, by as many processes as it takes, and none is fatal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profharness.rundir.manifest import Artifact, Manifest
from profharness.rundir.paths import RunDir
from profharness.understand import run_parts
from profharness.understand.many import spread
from profharness.understand.run_parts import keep_in_memory, read_run
from tests.readers.kineto.kineto_files import document, kernel, launch, write
from tests.steps import calls_of


def run_of_files(root: Path, files: dict[str, int | None]) -> RunDir:
    """A run with a Kineto file of so many kernels by each name, one of no known format for None,
    and none for a negative number.
    """
    run = RunDir.create(root)
    folder = run.artifacts_dir("torch", "n0", "1")
    for name, count in files.items():
        if count is None:
            (folder / name).write_text(json.dumps({"nothing": "known"}))
        elif count >= 0:
            events = [
                event
                for i in range(count)
                for event in (
                    launch("hipLaunchKernel", i, 1, i + 1),
                    kernel("k", 10 + i, 1, correlation=i + 1),
                )
            ]
            write(folder / name, document(events))
    artifacts = tuple(
        Artifact(
            path=run.relative(folder / name),
            layer="torch",
            format="kineto",
            pass_name="torch",
            rank=rank,
        )
        for rank, name in enumerate(files)
    )
    run.write_manifest(
        Manifest(id="r", created="", profharness="0", kind="command", argv=(), artifacts=artifacts)
    )
    return run


@pytest.mark.parametrize("processes", [1, 2])
def test_files_come_in_order_whoever_reads_them(tmp_path, monkeypatch, processes):
    if processes > 1:
        monkeypatch.setattr(run_parts, "_LONG", 1)
        monkeypatch.setattr(spread, "_WORTH_A_POOL", 0)
    files = {"3.json": 3, "1.json": 1, "2.json": 2, "unknown.json": None, "absent.json": -1}
    run = run_of_files(tmp_path / "run", files)
    read = read_run(run.root, keep_in_memory)
    assert [len(part.trace.kernels) for part in read.parts] == [3, 1, 2]
    assert [part.trace.sources[0].rank for part in read.parts] == [0, 1, 2]
    unknown, absent = read.notes.problems
    assert "no known trace format" in unknown.message
    assert "does not exist" in absent.message
    assert {problem.severity for problem in read.notes.problems} == {"error"}


def test_a_file_that_is_not_there_costs_a_look(tmp_path):
    def steps_of(count: int) -> int:
        run = run_of_files(tmp_path / str(count), {f"{at}.json": -1 for at in range(count)})
        found = read_run(run.root, keep_in_memory).notes.problems
        assert [Path(problem.source).name for problem in found] == [
            f"{at}.json" for at in range(count)
        ]
        return calls_of(lambda: read_run(run.root, keep_in_memory))

    assert (steps_of(520) - steps_of(20)) / 500 < 60  # no search for a reader of each


def test_files_of_other_ranks_are_not_read(tmp_path):
    run = run_of_files(tmp_path / "run", {"a.json": 1, "b.json": 2, "absent.json": -1})
    read = read_run(run.root, keep_in_memory, ranks=frozenset({1}))
    assert [len(part.trace.kernels) for part in read.parts] == [2]
    assert (read.left_out, read.notes.problems) == (2, ())
