"""A control folder made by a test, and real workers started on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests import started

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "wrappers" / "profharness_workloads"
END = {"v": 1, "kind": "end"}
IMPORTED = {"torch_worker.py": ("torch",)}  # what is slow to import, for workers that may be forked

# A backend without a framework: a point costs nothing, and its params say what it does.
TOY = """
import os, sys, time
sys.path.insert(0, os.environ["TOY_WORKLOADS"])
from profharness_workloads.shared import timing, worker

class Toy(worker.Workload):
    versions, device = {"toy": "1"}, "cpu"
    devices = [{"index": 0, "kind": "cpu", "name": "cpu"}]

    def measure(self, point, still_wanted):
        print("out of", point.id, flush=True)
        os.write(2, b"native error output\\n")
        if point.seed == 13:
            raise MemoryError("no room for\\n13 items")
        if point.seed == 99:
            os.kill(os.getpid(), 9)
        pause = 0.02 if point.seed == 7 else 0.0
        action = timing.Action(lambda: None, lambda _: time.sleep(pause), lambda: None)
        trials = timing.trials(action, point.trials, point.min_seconds, still_wanted)
        return worker.Measurement(trials.durations_ns, trials.starts_ns, point.batch_size, [], [], "cpu")

    def recover(self):
        if os.environ.get("TOY_SPOILED"):
            raise RuntimeError("the device is lost")

if __name__ == "__main__":
    def load(settings):
        if os.environ.get("TOY_BROKEN"):
            raise OSError("libtoy.so: cannot open shared object file")
        return Toy()

    sys.exit(worker.main(load, os.environ))
"""


def point(name: str, batch: int = 1, **params: object) -> dict[str, object]:
    """A line of the points file; tiny unless said otherwise."""
    defaults: dict[str, object] = {
        "batch_size": batch,
        "trials": 3,
        "min_seconds": 0.0,
        "warmup": 1,
        "seed": 1,
    }
    return {"v": 1, "kind": "point", "id": name, "params": {**defaults, **params}}


class Control:
    """One pass of one run: write its points, start workers, read what they left."""

    def __init__(
        self,
        root: Path,
        spec: Mapping[str, object],
        *,
        layers: str = "",
        fresh: bool = False,
    ) -> None:
        self.fresh = fresh  # whether its workers start as a user's do, with their imports
        self.run = root / "run"
        self.folder = self.run / "control" / "bare"
        self.folder.mkdir(parents=True)
        self.spec = root / "spec.json"
        self.spec.write_text(json.dumps({"cache_dir": str(root / "cache"), **spec}))
        (root / "toy.py").write_text(TOY)
        self.toy = root / "toy.py"
        self.env = {
            **{
                k: v
                for k, v in os.environ.items()
                if not k.startswith(("PROFHARNESS_", "SLURM_", "RANK"))
            },
            "OMP_NUM_THREADS": "1",
            "TOY_WORKLOADS": str(WORKLOADS.parent),
            "PROFHARNESS_RUN_DIR": str(self.run),
            "PROFHARNESS_PASS": "bare",
            "PROFHARNESS_CONTROL_DIR": str(self.folder),
            "PROFHARNESS_LAYERS": layers,
            "PROFHARNESS_PARENT_PID": str(os.getpid()),
            "PROFHARNESS_SPEC": str(self.spec),
            "PROFHARNESS_ARTIFACTS": str(self.run / "artifacts"),
            "PROFHARNESS_HOOKS_DIR": str(self.run / "control" / "hooks"),
            "PROFHARNESS_WORKER": "1",
        }

    def ask(self, *records: Mapping[str, object]) -> None:
        """Append to the points file."""
        with (self.folder / "points.jsonl").open("a") as file:
            for record in records:
                file.write(json.dumps(record) + "\n")

    def start(self, script: Path | str, **env: str) -> subprocess.Popen[str]:
        """A worker, not waited for."""
        path = script if isinstance(script, Path) else WORKLOADS / script
        imported = () if self.fresh else IMPORTED.get(path.name, ())
        argv, environment = [sys.executable, str(path)], {**self.env, **env}
        if imported:
            return started.python(argv, imported, env=environment)
        return subprocess.Popen(
            argv,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )

    def serve(self, script: Path | str, **env: str) -> tuple[int, str]:
        """A worker to its end: exit status and stderr."""
        process = self.start(script, **env)
        _, err = process.communicate(timeout=280)
        return process.returncode, err

    def records(self, name: str = "results-0-0.jsonl") -> list[dict[str, object]]:
        """The whole lines of a results file; none when it is not there yet."""
        path = self.folder / name
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def results(self, name: str = "results-0-0.jsonl") -> dict[str, dict[str, object]]:
        """Results by point id."""
        return {str(r["id"]): r for r in self.records(name) if r["kind"] == "result"}


def kinds(records: Sequence[Mapping[str, object]]) -> list[object]:
    """The sequence of record kinds."""
    return [record["kind"] for record in records]


def until(
    condition: Callable[[], object], process: subprocess.Popen[str] | None, seconds: float = 60.0
) -> None:
    """Wait for a condition, while the process lives if one is given; fails with its stderr
    otherwise.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, process.communicate() if process else ""
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)
