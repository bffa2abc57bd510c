"""Figures of several files as one: which of them count, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profharness.analysis.parts import combine, part
from profharness.trace.model import Device, Samples, Source, Trace
from profharness.trace.sample_metrics import TORCH_ALLOCATED
from tests.analysis.scene import Scene

GIB = float(1 << 30)


def of_file(gap_ns: int, *held: float) -> Trace:
    """Two kernels with a gap between them, and what torch held on each device meanwhile."""
    made = Scene(devices=tuple(Device(str(index)) for index in range(len(held))))
    made.kernel(0, 100)
    made.kernel(100 + gap_ns, 200 + gap_ns)
    trace = made.build()
    samples = Samples.build(
        at_ns=[10] * len(held),
        until_ns=[10] * len(held),
        device=list(range(len(held))),
        metric=trace.strings.code(TORCH_ALLOCATED),
        value=list(held),
        source=0,
    )
    return replace(trace, samples=samples)


def test_of_peaks_and_of_the_longest_gap_the_highest_file_counts() -> None:
    traces = {"a.json": of_file(300, GIB, 2.0), "b.json": of_file(100, 3 * GIB, 1.0)}
    found = combine([part(trace, name) for name, trace in traces.items()], "both").metrics
    for name, low, high in (
        ("torch_allocated_peak", GIB, 3 * GIB),
        ("torch_allocated_peak_0", GIB, 3 * GIB),
        ("torch_allocated_peak_1", 1.0, 2.0),
        ("idle_longest_gap", 100, 300),
    ):
        figure = found[name]
        assert (figure.value, figure.low, figure.high) == (high, low, high), name
        assert figure.note.startswith("the highest of 2 files"), name


def test_shares_are_means_over_the_windows_and_other_figures_medians() -> None:
    found = combine([part(of_file(gap, GIB), str(gap)) for gap in (300, 100, 0)], "all").metrics
    assert found["busy"].value == pytest.approx(600 / 1000)
    assert found["busy"].note.startswith("mean of 3 files")
    assert found["concurrency"].note.startswith("median of 3 files")


def test_ranks_of_several_files_stand_side_by_side() -> None:
    made = []
    for rank in (0, 1):
        scene = Scene(sources=(Source(f"r{rank}.json", "kineto", pid=7, rank=rank),))
        scene.kernel(0, 60 + rank, device=0)
        scene.kernel(90, 100, device=0)
        made.append(part(scene.build(), f"r{rank}.json"))
    pictures = combine(made, "two files").pictures
    assert pictures is not None
    assert [(row.device, row.rank, row.compute_ns) for row in pictures.ranks] == [
        ("r0.json", 0, 70),
        ("r1.json", 1, 71),
    ]
