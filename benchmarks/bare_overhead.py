"""Does the bare pass cost anything? Its throughput against a plain script with the same loop, interleaved.

    python benchmarks/bare_overhead.py [--backend torch|onnxruntime] [--batch 4] [--trials 20] [--rounds 30]

Two processes live side by side and are asked in turn, in random order within each round: the scan worker (through its
points file, as in a scan's bare pass) and a plain script that times the same model on the same inputs. Printed is the
ratio of their throughputs per round, from the median trial of each so that other work on the machine counts little:
median over rounds with a 95 % bootstrap interval. Above 1 the harness was faster. Exit status 1 when the interval excludes ratios from 0.99 to 1.01.
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

WORKLOADS = Path(__file__).resolve().parents[1] / "wrappers" / "workloads"
SEED = 1

# What a user would write by hand; it reads a batch of trials from stdin and answers with their median time.
PLAIN = {
    "torch": """
import sys, time
sys.path.insert(0, sys.argv[1])
import torch, inputs, particlenet
torch.set_num_threads(1)
batch, seed = int(sys.argv[3]), int(sys.argv[4])
model = particlenet.build(0)
sets = [[torch.from_numpy(a) for a in one] for one in inputs.pool(particlenet.INPUTS, batch, "hep", seed)]
run = lambda i: model(*sets[i % len(sets)])
torch.set_grad_enabled(False)
""",
    "onnxruntime": """
import sys, time
sys.path.insert(0, sys.argv[1])
import onnxruntime, inputs
batch, seed = int(sys.argv[3]), int(sys.argv[4])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[2], options, providers=["CPUExecutionProvider"])
specs = [inputs.TensorSpec(i.name, "float32", (i.shape[1], 100 if i.name[:2] == "pf" else 10)) for i in session.get_inputs()]
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
        spec = {"backend": backend, "model": model, "device": "cpu", "inputs": "hep", "threads": 1, "seed": 0,
                "cache_dir": str(root / "cache"), "flops_per_item": 1}
        (root / "spec.json").write_text(json.dumps(spec))
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PROFHARNESS_SPEC": str(root / "spec.json"), "PROFHARNESS_LAYERS": "",
               "PROFHARNESS_CONTROL_DIR": str(self.folder), "PROFHARNESS_PARENT_PID": str(os.getpid())}
        self._process = subprocess.Popen([sys.executable, str(WORKLOADS / f"batch_{backend}.py")], env=env)
        self._results = self.folder / "results-0-0.jsonl"
        self._asked = 0

    def median_ns(self, batch: int, trials: int, warmup: int) -> float:
        """Median trial time of one more point."""
        self._asked += 1
        name = f"round-{self._asked}"
        params = {"batch_size": batch, "trials": trials, "min_seconds": 0.0, "warmup": warmup, "seed": SEED}
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
        command = [sys.executable, "-c", PLAIN[backend] + LOOP, str(WORKLOADS), model, str(batch), str(SEED)]
        self._process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
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
    """The built-in model as the worker names it: a file for onnxruntime, so that both load the same."""
    if backend == "torch":
        return "particlenet"
    path = root / "particlenet.onnx"
    subprocess.run([sys.executable, str(WORKLOADS / "particlenet.py"), "onnx", str(path), "0"], check=True,
                   stdout=subprocess.DEVNULL)
    return str(path)


def measured(asked: argparse.Namespace) -> list[float]:
    """Ratios worker / plain of throughput, one per round."""
    order = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        model = exported(root, asked.backend)
        worker, plain = Worker(root, asked.backend, model), Plain(asked.backend, model, asked.batch)
        worker.median_ns(asked.batch, 10, 10)
        plain.median_ns(20)
        ratios = []
        for _ in range(asked.rounds):
            took = {}
            for who in order.sample(("worker", "plain"), 2):
                plain.median_ns(3) if who == "plain" else None  # as the worker warms up for three trials
                took[who] = plain.median_ns(asked.trials) if who == "plain" else worker.median_ns(asked.batch, asked.trials, 3)
            ratios.append(took["plain"] / took["worker"])
        worker.close()
        plain.close()
    return ratios


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=sorted(PLAIN), default="torch")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=30)
    asked = parser.parse_args()
    ratios = np.array(measured(asked))
    draws = np.random.default_rng(SEED).choice(ratios, (4000, len(ratios)))
    low, high = np.percentile(np.median(draws, axis=1), [2.5, 97.5])
    print(f"bare throughput, profharness / plain script ({asked.backend}, batch {asked.batch}, {asked.rounds} rounds of "
          f"{asked.trials} trials): {np.median(ratios):.4f} [{low:.4f}, {high:.4f}]")
    return int(high < 0.99 or low > 1.01)


if __name__ == "__main__":
    sys.exit(main())
