"""Against the stored reports of TraceLens on the same files: where both agree, and, by name, where
they do not and which is right.

Its figures are float64 microseconds, so that agreement means 0.1 µs over a whole trace. It differs
from the exact figures in three ways, each checked here by doing the same to our trace:

- its timeline leaves out kernels and copies whose launching call is not in the file, without saying
  so: on
  traces whose warm-up work was still running when the capture began that is a third of the kernel
  time. The device did run them, so our busy time is right; its own kernel table of the same report
  counts them.
- it does not count fills (gpu_memset) as copies: newer reports leave them out of busy time
  altogether, and
  the one of h100_qwen0.5b_prefill counts them as computation. The device's copy engine or a kernel
  did the work and Kineto stamps it in a category beside the copies, so it is neither idle nor
  computation.
- with activation recompute it writes two rows per metric, and kernels of the recomputation are
  missing from
  the busy time of the first: only the sums of disjoint rows can be compared.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from profharness import readers
from profharness.analysis.kernels.hotspots import by_kernel
from profharness.analysis.records import Partition
from profharness.analysis.time.linking import link_copies, link_kernels
from profharness.analysis.time.steps import everything
from profharness.analysis.time.timeline import partition_windows
from profharness.trace.model import Trace
from tests.conftest import shared_path

FOLDER = shared_path("fixtures/kineto")
ROUNDING_NS = 100
AGREE = (
    "h100_bert_small",
    "mi210_gpu_only",
    "mi300x_bert_small",
    "mi300x_sglang_qwen3-8b_decode_hipgraph",
    "mi300x_timesformer",
    "mi300x_torch_compile_triton",
    "mi300x_vllm_piecewise_graphs",
)
WITH_KERNEL_TABLE = (
    "h100_bert_small",
    "h100_qwen0.5b_prefill",
    "mi210_gpu_only",
    "mi300x_bert_small",
    "mi300x_qwen0.5b_prefill",
    "mi300x_timesformer",
    "mi300x_torch_compile_triton",
)


def trace_of(name: str) -> Trace:
    return readers.read(FOLDER / f"{name}.json.gz")


def rows_of(path: Path) -> list[dict[str, str]]:
    csv.field_size_limit(sys.maxsize)  # kernel names and argument lists of several kB
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def reported(name: str, row: int = 0) -> dict[str, float]:
    """Its timeline in ns; `row` 1 is the recomputation."""
    found = defaultdict(list)
    for line in rows_of(FOLDER / "expected" / name / "gpu_timeline.csv"):
        found[line["type"]].append(float(line["time ms"]) * 1e6)
    return {metric: values[row] for metric, values in found.items()}


def whole(trace: Trace) -> Partition:
    return partition_windows(trace, everything(trace))


def ours(split: Partition) -> dict[str, float]:
    """Our split under its names."""
    return {
        "computation_time": split.compute_ns,
        "exposed_comm_time": split.exposed_communication_ns,
        "exposed_memcpy_time": split.exposed_copy_ns,
        "busy_time": split.window_ns - split.idle_ns,
        "idle_time": split.idle_ns,
        "total_time": split.window_ns,
        "total_comm_time": split.communication_ns,
        "total_memcpy_time": split.copy_ns,
    }


def linked_only(trace: Trace) -> Trace:
    return replace(
        trace,
        kernels=trace.kernels.take(link_kernels(trace).linked),
        copies=trace.copies.take(link_copies(trace).linked),
    )


def without_fills(trace: Trace) -> Trace:
    return replace(trace, copies=trace.copies.take(trace.copies.kind != trace.strings.find("fill")))


def fill_ns(trace: Trace) -> int:
    return int(trace.copies.dur_ns[trace.copies.kind == trace.strings.find("fill")].sum())


@pytest.mark.parametrize("name", AGREE)
def test_timelines_agree(shared, name):
    assert ours(whole(trace_of(name))) == pytest.approx(reported(name), abs=ROUNDING_NS)


def test_its_timeline_leaves_out_kernels_that_were_launched_before_the_capture(shared):
    trace, theirs = trace_of("mi300x_qwen0.5b_prefill"), reported("mi300x_qwen0.5b_prefill")
    assert ours(whole(linked_only(trace))) == pytest.approx(theirs, abs=ROUNDING_NS)
    lost = ours(whole(trace))["busy_time"] - theirs["busy_time"]
    unlinked = trace.kernels.dur_ns[~link_kernels(trace).linked].sum()
    assert lost == pytest.approx(unlinked, abs=ROUNDING_NS)
    assert lost / ours(whole(trace))["busy_time"] > 0.3


def test_it_counts_fills_as_computation_on_the_h100(shared):
    trace, theirs = trace_of("h100_qwen0.5b_prefill"), reported("h100_qwen0.5b_prefill")
    same = linked_only(trace)
    mine = ours(whole(same))
    for metric in ("busy_time", "idle_time", "total_time"):
        assert mine[metric] == pytest.approx(theirs[metric], abs=ROUNDING_NS)
    assert theirs["computation_time"] - mine["computation_time"] == pytest.approx(
        fill_ns(same), abs=ROUNDING_NS
    )
    assert mine["total_memcpy_time"] - theirs["total_memcpy_time"] == pytest.approx(
        fill_ns(same), abs=ROUNDING_NS
    )


def test_it_takes_a_fill_for_idle_time(shared):
    trace, theirs = trace_of("mi300x_xdit_sd3.5"), reported("mi300x_xdit_sd3.5")
    assert ours(whole(without_fills(trace))) == pytest.approx(theirs, abs=ROUNDING_NS)
    assert theirs["idle_time"] - ours(whole(trace))["idle_time"] == pytest.approx(
        fill_ns(trace), abs=ROUNDING_NS
    )


def test_its_first_row_misses_the_recomputation(shared):
    name = "mi300x_resnet_act_ckpt_rank0of8"
    same = without_fills(linked_only(trace_of(name)))
    mine, first, recomputed = ours(whole(same)), reported(name), reported(name, row=1)
    for metric in ("total_time", "total_comm_time", "total_memcpy_time"):
        assert mine[metric] == pytest.approx(first[metric], abs=ROUNDING_NS)
    assert mine["computation_time"] == pytest.approx(
        first["computation_time"] + recomputed["computation_time"], abs=ROUNDING_NS
    )
    # some of the recomputation ran beside collectives, so busy time grows by less than its length
    assert first["busy_time"] < mine["busy_time"] < first["busy_time"] + recomputed["busy_time"]


@pytest.mark.parametrize("name", WITH_KERNEL_TABLE)
def test_kernel_totals_agree_including_kernels_that_its_timeline_leaves_out(shared, name):
    total: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for row in rows_of(FOLDER / "expected" / name / "kernel_summary.csv"):
        total[row["Kernel name"]] += float(row["Kernel duration (µs)_sum"]) * 1000
        calls[row["Kernel name"]] += round(float(row["Kernel duration (µs)_count"]))
    table = by_kernel(trace_of(name))
    assert {row.name: row.calls for row in table.rows} == calls
    assert {row.name: row.total_ns for row in table.rows} == pytest.approx(total, abs=1)
