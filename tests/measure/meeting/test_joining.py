"""Which run directory a rank takes as its own, and how often it asks the shared file system."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from profharness.errors import OutputExists
from profharness.launchers.local import LocalLauncher
from profharness.measure import schedule
from profharness.measure.claims.holding import held
from profharness.measure.meeting import board, joining
from profharness.measure.meeting.board import Board
from profharness.measure.meeting.joining import join
from profharness.measure.plan import RunPlan
from profharness.measure.ranks import RankInfo
from profharness.options.settings import from_mapping
from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir
from tests.layers.places import node


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The memory of the nodes, apart from the one of this machine."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(board, "_folder", lambda: folder)
    return folder


def plan(
    root: Path, rank: int, world: int = 2, *, node_size: int = 8, **settings: object
) -> RunPlan:
    """Of one rank of a job; each `node_size` ranks are on a node."""
    request = from_mapping({"command": ("python", "t.py"), **settings}, "the command line")
    passes = schedule.plan_command((), bare=True, allowed=9, agreed=True)
    environment = msgspec.structs.replace(node("7.2"), host=f"n{rank // node_size}")
    info = RankInfo(rank, world, rank % node_size, "slurm-77-2")
    return RunPlan(request, root, info, environment, LocalLauncher(None), "python", passes, None)


def manifest(world: int = 2, **facts: Any) -> Manifest:
    return Manifest(
        id="r",
        created="",
        profharness="",
        kind="command",
        argv=(),
        **{"job": "slurm-77-2", "ranks": world, **facts},
    )


def begin(run_plan: RunPlan) -> RunDir:
    """What rank 0 does when a run begins."""
    run = RunDir(run_plan.root)
    run.write_manifest(manifest(run_plan.rank.world))
    Board.of(run_plan).say(root=str(run.root))
    return run


def test_the_nth_run_of_a_step_is_the_same_directory_for_all_ranks(tmp_path: Path) -> None:
    first = tmp_path / "slurm-77-2-sh"
    for name in ("slurm-77-2-sh", "slurm-77-2-sh-2", "slurm-77-2-sh-3"):
        with held(plan(first, 0)) as led:
            run = begin(led)
            with held(plan(first, 1)) as joined:
                assert joined.root == led.root == tmp_path / name
                assert not joined.rank.apart
            run.write_manifest(manifest(state="done"))


def test_a_rank_that_is_done_waits_for_the_next_run(tmp_path: Path) -> None:
    """Rank 0 is still in the first run when rank 1 comes with its second one."""
    first = tmp_path / "run"
    with held(plan(first, 0)) as led:
        begin(led)
        join(plan(first, 1))
        found: list[Path] = []
        second = threading.Thread(target=lambda: found.append(join(plan(first, 1)).root))
        second.start()
    with held(plan(first, 0)) as led:
        begin(led)
        second.join(60)
    assert found == [tmp_path / "run-2"]


@pytest.mark.parametrize("facts", [{"job": "slurm-77-1"}, {"ranks": 3}, {"state": "done"}])
def test_runs_that_are_over_or_of_others_are_not_joined(
    tmp_path: Path, facts: dict[str, object]
) -> None:
    first = tmp_path / "run"
    RunDir.create(first).write_manifest(manifest(**facts))
    with held(plan(first, 0)) as led:
        assert led.root == tmp_path / "run-2"
        begin(led)
        assert join(plan(first, 1)).root == led.root


def test_a_rank_that_nobody_waits_for_is_a_run_by_itself(tmp_path: Path) -> None:
    with held(plan(tmp_path / "run", 1, rank_limit=0.01)) as placed:
        assert placed.root == tmp_path / "run-rank1"
        assert placed.rank.leads
        assert placed.rank.world == 1
        assert "rank 1 of 2 found no run of rank 0" in placed.rank.apart
    with held(plan(tmp_path / "run", 1, rank_limit=0.01)) as placed:
        assert placed.root == tmp_path / "run-rank1-2"


def test_a_directory_that_the_user_named_holds_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "_ALONE_S", 0.0)  # rank 0 is gone when rank 1 comes
    root = tmp_path / "named"
    asked = {"output": str(root)}
    with held(plan(root, 0, **asked)) as led:
        run = begin(led)
        assert join(plan(root, 1, **asked)).root == root
        run.write_manifest(manifest(state="done"))
    for rank in (0, 1):
        with pytest.raises(OutputExists), held(plan(root, rank, **asked)):
            pass


def test_a_file_of_a_killed_leader_misleads_nobody(tmp_path: Path, memory: Path) -> None:
    first = tmp_path / "run"
    other = Board.of(plan(first, 0))
    other.say(root=str(tmp_path / "elsewhere"))
    (left,) = memory.iterdir()
    killed = left.read_bytes().replace(f'"pid":{os.getpid()}'.encode(), b'"pid":2147483647')
    left.write_bytes(killed)
    word = other.read()
    assert word is not None
    assert word.is_dead
    with held(plan(first, 0)) as led:
        begin(led)
        assert join(plan(first, 1)).root == first
    assert not list(memory.iterdir())


@dataclass
class Calls:
    """The calls that ask a folder, or what is in it, for something."""

    folder: str
    names: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, name: str, path: object) -> None:
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self.folder):
            with self._lock:
                self.names.append(name)


@contextmanager
def counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    calls = Calls(str(folder))
    with monkeypatch.context() as patch:
        for name in ("stat", "lstat", "open", "listdir", "scandir", "mkdir"):
            own = getattr(os, name)

            def wrapped(path: Any = ".", *rest: Any, _own=own, _name=name, **more: Any) -> Any:
                calls.note(_name, path)
                return _own(path, *rest, **more)

            patch.setattr(os, name, wrapped)
        yield calls


def test_64_ranks_on_two_nodes_leave_the_shared_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rank 0 begins a while after all others wait: only the leader of the other node looks
    meanwhile, and each rank a few times when the run is there.
    """
    shared = tmp_path / "shared"
    shared.mkdir()
    world, first = 64, shared / "run"
    waits_s = 2.0
    roots: list[Path] = []

    def one(rank: int) -> None:
        with held(plan(first, rank, world, node_size=32)) as joined:
            roots.append(joined.root)

    with counted(shared, monkeypatch) as calls:
        ranks = [threading.Thread(target=one, args=(rank,)) for rank in range(1, world)]
        leader_of_first_node = Board.of(plan(first, 0, world, node_size=32))
        leader_of_first_node.say()
        for rank in ranks:
            rank.start()
        threading.Event().wait(waits_s)
        waiting = len(calls.names)
        with held(plan(first, 0, world, node_size=32)) as led:
            begin(led)
            for rank in ranks:
                rank.join(60)
    assert roots == [first] * (world - 1)
    looks = waits_s / 0.05  # of one rank at most; all of them at 50 a second were 6300
    assert waiting <= 4 * looks
    assert len(calls.names) - waiting <= 12 * world + 4 * looks
