"""Does the bare pass cost anything? Its throughput against a plain script with the same loop,
interleaved.

    python benchmarks/bare_overhead.py [--backend torch|onnxruntime] [--batch 4] [--trials 20]
      [--rounds 5] [--starts 6]

Three processes live side by side and are asked in turn, in random order within each round: the scan
worker (through its points file, as in a scan's bare pass) and twice the same plain script, which
times the same model on the same inputs. They are started anew several times, since two processes of
the same program differ by a few per cent for as long as they live: a start, not a round, is the
sample. Printed are two ratios of throughput, each the mean over starts of the median over rounds,
with Student's 95 % interval over starts: the harness against a plain script (above 1 the harness
was faster), and for comparison one plain script against the other. Exit status 1 when the first
interval excludes ratios from 0.99 to 1.01.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import stats

WORKLOADS = Path(__file__).resolve().parents[1] / "wrappers" / "profharness_workloads"
SEED = 1

# What a user would write by hand; it reads a batch of trials from stdin and answers with their
# median time.
PLAIN = {
    "torch": """
import sys, time
sys.path.insert(0, sys.argv[1])
import torch
from profharness_workloads.shared import inputs, particlenet
torch.set_num_threads(1)
batch, seed = int(sys.argv[3]), int(sys.argv[4])
model = particlenet.build(0)
pool = inputs.pool(particlenet.INPUTS, batch, "hep", seed)
sets = [[torch.from_numpy(a) for a in one] for one in pool]
run = lambda i: model(*sets[i % len(sets)])
torch.set_grad_enabled(False)
""",
    "onnxruntime": """
import sys, time
sys.path.insert(0, sys.argv[1])
import onnxruntime
from profharness_workloads.shared import inputs
batch, seed = int(sys.argv[3]), int(sys.argv[4])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[2], options, providers=["CPUExecutionProvider"])
length = lambda name: 100 if name[:2] == "pf" else 10
specs = [
    inputs.TensorSpec(i.name, "float32", (i.shape[1], length(i.name)))
    for i in session.get_inputs()
]
sets = [{s.name: a for s, a in zip(specs, one)} for one in inputs.pool(specs, batch, "hep", seed)]
run = lambda i: session.run(["softmax"], sets[i % len(sets)])
""",
}
LOOP = """
print("ready", flush=True)
for line in sys.stdin:
    times = []
    for i in range(int(line)):
        start = time.perf_counter_ns()
        run(i)
        times.append(time.perf_counter_ns() - start)
    print(sorted(times)[len(times) // 2], flush=True)
"""


class Worker:
    """The scan worker, given one point per round."""

    def __init__(self, root: Path, backend: str, model: str) -> None:
        self.folder = root / "run" / "control" / "bare"
        self.folder.mkdir(parents=True)
        spec = {
            "backend": backend,
            "model": model,
            "device": "cpu",
            "inputs": "hep",
            "threads": 1,
            "seed": 0,
            "cache_dir": str(root / "cache"),
            "flops_per_item": 1,
        }
        (root / "spec.json").write_text(json.dumps(spec))
        env = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PROFHARNESS_SPEC": str(root / "spec.json"),
            "PROFHARNESS_LAYERS": "",
            "PROFHARNESS_CONTROL_DIR": str(self.folder),
            "PROFHARNESS_PARENT_PID": str(os.getpid()),
        }
        self._process = subprocess.Popen(
            [sys.executable, str(WORKLOADS / "batch" / f"{backend}_worker.py")], env=env
        )
        self._results = self.folder / "results-0-0.jsonl"
        self._asked = 0

    def median_ns(self, batch: int, trials: int, warmup: int) -> float:
        """Median trial time of one more point."""
        self._asked += 1
        name = f"round-{self._asked}"
        params = {
            "batch_size": batch,
            "trials": trials,
            "min_seconds": 0.0,
            "warmup": warmup,
            "seed": SEED,
        }
        self._write({"v": 1, "kind": "point", "id": name, "params": params})
        while True:
            record = self._last()
            if record.get("kind") == "result" and record.get("id") == name:
                if not record["ok"]:
                    sys.exit(f"the worker's point failed: {record['error']}")
                return sorted(record["trials_ns"])[len(record["trials_ns"]) // 2]
            if self._process.poll() is not None:
                sys.exit("the worker ended early")
            time.sleep(0.05)  # seldom, since on few cores looking would slow the worker

    def _last(self) -> dict:
        """The last whole record of the results."""
        try:
            whole = self._results.read_bytes().rpartition(b"\n")[0]
        except FileNotFoundError:
            return {}
        return json.loads(whole.rpartition(b"\n")[2]) if whole else {}

    def _write(self, record: dict[str, object]) -> None:
        with (self.folder / "points.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")

    def close(self) -> None:
        """Let it end."""
        self._write({"v": 1, "kind": "end"})
        self._process.wait(60)


class Plain:
    """The plain script, asked through its stdin (nothing is written or read inside its loop)."""

    def __init__(self, backend: str, model: str, batch: int) -> None:
        command = [
            sys.executable,
            "-c",
            PLAIN[backend] + LOOP,
            str(WORKLOADS.parent),
            model,
            str(batch),
            str(SEED),
        ]
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._line()

    def median_ns(self, trials: int) -> float:
        """Median trial time of one more round."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{trials}\n")
        self._process.stdin.flush()
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit("the plain script ended early")
        return line

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()


def exported(root: Path, backend: str) -> str:
    """The built-in model as the worker names it: a file for onnxruntime, so that both load the
    same.
    """
    if backend == "torch":
        return "particlenet"
    path = root / "particlenet.onnx"
    subprocess.run(
        [sys.executable, str(WORKLOADS / "shared" / "particlenet.py"), "onnx", str(path), "0"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return str(path)


def measured(asked: argparse.Namespace, model: str, start: int) -> tuple[float, float]:
    """One start of all three: worker / plain and plain / plain in throughput, each the median over
    rounds.
    """
    order = random.Random(SEED + start)
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(Path(folder), asked.backend, model)
        plain, again = (Plain(asked.backend, model, asked.batch) for _ in range(2))
        asks = {
            "worker": lambda trials: worker.median_ns(asked.batch, trials, 3),
            "plain": lambda trials: warmed(plain, trials),
            "again": lambda trials: warmed(again, trials),
        }
        worker.median_ns(asked.batch, 10, 10)
        for script in (plain, again):
            script.median_ns(20)
        rounds = []
        for _ in range(asked.rounds):
            took = {who: asks[who](asked.trials) for who in order.sample(sorted(asks), 3)}
            rounds.append((took["plain"] / took["worker"], took["plain"] / took["again"]))
        for process in (worker, plain, again):
            process.close()
    bare, same = np.median(rounds, axis=0)
    return float(bare), float(same)


def warmed(script: Plain, trials: int) -> float:
    """As the worker warms up: three trials first."""
    script.median_ns(3)
    return script.median_ns(trials)


def interval(ratios: np.ndarray) -> tuple[float, float, float]:
    """Mean and Student's 95 % interval over starts."""
    half = stats.t.ppf(0.975, len(ratios) - 1) * ratios.std(ddof=1) / np.sqrt(len(ratios))
    return float(ratios.mean()), float(ratios.mean() - half), float(ratios.mean() + half)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=sorted(PLAIN), default="torch")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=6)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = exported(Path(folder), asked.backend)
        found = np.array([measured(asked, model, start) for start in range(asked.starts)])
    print(
        f"{asked.backend}, batch {asked.batch}, {asked.starts} starts of {asked.rounds} rounds "
        f"of {asked.trials} trials"
    )
    for what, ratios in (
        ("bare pass / plain script", found[:, 0]),
        ("plain script / itself", found[:, 1]),
    ):
        mean, low, high = interval(ratios)
        print(f"  {what:<26} {mean:.4f} [{low:.4f}, {high:.4f}]")
    _, low, high = interval(found[:, 0])
    return int(high < 0.99 or low > 1.01)


if __name__ == "__main__":
    sys.exit(main())
