"""Shares of the step that a run tells, against the script's own clock over the same steps.

Each script knows by its own clock how long it does what it was made for. Steps that were not
captured are left out, since they ran at other times and without a profiler, and so is the last
captured one: its own clock also counts the end of the recording.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests import needs, started

needs.packages("torch")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("runs")]
LOADER = """
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 16 * STEPS

    def __getitem__(self, item):
        time.sleep(0.002)
        return torch.randn(256), item % 10

batches = iter(DataLoader(Slow(), 16))

def planted():
    next(batches)
"""
GARBAGE = """
import gc
kept = [[number] for number in range(300_000)]

def planted():
    gc.collect()
"""
STEPS = """
import json, sys, time
import torch

STEPS = 30
PLANTED
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
times = []
for _ in range(STEPS):
    begun = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    planted()
    done = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    optimizer.zero_grad()
    model(torch.randn(16, 256)).square().mean().backward()
    optimizer.step()
    times.append((begun, done, time.clock_gettime_ns(time.CLOCK_BOOTTIME)))
json.dump(times, open("times.json", "w"))
"""


@pytest.mark.alone
@pytest.mark.parametrize(
    ("planted", "kind", "answer"),
    [
        (LOADER, "data_loader", "waiting for the DataLoader"),
        (GARBAGE, "garbage_collection", "Garbage collection takes"),
    ],
    ids=["loader", "garbage"],
)
def test_the_share_of_a_step_is_that_of_the_scripts_own_clock(
    tmp_path: Path, planted: str, kind: str, answer: str
) -> None:
    (tmp_path / "train.py").write_text(STEPS.replace("PLANTED", planted))
    layer = ("--profile", "torch", "--capture", "2:28")
    words = ("run", *layer, "-o", "run", "--", sys.executable, "train.py")
    done = started.run(
        *words, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    (traced,) = [one for one in summary["passes"] if one["captured_steps"]]
    first, count = traced["first_step"], traced["captured_steps"]
    assert (first, count) == (2, 26)
    rows = json.loads((tmp_path / "times.json").read_text())[first : first + count - 1]
    own = sum(after - before for before, after, _ in rows) / (rows[-1][2] - rows[0][0])
    told = sum(part["share"] for part in summary["host"]["parts"] if part["kind"] == kind)
    assert told == pytest.approx(own, abs=0.01)
    assert answer in " ".join(done.stdout.split())
