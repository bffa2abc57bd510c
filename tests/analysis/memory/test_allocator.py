"""What allocators held, against programs whose every byte is known, and recorded files."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.measurement import Measurement, measure
from profharness.analysis.memory.alive import BEFORE, alive_after, by_process
from profharness.analysis.memory.allocator import growth, memory, merge_memory
from profharness.analysis.memory.records import Memory, MemoryRow, MemoryUse
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.steps import Step
from profharness.analysis.time.windows import Windows
from profharness.readers.kineto.reader import read_blocks
from profharness.report.json import metrics_json
from profharness.report.md.metrics import metrics_markdown
from profharness.report.plots.memory import memory_plots
from profharness.report.tables.memory.holders import grows, lines, page_notes, page_tables
from profharness.stats import intervals
from profharness.trace.model import Trace
from profharness.trace.wanted import Wanted
from tests.analysis.memory.made import Program
from tests.analysis.scene import Scene
from tests.readers.kineto.kineto_files import document, launch, write

MIB = 1 << 20
RECORDED = ("h100_bert_small", "h100_qwen0.5b_prefill", "mi300x_qwen0.5b_prefill")


def of(trace: Trace, start: int = 0, end: int = 1_000_000_000) -> Memory:
    found = memory(Measurement(trace, Windows(intervals.window(start, end), "a window")))
    assert found is not None
    return found


def use_of(trace: Trace) -> MemoryUse:
    (use,) = of(trace).uses
    return use


def test_the_peak_and_its_holders_to_the_byte(tmp_path: Path) -> None:
    made = Program(before=3 * MIB)
    made.operator("aten::linear", 10, 30, inner="aten::addmm")
    made.operator("aten::zeros", 40, 60, inner="aten::empty")
    made.operator("aten::empty", 70, 80)
    made.take(12, 0x1000, 5 * MIB, "aten::addmm")
    made.take(15, 0x2000, 7 * MIB, "aten::addmm")
    made.free(35, 0x1000)
    made.take(45, 0x1000, 9 * MIB, "aten::zeros")
    made.take(75, 0x3000, 100, "aten::empty")
    made.take(90, 0x4000, 1, "outside of operators")
    made.free(91, 0x4000)
    made.free(95, 0x2000)
    use = use_of(made.trace(tmp_path))
    assert use.peak_bytes == made.peak == 19 * MIB + 101
    assert (use.device, use.peak_ns, use.step) == ("0", 90_000, None)
    assert use.before_bytes == 3 * MIB
    assert (use.reserved_bytes, use.reserved_peak_bytes) == (20 * MIB, 20 * MIB)
    assert [(row.name, row.kept_bytes, row.bytes, row.allocations) for row in use.operators] == [
        ("aten::zeros", 9 * MIB, 9 * MIB, 1),
        ("aten::addmm", 7 * MIB, 12 * MIB, 2),
        (BEFORE, 3 * MIB, 0, 0),
        ("aten::empty", 100, 100, 1),
        ("outside of operators", 1, 1, 1),
    ]
    assert (use.allocations, use.releases) == (5, 3)
    assert use.modules == ()


def test_what_was_taken_before_the_window_is_alive_in_it(tmp_path: Path) -> None:
    made = Program()
    made.operator("aten::mm", 0, 10)
    made.take(5, 0x1000, 4 * MIB)
    made.take(500, 0x2000, 1 * MIB)
    found = of(made.trace(tmp_path), 100_000, 400_000)
    (use,) = found.uses
    assert (use.peak_bytes, use.peak_ns, use.allocations) == (4 * MIB, 0, 0)
    assert [(row.name, row.kept_bytes, row.bytes) for row in use.operators] == [
        ("aten::mm", 4 * MIB, 0)
    ]


def test_modules_hold_what_their_operators_took(tmp_path: Path) -> None:
    made = Program()
    made.module("Net_0", 0, 100)
    made.module("Linear_0", 10, 40)
    made.operator("aten::addmm", 12, 30)
    made.operator("aten::relu", 50, 60)
    made.operator("aten::sum", 200, 210)
    made.take(15, 0x1000, 4 * MIB)
    made.take(55, 0x2000, 2 * MIB)
    made.take(205, 0x3000, 1 * MIB)
    path = write(tmp_path / "made.json", document(made.events))
    use = use_of(read_blocks(path, wanted=Wanted.STACKS))
    assert {row.name: row.kept_bytes for row in use.modules} == {
        "Net_0/Linear_0": 4 * MIB,
        "Net_0": 2 * MIB,
        "outside of modules": 1 * MIB,
    }


def test_growth_is_proven_only_where_its_interval_is_above_zero() -> None:
    steps = [Step(f"s{n}", n * 10, n * 10 + 9, None, 0) for n in range(8)]
    ends = np.array([step.end_ns for step in steps])
    leak = growth(steps, ends - 1, np.arange(8) * 100)
    assert (leak.value, leak.low, leak.high) == (100.0, 100.0, 100.0)
    noise = growth(steps, ends - 1, np.array([5, 90, 10, 80, 20, 95, 0, 99]))
    assert noise.low < 0 < noise.high
    still = growth(steps, ends - 1, np.full(8, 7))
    assert (still.low, still.high) == (0.0, 0.0)
    assert growth(steps[:3], ends - 1, np.arange(8)) is None


def test_a_leak_is_told(tmp_path: Path) -> None:
    made = Program()
    for number in range(6):
        start = number * 100
        made.step(number, start, start + 90)
        made.operator("aten::clone", start + 10, start + 20)
        made.take(start + 11, 0x1000 * (number + 1), 2 * MIB)
    trace = made.trace(tmp_path)
    (use,) = memory(measure(trace)).uses
    assert grows(use)
    assert use.growth_bytes.value == 2 * MIB
    assert use.step == "ProfilerStep#5"
    said = " ".join(lines(memory(measure(trace))))
    assert "grows by 2.0 MiB per step" in said
    assert "1 per step" in said


def test_calls_of_the_driver_take_time_of_the_window(tmp_path: Path) -> None:
    events = [launch("cudaMalloc", 0, 30, 1), launch("cudaMalloc", 90, 30, 2)]
    events += [launch("cudaFree", 40, 5, 3), launch("cudaLaunchKernel", 50, 5, 4)]
    trace = readers.read(write(tmp_path / "t.json", document(events)))
    found = of(trace, 0, 100_000)
    assert [(call.name, call.calls, call.total_ns) for call in found.calls] == [
        ("cudaMalloc", 2, 40_000),
        ("cudaFree", 1, 5_000),
    ]
    assert "cudaMalloc: 2 calls, 40.00 µs (40.0 % of the window)" in " ".join(lines(found))
    both = merge_memory([("a", found), ("b", None), ("c", found)])
    assert both is not None
    assert (both.window_ns, both.calls[0].calls) == (200_000, 4)


def test_holders_that_cannot_be_told_are_not_guessed(tmp_path: Path) -> None:
    made = Program()
    made.operator("aten::mm", 0, 10)
    made.take(5, 0x1000, 4 * MIB)
    for event in made.events:
        event["args"].pop("Addr", None)
    use = use_of(made.trace(tmp_path))
    assert (use.peak_bytes, use.operators, use.before_bytes) == (4 * MIB, (), None)
    assert "addresses" in use.needs
    lost = Program(before=8 * MIB)
    lost.take(5, 0x1000, 4 * MIB)
    lost.before -= 16 * MIB  # freed, and the file does not say so
    lost.take(6, 0x2000, 20 * MIB)
    (broken,) = of(lost.trace(tmp_path)).uses
    assert (broken.operators, broken.peak_bytes) == ((), 16 * MIB)
    assert "releases" in broken.needs


def used(**more: Any) -> MemoryUse:
    known = {"peak_bytes": 4 * MIB, "peak_ns": 5, "allocations": 1, "releases": 0}
    return MemoryUse(**{"device": "0", "allocated_bytes": 4 * MIB, **known, **more})


def test_a_curve_holds_its_values() -> None:
    use = used(at_ns=(2_000_000, 3_000_000), allocated=(MIB, 4 * MIB))
    (plot,) = memory_plots(Memory(window_ns=1, uses=(use,)))
    assert "[[2,1],[3,1],[3,4]]" in plot.json.replace(".0", "").replace(" ", "")
    (of_point,) = memory_plots(
        Memory(window_ns=1, uses=(msgspec.structs.replace(use, point="b1"),))
    )
    assert "[[0,1],[1,1],[1,4]]" in of_point.json.replace(".0", "").replace(" ", "")


def test_of_the_points_of_a_run_the_highest_lists_its_owners() -> None:
    owners = (MemoryRow(name="aten::mm", kept=1, kept_bytes=MIB),)
    uses = tuple(
        used(point=f"b{size}", peak_bytes=size * MIB, operators=owners) for size in (2, 8, 4)
    )
    (table,) = page_tables(Memory(window_ns=1, uses=uses))
    assert table.title == "By operator, b8: device 0"
    assert len(page_notes(Memory(window_ns=1, uses=uses))) == 3


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("profharness.trial:torch-b64:0", "in trial 0;"),
        ("profharness.step:12:64", "in step 12;"),
        ("ProfilerStep#3", "in ProfilerStep#3;"),
    ],
)
def test_steps_have_their_names(label: str, said: str) -> None:
    (note, *_) = page_notes(Memory(window_ns=1, uses=(used(step=label, point="p"),)))
    assert said in note[1]
    assert "into the window" not in note[1]


def test_without_allocator_and_calls_there_is_nothing() -> None:
    assert memory(measure(Scene().build())) is None
    assert list(lines(None)) == []
    assert (page_notes(None), page_tables(None), memory_plots(None)) == ((), (), ())


Act = tuple[bool, int, int]


@given(
    acts=st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(1, 1 << 40)), min_size=1),
    before=st.integers(0, 1 << 40),
)
@settings(deadline=None, max_examples=60)
def test_live_bytes_are_the_running_total_whatever_is_taken_and_freed(
    acts: list[Act], before: int
) -> None:
    made = Program(before=before)
    for number in range(6):
        made.operator(f"aten::op{number}", number * 100, number * 100 + 100)
    span = 600 / (len(acts) + 1)
    owners: Counter[str] = Counter()
    for number, (takes, address, size) in enumerate(acts, 1):
        at = round(number * span, 3)
        owner = f"aten::op{min(int(at // 100), 5)}"
        if address in made.alive and not takes:
            made.free(at, address)
        elif address not in made.alive:
            made.take(at, address, size, owner)
            owners[owner] += size
        elif before and not takes:
            made.free_early(at, 99, min(size, made.before))
    if not any(event["name"] == "[memory]" for event in made.events):
        return
    with tempfile.TemporaryDirectory() as folder:
        trace = made.trace(Path(folder))
    table = trace.allocations
    (rows,) = by_process(table)
    for last in range(len(rows)):
        alive = alive_after(table, rows[: last + 1])
        assert int(table.bytes[alive].sum()) + before == table.allocated[rows[last]]
    use = use_of(trace)
    if made.peak >= use.peak_bytes:
        held: Counter[str] = Counter()
        for owner, size in made.at_peak.values():
            held[owner] += size
        found = {row.name: row.kept_bytes for row in use.operators if row.kept_bytes}
        assert found == {**held, **({BEFORE: before} if before else {})}
    assert sum(row.kept_bytes for row in use.operators) == use.peak_bytes
    assert {row.name: row.bytes for row in use.operators if row.bytes} == owners


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_files_add_up(name: str, shared: Path) -> None:
    trace = readers.read(shared / "fixtures/kineto" / f"{name}.json.gz")
    table = trace.allocations
    for rows in by_process(table):
        first = int(table.allocated[rows[0]]) - int(table.bytes[rows[0]])
        for last in (0, len(rows) // 2, len(rows) - 1):
            alive = alive_after(table, rows[: last + 1])
            assert int(table.bytes[alive].sum()) + first == table.allocated[rows[last]]
    found = memory(measure(trace))
    assert found is not None
    for use in found.uses:
        assert sum(row.kept_bytes for row in use.operators) == use.peak_bytes
        assert sum(row.bytes for row in use.operators) == use.allocated_bytes
        assert max(use.allocated) == use.peak_bytes


def test_every_form_tells_of_it(tmp_path: Path) -> None:
    made = Program()
    made.operator("aten::mm", 0, 10)
    made.take(5, 0x1000, 4 * MIB)
    made.take(6, 0x2000, 4 * MIB)
    summary = summarise_trace(made.trace(tmp_path), "made.json")
    assert metrics_json(summary).count(b'"peak_bytes": 8388608') == 1
    assert summary.memory is not None
    (plot,) = memory_plots(summary.memory)
    assert "8.0 MiB at the peak" in plot.description
    text = metrics_markdown(summary)
    assert "**device 0** peak 8.0 MiB" in text
    assert "| aten::mm | 8.0 MiB | 100.0 % | 2 |" in " ".join(text.split())
