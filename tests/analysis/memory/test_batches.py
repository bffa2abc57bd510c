"""Memory against batch size: lines, intervals and the largest batch, against generated truth."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from profharness.analysis.memory.batches import MISFIT, REACH, Place, memory_by_batch
from profharness.analysis.memory.levels import Level, by_batch, of_points
from profharness.analysis.memory.records import BatchMemory, BatchPeak, HeldPeak, Memory
from profharness.analysis.records import Figure, PointSummary
from profharness.report.tables.memory.batches import batch_table, sentences
from profharness.report.tables.memory.holders import lines, page_notes, page_tables
from profharness.understand.loose.summaries import summarise_paths
from tests.analysis.memory.made import Program

MIB, GIB = 1 << 20, 1 << 30
SIZES = (4, 8, 16, 32)


def peaks_of(sizes: tuple[int, ...], held: list[int], least: int = 0) -> list[BatchPeak]:
    return [
        BatchPeak(batch_size=size, peak_bytes=peak, least_bytes=least)
        for size, peak in zip(sizes, held, strict=True)
    ]


def on_line(sizes: tuple[int, ...], fixed: int, per_item: int) -> list[BatchPeak]:
    """Of which the fixed part is held all the time."""
    return peaks_of(sizes, [fixed + per_item * size for size in sizes], fixed)


def largest(capacity: int, fixed: int, per_item: int) -> int:
    return (capacity - fixed) // per_item


def ends(row: BatchMemory) -> tuple[float | None, float | None, float | None]:
    assert row.largest_batch is not None
    return row.largest_batch.value, row.largest_batch.low, row.largest_batch.high


@given(
    flat=st.integers(1 << 20, 1 << 36),
    share=st.floats(0.0, 1.0),
    steep=st.floats(0.01, 1.0),
    times=st.floats(1.0, 10.0),
)
def test_a_peak_that_does_not_grow_says_no_more_than_what_fits_for_sure(
    flat: int, share: float, steep: float, times: float
) -> None:
    """As the step of an optimizer, which is the peak until another instant is; some of it is held
    all the time.
    """
    always = int(share * flat)
    per_item = int(steep * (flat - always) / SIZES[-1])
    other = int((1 - steep) * (flat - always)) + always
    assert other + per_item * SIZES[-1] <= flat
    peaks = [BatchPeak(batch_size=size, peak_bytes=flat, least_bytes=always) for size in SIZES]
    capacity = int(flat * times)
    row = memory_by_batch(Place("", "0", capacity), peaks)
    assert (row.holds, row.grows) == (True, False)
    value, low, high = ends(row)
    assert low is not None
    assert (value, high) == (None, None)
    assert max(flat, other + per_item * int(low)) <= capacity
    assert "another instant may be" in " ".join(sentences(row))


@given(
    fixed=st.integers(0, 1 << 38),
    per_item=st.integers(1 << 10, 1 << 32),
    sizes=st.lists(st.integers(1, 512), min_size=3, max_size=8, unique=True),
    times=st.floats(1.0, 15.0),
)
def test_a_line_is_found_and_extended_to_the_capacity(
    fixed: int, per_item: int, sizes: list[int], times: float
) -> None:
    measured = tuple(sorted(sizes))
    capacity = fixed + int(per_item * measured[-1] * times) + per_item // 2
    row = memory_by_batch(Place("", "0", capacity), on_line(measured, fixed, per_item))
    assert row.holds is True
    assert row.item_bytes is not None
    assert row.item_bytes.value == pytest.approx(per_item, rel=1e-6)
    truth = largest(capacity, fixed, per_item)
    # what is left of the interval is one of rounding: the capacity lies half an item off a whole size
    assert all(end is not None and abs(end - truth) <= 1 for end in ends(row))


@given(
    fixed=st.integers(0, 1 << 36),
    steep=st.integers(1 << 20, 1 << 30),
    share=st.floats(0.0, 0.5),
    corner=st.integers(0, 3),
)
def test_the_steepest_of_two_instants_is_extended(
    fixed: int, steep: int, share: float, corner: int
) -> None:
    """Two instants of a step: one with more that is fixed, as that of the optimizer, and one with
    more per item. The peak is the higher one.
    """
    sizes = (1, 2, 4, 8, 16, 32, 64)
    flat, meets = int(share * steep), sizes[corner] + 1
    other = fixed + (steep - flat) * meets
    held = [max(fixed + steep * size, other + flat * size) for size in sizes]
    capacity = fixed + steep * 200 + steep // 2
    row = memory_by_batch(Place("", "0", capacity), peaks_of(sizes, held, fixed))
    assert row.holds is True
    value, low, high = ends(row)
    assert value is not None
    assert low is not None
    assert low <= 200 <= (high or row.limit)
    assert value == pytest.approx(200, rel=0.2)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(1)
    fixed, per_item, capacity = 2 * GIB, 40 * MIB, 20 * GIB
    truth = largest(capacity, fixed, per_item)
    inside, width = 0, []
    for _ in range(400):
        held = [
            int((fixed + per_item * size) * (1 + random.normal(0, 0.003)))
            for size in (8, 16, 32, 64, 128)
        ]
        row = memory_by_batch(Place("", "0", capacity), peaks_of((8, 16, 32, 64, 128), held))
        _, low, high = ends(row)
        assert low is not None
        inside += low <= truth <= (high or REACH * 128)
        width.append((high or REACH * 128) - low)
    assert inside / 400 >= 0.93
    assert np.median(width) < 0.1 * truth


@pytest.mark.parametrize("power", [1.5, 2.0, 0.5])
def test_peaks_on_no_line_are_not_extended(power: float) -> None:
    held = [int(GIB * size**power) for size in SIZES]
    row = memory_by_batch(Place("", "0", 500 * GIB), peaks_of(SIZES, held))
    assert (row.holds, row.largest_batch, row.limit) == (False, None, 32)
    assert row.misfit is not None
    assert row.misfit > MISFIT
    assert "nothing is said beyond batch 32" in " ".join(sentences(row))


def test_two_sizes_give_no_interval() -> None:
    row = memory_by_batch(Place("", "0", 80 * GIB), on_line((8, 32), 4 * GIB, GIB))
    assert ends(row) == (76, None, None)
    assert (row.holds, row.misfit) == (None, None)
    assert "3 batch sizes" in row.needs
    assert "is 76; two sizes give no interval" in " ".join(sentences(row))


@given(
    fixed=st.integers(1, 1 << 36), per_item=st.integers(1 << 10, 1 << 32), size=st.integers(1, 64)
)
def test_one_size_bounds_the_largest_from_below(fixed: int, per_item: int, size: int) -> None:
    held = on_line((size,), fixed, per_item)
    capacity = held[0].peak_bytes * 5 + per_item // 2
    truth = largest(capacity, fixed, per_item)
    value, low, high = ends(memory_by_batch(Place("", "0", capacity), held))
    assert low is not None
    assert size <= low <= truth
    assert (value, high) == (None, None)
    known = memory_by_batch(Place("", "0", capacity, before=fixed), held)
    assert known.largest_batch is not None
    if truth < REACH * size:
        assert known.largest_batch.value == truth
    else:
        assert known.largest_batch.value is None
    assert known.largest_batch.low == low


def test_one_size_says_what_it_needs() -> None:
    row = memory_by_batch(Place("", "0", 80 * GIB), on_line((8,), GIB, GIB))
    assert "what was held before the recording" in row.needs
    row = memory_by_batch(Place("", None), on_line((8,), GIB, GIB))
    assert row.largest_batch is None
    assert "how much memory there is" in row.needs


def test_what_others_hold_and_what_is_reserved_leave_less_room() -> None:
    """By hand: 80 GiB, of which others held 4 to 6 GiB; 10 % more is reserved than given out."""
    held = [
        BatchPeak(
            batch_size=size,
            peak_bytes=(2 + size) * GIB,
            reserved_bytes=(2 + size) * 11 * GIB // 10,
            elsewhere_bytes=others * GIB,
        )
        for size, others in ((8, 6), (16, 4), (32, 5))
    ]
    row = memory_by_batch(Place("", "0", 80 * GIB), held)
    # (80 - 5) / 1.1 - 2 = 66.2; (80 - 6) / 1.1 - 2 = 65.3; 80 - 4 - 2 = 74
    assert ends(row) == (66, 65, 74)
    assert row.needs == ""
    said = " ".join(sentences(row))
    assert "the largest batch that fits in 80.0 GiB is 66 (95 % interval 65 to 74)" in said
    assert "beside 5.0 GiB that others hold" in said


def test_nothing_is_said_beyond_the_reach() -> None:
    row = memory_by_batch(Place("", "0", 1 << 50), on_line(SIZES, GIB, MIB))
    assert ends(row) == (None, REACH * 32, None)
    assert "at least batch 512 fits" in " ".join(sentences(row))


def test_of_one_size_the_highest_peak_counts() -> None:
    row = memory_by_batch(
        Place("", "0", 80 * GIB),
        [*on_line(SIZES, GIB, GIB), *on_line((8,), 0, GIB)],
    )
    assert [one.peak_bytes for one in row.peaks] == [(1 + size) * GIB for size in SIZES]
    with pytest.raises(ValueError, match="no peaks"):
        memory_by_batch(Place("", "0"), [])


def point(size: int, backend: str = "torch", **figures: float) -> PointSummary:
    held = (
        HeldPeak(device=None, peak_bytes=size * MIB),
        HeldPeak(
            device="0",
            peak_bytes=(3 + size) * GIB,
            reserved_peak_bytes=(4 + size) * GIB,
            capacity_bytes=80 * GIB,
        ),
    )
    metrics = {name: Figure(value=value, unit="B") for name, value in figures.items()}
    return PointSummary(
        point=f"{backend}-b{size}", backend=backend, batch_size=size, held=held, metrics=metrics
    )


def test_points_make_a_series_for_each_backend_and_place() -> None:
    points = [
        *(point(size, gpu_memory_used=(6 + size) * GIB, memory_node_used=GIB) for size in SIZES),
        point(8, "other"),
        PointSummary(point="torch-b64", backend="torch", batch_size=64, state="failed"),
        PointSummary(point="cold", backend="torch"),
    ]
    rows = by_batch(of_points(points), host_bytes=16 * GIB)
    assert [(row.series, row.device, len(row.peaks)) for row in rows] == [
        ("torch", None, 4),
        ("torch", "0", 4),
        ("other", None, 1),
        ("other", "0", 1),
    ]
    assert {one.elsewhere_bytes for one in rows[1].peaks} == {2 * GIB}
    assert [one.elsewhere_bytes for one in rows[0].peaks] == [GIB - size * MIB for size in SIZES]
    assert rows[0].capacity_bytes == 16 * GIB
    assert rows[3].peaks[0].elsewhere_bytes is None


def test_every_form_tells_of_it() -> None:
    memory = Memory(window_ns=1, by_batch=by_batch(of_points([point(size) for size in SIZES])))
    said = "\n".join(lines(memory))
    assert "torch: device 0, by batch size: 3.0 GiB and 1.0 GiB per item, by 4 batch sizes" in said
    assert "95 % interval" in said
    (first, *_) = page_notes(memory)
    assert first[0] == "torch: host, by batch size"
    (table,) = page_tables(memory)
    assert table.title == "Memory by batch size"
    assert len(table.rows) == 8
    assert batch_table(()) is None


@given(
    fixed=st.integers(1, 8),
    per_item=st.integers(1, 64),
    sizes=st.lists(st.integers(1, 32), min_size=3, max_size=4, unique=True),
    times=st.floats(1.2, 8),
)
@settings(deadline=None, max_examples=8)
def test_loose_traces_of_several_batch_sizes(
    fixed: int, per_item: int, sizes: list[int], times: float
) -> None:
    """Files whose steps say their items: parameters before the recording, activations in it."""
    top = max(sizes)
    capacity = (fixed + per_item * int(top * times)) * MIB + per_item * MIB // 2
    assume(top * per_item > 1)
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for size in sizes:
            made = Program(before=fixed * MIB, chunk=1, capacity=capacity)
            for step in range(3):
                start = 1000 * step
                made.step(step, start, start + 900, items=size)
                made.operator("aten::relu", start + 10, start + 800)
                for item in range(size):
                    made.take(start + 20 + item, 0x1000 + item, per_item * MIB)
                for item in range(size):
                    made.free(start + 500 + item, 0x1000 + item)
            paths.append(made.file(Path(folder), f"b{size}.json"))
        memory = summarise_paths(paths).memory
        alone = summarise_paths(paths[:1]).memory
    assert memory is not None
    (row,) = memory.by_batch
    assert [one.batch_size for one in row.peaks] == sorted(sizes)
    truth = largest(capacity, fixed * MIB, per_item * MIB)
    assert ends(row) == (truth, truth, truth)
    assert alone is not None
    (one,) = alone.by_batch
    assert one.before_bytes == fixed * MIB
    assert one.largest_batch is not None
    assert one.largest_batch.value == (truth if truth < REACH * sizes[0] else None)


def test_levels_of_unknown_places_keep_their_line() -> None:
    held = HeldPeak(device="0", peak_bytes=GIB)
    (row,) = by_batch([Level("", 4, (held,))])
    assert (row.capacity_bytes, row.largest_batch) == (None, None)
