"""Allocations of a training that real torch recorded, against torch's own sums and a replay."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profharness import readers
from profharness.analysis.measurement import Measurement
from profharness.analysis.memory.allocator import memory
from profharness.analysis.memory.batches import Place, memory_by_batch
from profharness.analysis.memory.records import BatchPeak
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from tests.needs import TORCH_HERE

pytestmark = [
    pytest.mark.slow,
    TORCH_HERE,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs torch"),
]

TRAINING = """
import json, sys
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

folder, sizes = sys.argv[1], [int(size) for size in sys.argv[2].split(",")]
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16 * 16, 32), nn.ReLU(),
    nn.Linear(32, 10),
)
optimizer = torch.optim.Adam(model.parameters())

def step(size):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(
        model(torch.randn(size, 3, 16, 16)), torch.randint(0, 10, (size,))
    )
    loss.backward()
    optimizer.step()

step(2)  # the optimizer's states are made before any recording
optimizer.zero_grad()
for size in sizes:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recording:
        for _ in range(3):
            step(size)
        optimizer.zero_grad()
    recording.export_chrome_trace(f"{folder}/b{size}.json")
    sums = {row.key: row.self_cpu_memory_usage for row in recording.key_averages()}
    json.dump(sums, open(f"{folder}/b{size}.sums", "w"))
"""
SIZES = (4, 8, 16, 32, 64, 128, 256)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the trace of each batch size, and torch's own sums of it."""
    folder = tmp_path_factory.mktemp("trained")
    words = [sys.executable, "-c", TRAINING, str(folder), ",".join(map(str, SIZES))]
    subprocess.run(words, check=True, capture_output=True, timeout=300)
    return folder


def events(folder: Path, size: int) -> list[dict[str, Any]]:
    found = json.loads((folder / f"b{size}.json").read_text())["traceEvents"]
    return sorted(
        (event for event in found if event.get("name") == "[memory]"), key=lambda e: e["ts"]
    )


def everywhere(trace: Trace) -> Measurement:
    at = trace.allocations.at_ns
    window = intervals.window(int(at.min()) - 1, int(at.max()) + 1)
    return Measurement(trace, Windows(window, "all of it"))


@pytest.mark.parametrize("size", SIZES[:2])
def test_sums_by_operator_are_those_of_torch(trained: Path, size: int) -> None:
    table = (trace := readers.read(trained / f"b{size}.json")).allocations
    signed = np.where(table.is_release == 1, -table.bytes, table.bytes)
    found: Counter[str] = Counter()
    for op, change in zip(table.op.tolist(), signed.tolist(), strict=True):
        found["[memory]" if op == NULL else trace.strings[int(trace.ops.name[op])]] += change
    operators = {trace.strings[int(code)] for code in np.unique(trace.ops.name)}
    torch_says: Counter[str] = Counter()
    for name, held in json.loads((trained / f"b{size}.sums").read_text()).items():
        # torch also sums by ranges as `Optimizer.step#Adam.step`, which are no operators
        torch_says[name if name in operators else "[memory]"] += held
    assert len([name for name, held in torch_says.items() if held]) > 10
    assert {name: held for name, held in found.items() if held} == {
        name: held for name, held in torch_says.items() if held
    }


@pytest.mark.parametrize("size", SIZES[:2])
def test_the_peak_is_that_of_a_replay(trained: Path, size: int) -> None:
    held, alive, peak, at_peak = 0, {}, 0, {}
    taken = 0
    for event in events(trained, size):
        change, address = event["args"]["Bytes"], event["args"]["Addr"]
        held += change
        taken += max(change, 0)
        if change > 0:
            alive[address] = change
        else:
            alive.pop(address, None)
        if held > peak:
            peak, at_peak = held, dict(alive)
    found = memory(everywhere(readers.read(trained / f"b{size}.json")))
    assert found is not None
    (use,) = found.uses
    assert (use.peak_bytes, use.allocated_bytes) == (peak, taken)
    assert sum(row.kept_bytes for row in use.operators) == peak
    assert sum(row.kept for row in use.operators) == len(at_peak)
    assert sum(at_peak.values()) == peak


def peaks_of(trained: Path) -> list[BatchPeak]:
    peaks = []
    for size in SIZES:
        found = memory(everywhere(readers.read(trained / f"b{size}.json")))
        assert found is not None
        (use,) = found.uses
        peaks.append(
            BatchPeak(batch_size=size, peak_bytes=use.peak_bytes, least_bytes=use.least_bytes)
        )
    return peaks


def test_the_peak_of_a_size_left_out_is_told_by_the_others(trained: Path) -> None:
    *others, largest = peaks_of(trained)
    row = memory_by_batch(Place("", None), others)
    assert (row.holds, row.grows) == (True, True)
    assert row.fixed_bytes is not None
    assert row.item_bytes is not None
    assert row.fixed_bytes.value is not None
    assert row.item_bytes.value is not None
    told = row.fixed_bytes.value + row.item_bytes.value * largest.batch_size
    assert told == pytest.approx(largest.peak_bytes, rel=0.02)


def test_small_sizes_promise_no_more_than_fits(trained: Path) -> None:
    """Their peak is the step of the optimizer, which does not grow."""
    peaks = peaks_of(trained)
    for capacity in (one.peak_bytes for one in peaks[3:]):
        row = memory_by_batch(Place("", None, capacity), peaks[:3])
        assert row.grows is False
        assert row.largest_batch is not None
        assert row.largest_batch.value is None
        fits = max(one.batch_size for one in peaks if one.peak_bytes <= capacity)
        assert row.largest_batch.low is not None
        assert row.largest_batch.low <= fits
