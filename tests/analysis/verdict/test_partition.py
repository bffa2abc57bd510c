"""The partition in JSON sums to its window exactly, on any trace and on every recorded one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.records import Summary
from profharness.analysis.summarise import summarise_trace
from profharness.errors import ProfharnessError
from profharness.report.json import judged
from profharness.trace.model import Device
from tests.analysis.kernels.test_roofline import with_ops
from tests.analysis.scene import Scene
from tests.conftest import shared_path
from tests.recorded import TOGETHER, summary_of

FOLDER = shared_path("fixtures")
KINDS = {
    "compute": ("compute_bound_ns",),
    "bandwidth": ("bandwidth_bound_ns",),
    "inside-kernel": ("inside_kernel_ns",),
    "underfilled": ("underfilled_ns",),
    "communication": ("exposed_communication_ns",),
    "copy": ("exposed_copy_ns",),
    "kernels": ("unknown_work_ns",),
    "undetermined": ("undetermined_ns",),
}
# kind, and at_most where there is one, of recorded files; each looked through by hand
RECORDED: dict[str, tuple[str | None, float | None]] = {
    "kineto/a100_cupti_range_counters.json.gz": (None, None),
    "kineto/a100_event_sync.json.gz": ("idle-host-not-ready", None),
    "kineto/a100_multistream_graphs_rank0of16.json.gz": (None, None),
    "kineto/a100_nccl_rank0of2.json.gz": ("idle-host-not-ready", 4.24),
    "kineto/a100_triton_example.json.gz": ("idle-host-not-ready", None),
    "kineto/h100_bert_small.json.gz": ("idle-host-not-ready", 14.1),
    "kineto/mi210_gpu_only.json.gz": ("kernels", None),
    "kineto/mi250_minitoy_rocm6.2.json.gz": (None, None),
    "kineto/mi300x_bert_small.json.gz": ("idle-host-not-ready", 10.1),
    "kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz": ("communication", 2.66),
    "kineto/mi300x_sglang_graph_capture.json.gz": (None, None),
    "kineto/mi300x_sglang_qwen3-8b_decode_hipgraph.json.gz": (None, None),
    "kineto/mi300x_timesformer.json.gz": ("idle-host-not-ready", None),
    "kineto/mi3xx_rocprofv3_aorta_908_results.json.gz": (None, None),
    "kineto/sampled_rank0of128.json.gz": (None, None),
    "kineto/sampled_rank1of128.json.gz": (None, None),
    "kineto/v100_epoch_ns_timestamps.json.gz": ("kernels", None),
    "rocm/rocprofv3/docs_samples_0.5.0/memory_copy_trace.csv": (None, None),
    "rocm/rocprofv3/docs_samples_0.5.0/counter_collection.csv": (None, None),
    "rocm/rocprofv3/csv/gfx1151_decode_kernel_trace.csv": (None, None),
    "rocm/rocprofv3/csv/gfx950_phase_test_counter_collection.csv": (None, None),
    "rocm/rocprof_v1/mi300a_vecadd/results.json": ("copy", None),
    "rocm/rocprofv3/rocpd/mi300x_ck_gemm_28_results.db.gz": ("kernels", None),
}


def check(summary: Summary) -> dict[str, Any]:
    """What holds of every partition, and of the verdict beside it."""
    shown = judged(summary)
    verdict, partition = summary.verdict, shown["partition"]
    assert (verdict is None) == bool(summary.verdict_needs)
    if partition is None:
        assert summary.trace.busy_any_ns in (None, 0)
        return shown
    parts = {name: ns for name, ns in partition.items() if name != "window_ns"}
    assert all(isinstance(ns, int) and ns >= 0 for ns in parts.values())
    assert sum(parts.values()) == partition["window_ns"]
    busy = sum(ns for name, ns in parts.items() if "idle" not in name)
    if summary.trace.devices == 1 and partition["window_ns"] == summary.trace.span_ns:
        assert busy == summary.trace.busy_any_ns
    if verdict is None:
        return shown
    idle = {
        name: ns
        for name, ns in parts.items()
        if "idle" in name and name != "idle_or_not_recorded_ns"
    }
    of_kind = sum(parts[name] for name in KINDS.get(verdict.kind, idle))
    if verdict.kind == "undetermined":
        of_kind = max(of_kind, sum(idle.values()))
    others = [ns for name, ns in parts.items() if "idle" not in name]
    assert of_kind >= max(others)
    if verdict.at_most is not None:
        assert verdict.at_most == pytest.approx(
            partition["window_ns"] / (partition["window_ns"] - of_kind)
        )
    return shown


KERNEL = st.tuples(
    st.sampled_from(["k", "Cijk_Ailk_Bljk", "ncclDevKernel_AllReduce", "copy"]),
    st.integers(0, 1),
    st.integers(0, 3000),
    st.integers(1, 600),
    st.sampled_from([None, 5, 200]),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(KERNEL, min_size=1, max_size=16), st.booleans())
def test_parts_sum_to_the_window(rows: list[Any], steps: bool) -> None:
    made = Scene(
        devices=tuple(
            Device(index, name="MI210", vendor="AMD", compute_units=104) for index in ("0", "1")
        )
    )
    shapes = []
    for name, device, start, length, workgroups, called, known in rows:
        by = made.launch(start - 20, start - 10) if called else -1
        if name == "copy":
            made.copy(start, start + length, by, device=device)
            continue
        operator = made.op("aten::mm" if known else "mine", start - 30, start - 5)
        shapes.append(([[100, 100], [100, 100]], ["float", "float"]))
        where = {} if workgroups is None else {"workgroups": workgroups}
        made.kernel(start, start + length, by, name=name, device=device, op=operator, **where)
    if steps:
        for index in range(3):
            made.mark("step", 1000 * index, 1000 * index + 900, f"step {index}")
    check(summarise_trace(with_ops(made, shapes) if shapes else made.build(), "made up"))


def files() -> list[str]:
    return sorted(
        str(path.relative_to(FOLDER))
        for place in ("kineto", "rocm", "rocm-new")
        for path in (FOLDER / place).rglob("*")
        if path.is_file()
        and path.name not in ("MANIFEST.md", "facts.json")
        and "expected" not in path.parts
    )


@TOGETHER
@pytest.mark.parametrize("name", files())
def test_every_recorded_file(shared: Path, name: str) -> None:
    try:
        summary = summary_of(name)
    except ProfharnessError:
        pytest.skip("no trace: its reader's tests hold the sentence")
    check(summary)
    if name not in RECORDED:
        return
    kind, at_most = RECORDED[name]
    found = summary.verdict
    assert (found and found.kind) == kind
    assert (found and found.at_most) == (at_most and pytest.approx(at_most, rel=0.01))
