"""Device and host time by range, module, stack and shape: on generated files whose truth is known,
and on small ones written out.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.hotspots import grouped, tally
from profharness.analysis.kernels.tally import Grouping, join
from profharness.analysis.operators import around
from profharness.analysis.operators.device_time import lasting
from profharness.analysis.records import HotspotRow, Hotspots
from profharness.readers.kineto import reader
from profharness.trace.model import Source
from profharness.trace.wanted import Wanted
from tests.analysis.scene import Scene
from tests.readers.kineto.kineto_files import document, event, kernel, launch, op, write
from tests.variants import thorough

LARGER = (
    "a100_cupti_range_counters",
    "a100_event_sync",
    "a100_multistream_graphs_rank0of16",
    "a100_nccl_rank0of2",
    "a100_train_rank3of8_intus",
    "a100_triton_example",
    "h100_qwen0.5b_prefill",
    "mi210_gpu_only",
    "mi300x_bert_small",
    "mi300x_qwen0.5b_prefill",
    "mi300x_resnet_act_ckpt_rank0of8",
    "mi300x_sglang_graph_capture",
    "mi300x_sglang_qwen3-8b_decode_hipgraph",
    "mi300x_timesformer",
    "mi300x_torch_compile_triton",
    "mi300x_vllm_piecewise_graphs",
    "mi300x_xdit_sd3.5",
    "sampled_rank0of128",
    "sampled_rank1of128",
    "v100_epoch_ns_timestamps",
    "v100_resnet50_old_schema",
)
SPANS = st.recursive(
    st.lists(st.integers(1, 9), max_size=3),  # launches, by the length of their kernels
    lambda inner: st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=3),
    max_leaves=12,
)


class Generated:
    """Nested ranges with launches, laid out one after the other, and what each range should get."""

    def __init__(self) -> None:
        self.scene, self.now, self.outside = Scene(), 0, 0
        self.device: Counter[str] = Counter()
        self.inclusive: Counter[str] = Counter()
        self.host: Counter[str] = Counter()

    def lay(self, parts: Any, around: tuple[str, ...] = ()) -> int:
        """Lay out; the time of the ranges directly inside."""
        covered = 0
        for part in parts:
            if isinstance(part, int):
                self.launch(part, around)
                continue
            name, inner = part
            began = self.now
            self.now += 2
            nested = self.lay(inner, (*around, name))
            self.now += 1
            self.scene.mark("range", began, self.now, name)
            self.host[name] += self.now - began - nested
            covered += self.now - began
        return covered

    def launch(self, length: int, around: tuple[str, ...]) -> None:
        correlation = self.scene.launch(self.now, self.now + 1)
        self.scene.kernel(1000 + self.now, 1000 + self.now + length, correlation)
        self.now += 1
        if around:
            self.device[around[-1]] += length
            self.inclusive.update(dict.fromkeys(around, 0))
            for name in around:
                self.inclusive[name] += length
        else:
            self.outside += length


@given(SPANS)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_ranges_get_what_was_launched_inside_and_their_own_time(parts: Any) -> None:
    made = Generated()
    made.lay([*parts, 3])
    table = grouped(made.scene.build(), "range")
    rows = {row.name: row for row in table.rows}
    assert {name: row.total_ns for name, row in rows.items()} == dict(made.host)
    assert {name: row.device_ns or 0 for name, row in rows.items()} == {
        name: made.device[name] for name in rows
    }
    assert {name: row.device_inclusive_ns or 0 for name, row in rows.items()} == {
        name: made.inclusive[name] for name in rows
    }
    if rows:
        assert table.device_ns_outside == made.outside
        order = [(-(row.device_ns or 0), row.name) for row in table.rows]
        assert order == sorted(order)


def test_a_range_ends_before_a_launch_at_its_end() -> None:
    scene = Scene()
    scene.mark("range", 0, 10, "a")
    scene.mark("range", 10, 20, "b")
    scene.kernel(100, 105, scene.launch(10, 12))
    rows = {row.name: row.device_ns for row in grouped(scene.build(), "range").rows}
    assert rows == {"a": 0, "b": 5}


def test_steps_are_one_row_and_instants_none() -> None:
    scene = Scene()
    for number in range(3):
        scene.mark("step", 10 * number, 10 * number + 8, f"ProfilerStep#{number}")
    scene.mark("range", 9, 9, "an instant")
    rows = grouped(scene.build(), "range").rows
    assert [(row.name, row.calls, row.total_ns) for row in rows] == [("ProfilerStep", 3, 24)]


def test_our_own_marks_are_rows_by_step_and_point_and_logs_are_none() -> None:
    scene = Scene(sources=(*Scene.sources, *(Source(x, x) for x in ("steps", "trials", "level"))))
    scene.mark("marker", 0, 1, "profharness.marker:1")
    for number in range(3):
        start = 10 * number
        scene.mark("step", start, start + 8, f"profharness.step:{number}:32", items=32)
        scene.mark("trial", start + 1, start + 3, f"profharness.trial:b4:{number}", point="b4")
        scene.mark("trial", start + 4, start + 5, f"profharness.trial:b8:{number}", point="b8")
        for source in (1, 2, 3):
            scene.mark("step", start, start + 8, f"step {number}", source=source)
    scene.mark("range", 50, 60, "step 1")
    rows = grouped(scene.build(), "range").rows
    assert {row.name: (row.calls, row.total_ns) for row in rows} == {
        "step": (3, 24 - 9),
        "trial b4": (3, 6),
        "trial b8": (3, 3),
        "step 1": (1, 10),
    }


def frame(name: str, start: float, dur: float, tid: int = 100) -> dict[str, Any]:
    return event("python_function", name, start, dur, tid=tid)


def training(tmp_path: Path) -> Path:
    """A model of two linear layers, forward on thread 100 and backward on thread 200, and an
    optimizer; times in µs.
    """
    events = [
        frame("train.py(3): main", 0, 100),
        frame("nn.Module: Net_0", 10, 40),
        frame("nn.Module: Linear_0", 12, 10),
        op("aten::addmm", 13, 6, 1, Sequence_number=5),
        launch("hipLaunchKernel", 14, 2, 1),
        kernel("k", 20, 4, correlation=1),
        frame("nn.Module: Linear_1", 30, 10),
        frame("<built-in method addmm of Tensor object at 0x7f01ab>", 31, 8),
        op("aten::addmm", 32, 6, 2, Sequence_number=6),
        launch("hipLaunchKernel", 33, 2, 2),
        kernel("k", 36, 5, correlation=2),
        op("AddmmBackward0", 60, 10, 3, tid=200, Sequence_number=6, Fwd_thread_id=1),
        op("aten::mm", 62, 5, 4, tid=200),
        launch("hipLaunchKernel", 63, 2, 3, tid=200),
        kernel("k", 66, 7, correlation=3),
        op("AddmmBackward0", 72, 10, 5, tid=200, Sequence_number=5, Fwd_thread_id=1),
        op("aten::mm", 74, 5, 6, tid=200),
        launch("hipLaunchKernel", 75, 2, 4, tid=200),
        kernel("k", 78, 8, correlation=4),
        launch("hipLaunchKernel", 90, 2, 5),
        kernel("k", 93, 2, correlation=5),
    ]
    return write(tmp_path / "training.json", document(events))


def table_of(path: Path, by: Grouping) -> Hotspots:
    return grouped(reader.read(path, wanted=Wanted.STACKS), by)


def us(row: HotspotRow) -> tuple[str, float, float, float, int]:
    assert row.device_ns is not None
    assert row.device_inclusive_ns is not None
    assert row.total_ns is not None
    return (
        row.name,
        row.device_ns / 1000,
        row.device_inclusive_ns / 1000,
        row.total_ns / 1000,
        row.calls,
    )


def test_backward_kernels_belong_to_the_module_of_their_forward_operator(tmp_path: Path) -> None:
    table = table_of(training(tmp_path), "module")
    assert [us(row) for row in table.rows] == [
        # 10 µs forward and the 10 µs of its backward node
        ("Net_0/Linear_0", 12, 12, 20, 1),
        ("Net_0/Linear_1", 12, 12, 20, 1),
        ("Net_0", 0, 24, 20, 1),
    ]
    assert table.device_ns_outside == 2000
    assert [row.device_share for row in table.rows] == [12 / 26, 12 / 26, 0.0]


def test_a_forward_pass_run_again_belongs_to_the_module_that_runs_it(tmp_path: Path) -> None:
    events = [
        frame("nn.Module: Block_0", 0, 10),
        op("CheckpointFunction", 1, 8, 1, Sequence_number=5),
        op("CheckpointFunctionBackward", 20, 20, 2, Sequence_number=5, Fwd_thread_id=1),
        frame("nn.Module: Inner_0", 22, 6),
        op("aten::mm", 23, 4, 3),
        launch("hipLaunchKernel", 24, 1, 1),
        kernel("k", 26, 3, correlation=1),
    ]
    table = table_of(write(tmp_path / "again.json", document(events)), "module")
    assert [us(row) for row in table.rows] == [
        ("Inner_0", 3, 3, 6, 1),
        ("Block_0", 0, 0, 10 + 20 - 6 - 0, 1),
    ]


def test_stacks_name_the_innermost_frame_first_without_addresses(tmp_path: Path) -> None:
    table = table_of(training(tmp_path), "stack")
    assert [us(row) for row in table.rows] == [
        ("train.py(3): main", 6, 11, 92, 1),
        ("<built-in method addmm of Tensor> < train.py(3): main", 5, 5, 8, 1),
    ]
    assert table.device_ns_outside == 15000  # of the backward thread, which has no frames


def test_threads_of_the_hooks_have_no_stacks(tmp_path: Path) -> None:
    """What the hooks do on the program's own thread is its time, and shown."""
    events = [
        frame("train.py(3): main", 0, 100),
        frame("profharness_hooks/step_log.py(80): step", 10, 5),
        *(
            frame(name, start, 100 - 2 * start, tid)
            for tid, names in (
                (300, ("threading.py(1): run", "profharness_hooks/safe_point.py(9): _follow", "w")),
                (400, ("threading.py(1): run", "loader.py(2): fill", "w")),
                (500, ("profharness_hooks/line_sampler.py(1): _run", "w")),
            )
            for start, name in enumerate(names)
        ),
    ]
    table = table_of(write(tmp_path / "threads.json", document(events)), "stack")
    assert {row.name.partition(" < ")[0] for row in table.rows} == {
        "train.py(3): main",
        "profharness_hooks/step_log.py(80): step",
        "threading.py(1): run",
        "loader.py(2): fill",
        "w",
    }
    assert [row.calls for row in table.rows if row.name.startswith(("w ", "threading"))] == [1, 1]


def test_frames_are_read_only_where_they_are_wanted(tmp_path: Path) -> None:
    path = training(tmp_path)
    assert len(reader.read(path).marks) == 0
    trace = reader.read(path, wanted=Wanted.STACKS)
    assert len(trace.marks) == 5
    assert len(trace.ops) == len(reader.read(path).ops) == 6
    assert not grouped(reader.read(path), "module").rows
    assert not grouped(trace, "range").rows


@pytest.mark.parametrize("by", ["op", "shape"])
def test_shapes_and_types_tell_calls_of_one_operator_apart(tmp_path: Path, by: Grouping) -> None:
    calls = [([[4, 8], [8, 2]], 5), ([[4, 8], [8, 2]], 6), ([[1, 8], [8, 2]], 2)]
    events: list[dict[str, Any]] = []
    for number, (dims, length) in enumerate(calls):
        at = 20 * number
        args = {"Input_Dims": dims, "Input_type": ["float", "float"]}
        events += [
            op("aten::mm", at, 10, number + 1, **args),
            launch("hipLaunchKernel", at + 1, 2, number + 1),
            kernel("Cijk", at + 4, length, correlation=number + 1),
        ]
    tallies = [
        tally(reader.read(write(tmp_path / f"{name}.json", document(events), indent=indent)), by)
        for name, indent in (("plain", None), ("spaced", 2))
    ]
    rows = [
        [
            (row.name, row.shapes, row.dtypes, row.calls, row.device_ns, row.flops)
            for row in table.table().rows
        ]
        for table in (tallies[0], join(tallies))
    ]
    large = ("aten::mm", "[[4,8],[8,2]]", '["float","float"]')
    small = ("aten::mm", "[[1,8],[8,2]]", '["float","float"]')
    expected = {
        "shape": [
            [(*large, 2, 11000, 256.0), (*small, 1, 2000, 32.0)],
            [(*large, 4, 22000, 512.0), (*small, 2, 4000, 64.0)],
        ],
        "op": [
            [("aten::mm", None, None, 3, 13000, 288.0)],
            [("aten::mm", None, None, 6, 26000, 576.0)],
        ],
    }
    assert rows == expected[by]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["op", "shape", "range", "module", "stack"])
@pytest.mark.parametrize(
    "name",
    ["h100_bert_small", "mi250_minitoy_rocm6.2", *thorough(*LARGER)],
)
def test_rows_and_the_rest_are_all_device_time(shared: Path, name: str, by: Grouping) -> None:
    trace = reader.read(shared / f"fixtures/kineto/{name}.json.gz", wanted=Wanted.STACKS)
    table = grouped(trace, by)
    whole = sum(int(lasting(records).sum()) for records in (trace.kernels, trace.copies))
    if not table.rows or not whole:
        assert not table.device_ns_outside
        return
    assert table.device_ns_outside is not None
    assert sum(row.device_ns or 0 for row in table.rows) + table.device_ns_outside == whole
    outside = table.device_ns_outside / whole
    assert sum(row.device_share or 0 for row in table.rows) + outside == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["kernel", "shape", "module"])
def test_the_work_of_rows_is_that_of_the_operators(shared: Path, by: Grouping) -> None:
    path = shared / "fixtures/kineto/mi300x_timesformer.json.gz"
    trace = reader.read(path, wanted=Wanted.STACKS)
    facts = KernelFacts(trace)
    rows, operators = tally(trace, by, facts=facts).table().rows, grouped(trace, "op").rows
    flops, low_bytes, of_rows, bytes_of_rows = (
        sum(getattr(row, name) or 0 for row in listed)
        for listed in (operators, rows)
        for name in ("flops", "bytes")
    )
    assert of_rows == pytest.approx(flops)
    if by == "kernel":  # what copies and the CPU moved is no kernel's
        assert 0.5 * low_bytes < bytes_of_rows < low_bytes
    else:
        assert bytes_of_rows == pytest.approx(low_bytes, rel=0.02)
    assert {row.limiter for row in rows} > {"compute", "bandwidth", "inside-kernel"}
    assert all(0 <= row.peak_share <= 1 for row in rows if row.peak_share is not None)
    if by == "kernel":  # without what tells the work, nothing of it is worked out
        assert all(row.flops is None for row in grouped(trace, "kernel").rows)


@pytest.mark.parametrize(("kind", "begins"), [("stack", "f"), ("module", "nn.Module: f")])
def test_paths_of_spans_nested_without_end_take_bounded_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, begins: str
) -> None:
    """Each path is as long as it is deep: 30,000 frames of 6 MB took 5 GB."""
    monkeypatch.setattr(around, "_PATHS", 40_000)
    frames = [event("python_function", f"{begins}{i}", i, 9000 - 2 * i) for i in range(2000)]
    trace = reader.read(write(tmp_path / "t.json", document(frames)), wanted=Wanted.STACKS)
    names = around.around(trace, kind).names
    assert len(names) == 2000
    assert sum(map(len, names)) < 40_000 + 2000 * 20
    first, last = ("f1 < f0", "f1999 < …") if kind == "stack" else ("f0/f1", "…/f1999")
    assert (names[1], names[-1]) == (first, last)
