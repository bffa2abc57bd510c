"""The worker of several processes: pinning checked through /proc, one common window, and deaths
that end a point.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from tests.processes import gone
from tests.wrappers.control import END, WORKLOADS, Control, kinds, point, until

# A backend whose batch is a sleep, and which tells what the kernel says of its process.
BACKEND = """
import contextlib, json, os, time
from profharness_workloads.shared import timing, worker

class Toy(worker.Workload):
    versions, device = {"toy": "1"}, "cpu"
    devices = [{"index": 0, "kind": "cpu", "name": "cpu"}]

    def __init__(self, settings):
        self.settings = settings

    def measure(self, point, still_wanted):
        raise NotImplementedError

    @contextlib.contextmanager
    def ready(self, point):
        place = self.settings.local_rank
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        policy = open("/proc/self/numa_maps").readline().split()[1] if os.path.exists("/proc/self/numa_maps") else ""
        told = {"pid": os.getpid(), "cpus": status["Cpus_allowed_list"].strip(), "policy": policy, "threads": self.settings.spec.threads,
                "omp": os.environ["OMP_NUM_THREADS"], "device": self.settings.spec.device}
        path = os.path.join(os.environ["TOY_FOLDER"], "process-%d.json" % place)
        with open(path + ".part", "w") as file:
            json.dump(told, file)
        os.replace(path + ".part", path)  # whole where it is seen: the test kills at once
        calls = []

        def run(_):
            calls.append(1)
            time.sleep(0.004 * (1 + 2 * (place == 1)))
            if place == int(os.environ.get("TOY_DIES", "-1")) and len(calls) > 5:
                os.kill(os.getpid(), 9)
            if place == int(os.environ.get("TOY_FAILS", "-1")):
                raise MemoryError("no room")

        yield timing.Action(lambda: None, run, lambda: None)

def load(settings):
    return Toy(settings)
"""


CPUS = sorted(os.sched_getaffinity(0))
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs to part")


def place(*cpus: int, device: str = "") -> dict[str, object]:
    return {"cpus": list(cpus), "device": device}


class Pinned(Control):
    """The pinned worker over the toy backend."""

    def __init__(
        self,
        root: Path,
        places: list[dict[str, object]],
        *,
        pin: str = "core",
        memory: str = "interleave",
    ) -> None:
        super().__init__(
            root,
            {
                "backend": "toy",
                "model": "toy",
                "device": "cpu",
                "places": places,
                "pin": pin,
                "memory": memory,
            },
        )
        self.root = root
        copy = shutil.copytree(WORKLOADS, root / "wrappers" / WORKLOADS.name)
        (copy / "batch" / "toy_worker.py").write_text(BACKEND)
        self.script = copy / "pinned" / "worker.py"
        self.env.update(TOY_FOLDER=str(root))

    def measure(self, processes: int, **env: str) -> dict[str, object]:
        self.ask(asked("p", processes), END)
        status, err = self.serve(self.script, **env)
        assert status == 0, err
        return self.results()["p"]

    def told(self, number: int) -> dict[str, object]:
        """What the process said about itself, from /proc."""
        found: dict[str, object] = json.loads((self.root / f"process-{number}.json").read_text())
        return found

    def batches(self, number: int, point_id: str = "p") -> np.ndarray:
        """Rows of start and duration."""
        return np.fromfile(
            self.run / "points" / "bare" / point_id / f"stream-{number}.i64", dtype="<i8"
        ).reshape(-1, 2)


def asked(name: str, processes: int, seconds: float = 0.3) -> dict[str, object]:
    return point(name, 4, processes=processes, seconds=seconds, warmup_seconds=0.05)


@two_cpus
def test_each_process_runs_where_it_was_put(tmp_path: Path) -> None:
    pinned = Pinned(tmp_path, [place(CPUS[0]), place(CPUS[1], device="cuda:1")])
    result = pinned.measure(2)
    assert result["ok"], result["error"]
    assert [pinned.told(n)["cpus"] for n in (0, 1)] == [str(CPUS[0]), str(CPUS[1])]
    assert [stream["cpus"] for stream in result["streams"]] == [[CPUS[0]], [CPUS[1]]]
    assert [pinned.told(n)["device"] for n in (0, 1)] == ["cpu", "cuda:1"]
    assert all(pinned.told(n)["threads"] == 1 and pinned.told(n)["omp"] == "1" for n in (0, 1))


def test_memory_lies_on_the_nodes_of_the_cpus(tmp_path: Path) -> None:
    pinned = Pinned(tmp_path, [place(CPUS[0])], memory="bind")
    result = pinned.measure(1)
    policy = pinned.told(0)["policy"]
    memory = result["notes"]["memory"]
    bound = policy.removeprefix("bind:")
    assert memory == f"bound to node {bound}" if bound != policy else policy == "default", memory


@two_cpus
def test_a_point_may_have_places_of_its_own(tmp_path: Path) -> None:
    pinned = Pinned(tmp_path, [place(CPUS[0])])
    line = asked("p", 1)
    line["params"]["places"] = [[CPUS[0], CPUS[1]]]
    pinned.ask(line, END)
    status, err = pinned.serve(pinned.script)
    assert status == 0, err
    assert pinned.results()["p"]["streams"][0]["cpus"] == CPUS[:2]
    assert pinned.told(0)["threads"] == 2


@two_cpus
def test_without_pinning_the_mask_is_left(tmp_path: Path) -> None:
    pinned = Pinned(tmp_path, [place(CPUS[0])], pin="none")
    assert len(pinned.measure(1)["streams"][0]["cpus"]) == len(CPUS)


@two_cpus
def test_pinning_to_the_node_takes_all_of_its_cpus(tmp_path: Path) -> None:
    pinned = Pinned(tmp_path, [place(CPUS[0])], pin="numa")
    assert set(pinned.measure(1)["streams"][0]["cpus"]) >= {CPUS[0]}


def test_the_window_is_one_for_all(tmp_path: Path) -> None:
    """The second process's batches take three times as long; both are busy over the whole window,
    and after it.
    """
    pinned = Pinned(tmp_path, [place(CPUS[0]), place(CPUS[-1])])
    result = pinned.measure(2)
    opens, closes = result["window"]
    assert closes - opens == 300_000_000
    for number in (0, 1):
        rows = pinned.batches(number)
        starts, ends = rows[:, 0], rows[:, 0] + rows[:, 1]
        assert len(rows) == result["streams"][number]["batches"] >= 1
        assert opens <= starts.min() <= starts.max() < closes
        assert (starts[1:] >= ends[:-1]).all()
        # one batch after the other: what lies between them is less than the batches themselves,
        # also on a busy machine
        assert (starts[1:] - ends[:-1]).sum() <= (ends - starts).sum()


@pytest.mark.slow
def test_a_killed_process_fails_the_point_at_once_and_the_next_is_measured(tmp_path: Path) -> None:
    pinned = Pinned(tmp_path, [place(CPUS[0]), place(CPUS[-1])])
    pinned.ask(asked("both", 2, seconds=120.0), asked("one", 1), END)
    began = time.monotonic()
    status, err = pinned.serve(pinned.script, TOY_DIES="1")
    assert time.monotonic() - began < 90
    assert status == 0, err
    results = pinned.results()
    assert not results["both"]["ok"]
    assert "process 1 of the point" in results["both"]["error"]
    assert "SIGKILL" in results["both"]["error"]
    assert results["one"]["ok"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(str(pinned.told(0)["pid"])), 0)


def test_a_process_that_cannot_run_says_why(tmp_path: Path) -> None:
    pinned = Pinned(tmp_path, [place(CPUS[0])])
    result = pinned.measure(1, TOY_FAILS="0")
    assert not result["ok"]
    assert "MemoryError: no room" in result["error"]


def test_cpus_that_cannot_be_had_are_an_error(tmp_path: Path) -> None:
    result = Pinned(tmp_path, [place(1023)]).measure(1)
    assert not result["ok"]
    assert "Invalid argument" in result["error"]


def test_more_processes_than_places_are_an_error(tmp_path: Path) -> None:
    assert "there are places for 1" in Pinned(tmp_path, [place(CPUS[0])]).measure(2)["error"]


def test_a_spec_without_places_is_refused(tmp_path: Path) -> None:
    pinned = Pinned(tmp_path, [])
    pinned.ask(asked("p", 1), END)
    status, _ = pinned.serve(pinned.script)
    assert status == 4
    assert "no places" in str(pinned.records()[-1]["error"])


def test_the_processes_end_with_their_starter(tmp_path: Path) -> None:
    pinned = Pinned(tmp_path, [place(CPUS[0]), place(CPUS[-1])])
    pinned.ask(asked("p", 2, seconds=60.0), END)
    worker = pinned.start(pinned.script)
    until(lambda: all((tmp_path / f"process-{n}.json").is_file() for n in (0, 1)), worker)
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=90)
    for number in (0, 1):
        pid = pinned.told(number)["pid"]
        until(lambda pid=pid: gone(pid), None)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch", "onnxruntime"])
def test_real_models_in_two_processes(tmp_path: Path, backend: str) -> None:
    pytest.importorskip(backend)
    control = Control(
        tmp_path,
        {
            "backend": backend,
            "model": "particlenet",
            "device": "cpu",
            "inputs": "hep",
            "seed": 5,
            "places": [place(CPUS[0]), place(CPUS[-1])],
            "pin": "core",
            "memory": "interleave",
        },
    )
    control.ask(point("two", 2, processes=2, seconds=0.5, warmup_seconds=0.1), END)
    status, err = control.serve("pinned/worker.py")
    assert status == 0, err
    result = control.results()["two"]
    assert result["ok"], result["error"]
    assert all(stream["batches"] > 1 for stream in result["streams"])
    assert kinds(control.records()) == ["hello", "begin", "result", "bye"]
