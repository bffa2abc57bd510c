"""The windows of a level, as the load generator and the hooks in a server of another's agree on
them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from .running import Runner, sidecar_of

SERVER = """
import sys, threading, time, torch
stop = threading.Event()
def work():
    a = torch.ones(32, 32)
    while not stop.is_set():
        (a @ a).sum()
        time.sleep(.002)
thread = threading.Thread(target=work); thread.start()
{more}
sys.stdin.read()   # as a server's main thread, which sleeps for as long as it serves
stop.set(); thread.join()
"""
OWN_PROFILER = """
time.sleep(float(sys.argv[1]))
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU]) as own:
    torch.ones(8, 8) @ torch.ones(8, 8)
print(len(own.events()) > 0, flush=True)
"""


def said(folder: Path) -> list[tuple[str, str]]:
    path = folder / "windows.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [(record["kind"], record["id"]) for record in records]


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.usefixtures("workloads")
class TestTheLoadGenerator:
    """Waits for those who listen, and for nobody else."""

    def announce(
        self, folder: Path, *, managed: bool = False, looked: Callable[[], None] = lambda: None
    ) -> bool:
        from profharness_workloads.loadgen.window import Windows

        return bool(Windows(str(folder), managed).announce("open", "opened", "c1", looked))

    def say(self, folder: Path, kind: str, pid: int) -> None:
        with (folder / "windows.jsonl").open("a") as file:
            file.write(
                json.dumps(
                    {"v": 1, "kind": kind, "id": "c1" if kind != "listening" else "", "pid": pid}
                )
                + "\n"
            )

    def test_where_nobody_listens_it_goes_on_at_once(self, tmp_path: Path) -> None:
        begun = time.monotonic()
        assert self.announce(tmp_path)
        assert time.monotonic() - begun < 30  # of 60
        assert json.loads((tmp_path / "levels.jsonl").read_text()) == {
            "v": 1,
            "kind": "open",
            "id": "c1",
        }

    def test_all_who_listen_must_answer(self, tmp_path: Path) -> None:
        other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            for pid in (os.getpid(), other.pid):
                self.say(tmp_path, "listening", pid)
            self.say(tmp_path, "opened", os.getpid())  # of an earlier level of that name
            self.say(tmp_path, "opened", other.pid)
            waiting = threading.Thread(target=self.announce, args=(tmp_path,))
            waiting.start()
            until((tmp_path / "levels.jsonl").exists)
            self.say(tmp_path, "opened", os.getpid())
            waiting.join(0.3)
            assert waiting.is_alive(), "one has not answered"
            self.say(tmp_path, "opened", other.pid)
            waiting.join(20)
            assert not waiting.is_alive()
        finally:
            other.communicate(b"\n")

    def test_who_has_ended_is_not_waited_for(self, tmp_path: Path) -> None:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        self.say(tmp_path, "listening", ended.pid)
        begun = time.monotonic()
        assert self.announce(tmp_path)
        assert time.monotonic() - begun < 30  # of 60

    @pytest.mark.parametrize(("answers_s", "heard"), [(30, True), (90, False)])
    def test_a_server_on_a_busy_node_has_time_to_begin_its_first_recording(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers_s: int, heard: bool
    ) -> None:
        from profharness_workloads.loadgen import window

        now = [0.0]

        def looked() -> None:
            now[0] += 1
            if now[0] == answers_s:
                self.say(tmp_path, "opened", os.getpid())

        clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda _s: None)
        monkeypatch.setattr(window, "time", clock)
        assert self.announce(tmp_path, managed=True, looked=looked) is heard


class Hooked:
    """A server with the hooks in it, and the levels that it is told of."""

    def __init__(self, runner: Runner, text: str, *argv: str) -> None:
        self.folder = runner.folder
        env = runner.environment(
            PROFHARNESS_LAYERS="torch",
            PROFHARNESS_CAPTURE="all",
            PROFHARNESS_ALL_THREADS="1",
            PROFHARNESS_LEVELS=str(self.folder),
        )
        self.process = subprocess.Popen(
            [sys.executable, str(runner.script(text)), *argv],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def tell(self, kind: str, point: str) -> None:
        with (self.folder / "levels.jsonl").open("a") as file:
            file.write(
                json.dumps({"v": 1, "kind": kind, "id": point}, separators=(",", ":")) + "\n"
            )

    def level(self, point: str, length_s: float = 0.2) -> None:
        self.tell("open", point)
        until(lambda: ("opened", point) in said(self.folder))
        time.sleep(length_s)
        self.tell("close", point)
        until(lambda: ("closed", point) in said(self.folder))

    def end(self) -> str:
        out, err = self.process.communicate("", timeout=90)
        assert self.process.returncode == 0, err
        return out

    @property
    def files(self) -> dict[str, Path]:
        found = sorted(
            path
            for path in (self.folder / "artifacts" / "torch").rglob("*.json")
            if not path.name.endswith(".profharness.json")
        )
        return {sidecar_of(path)["point"]: path for path in found}


def products(path: Path) -> list[dict[str, float]]:
    return [
        event
        for event in json.loads(path.read_text())["traceEvents"]
        if event.get("name") == "aten::mm"
    ]


@pytest.mark.slow
def test_each_level_is_a_window_of_all_threads(runner: Runner) -> None:
    pytest.importorskip("torch")
    server = Hooked(runner, SERVER.format(more=""))
    until(lambda: ("listening", "") in said(server.folder))
    server.level("c1")
    time.sleep(0.3)
    server.level("c2")
    server.tell("open", "c3")
    until(lambda: ("opened", "c3") in said(server.folder))
    time.sleep(0.2)
    server.end()
    assert list(server.files) == ["c1", "c2", "c3"]
    assert all(len(products(path)) > 10 for path in server.files.values())
    first, second = (products(server.files[point]) for point in ("c1", "c2"))
    assert min(event["ts"] for event in second) - max(event["ts"] for event in first) > 250e3, (
        "us: what is between them is in neither"
    )
    windows = {point: sidecar_of(path)["window"] for point, path in server.files.items()}
    assert [windows[point]["truncated"] for point in ("c1", "c2", "c3")] == [False, False, True]
    assert windows["c3"]["reason"] == "the process ended"


@pytest.mark.slow
def test_it_stands_back_for_the_programs_own_profiler(runner: Runner) -> None:
    pytest.importorskip("torch")
    server = Hooked(runner, SERVER.format(more="sys.stdin.readline()" + OWN_PROFILER), "0")
    server.tell("open", "c1")
    until(lambda: ("opened", "c1") in said(server.folder))
    assert server.process.stdin is not None
    server.process.stdin.write("\n")
    server.process.stdin.flush()
    assert server.end().split() == ["True"], "the program's own recording is whole"
    (hello,) = [
        json.loads(path.read_text()) for path in (server.folder / "hooks").glob("hello-*.json")
    ]
    assert any("stood back" in message for message in hello["messages"])
    assert sidecar_of(server.files["c1"])["window"]["truncated"]


@pytest.mark.slow
def test_a_process_that_comes_during_a_level_records_the_rest_of_it(runner: Runner) -> None:
    pytest.importorskip("torch")
    server = Hooked.__new__(Hooked)
    server.folder = runner.folder
    for kind, point in (("open", "c1"), ("close", "c1"), ("open", "c2")):
        server.tell(kind, point)
    Hooked.__init__(server, runner, SERVER.format(more=""))
    until(lambda: ("opened", "c2") in said(server.folder))
    time.sleep(0.2)
    server.tell("close", "c2")
    until(lambda: ("closed", "c2") in said(server.folder))
    server.end()
    assert list(server.files) == ["c2"]
    assert ("opened", "c1") not in said(server.folder)
