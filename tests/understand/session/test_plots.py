"""Figures for notebooks: what they show, and that the user's matplotlib stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

import profharness
from tests.needs import packages
from tests.readers.kineto.kineto_files import document, kernel, launch, write
from tests.report.samples import gpu_scan
from tests.run_files import run_of

packages("matplotlib", "mplhep")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    events = []
    for number in range(5):
        events += [
            launch("hipLaunchKernel", 40 * number, 2, number + 1),
            kernel(f"k${number}", 40 * number + 5, 20 - number, correlation=number + 1),
        ]
    return write(tmp_path_factory.mktemp("file") / "trace.json", document(events))


def widths(figure) -> list[float]:
    return [bar.get_width() for bar in figure.axes[0].patches]


def test_the_largest_rows_and_all_others_are_bars_that_sum_to_the_whole(file):
    figure = profharness.read(file).plot("hotspots", top=3)
    assert widths(figure) == pytest.approx([100 * ns / 90 for ns in (20, 19, 18, 33)])
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == [r"k\$0", r"k\$1", r"k\$2", "the rest (2 rows)"]
    running = figure.axes[0].lines[0].get_xdata()
    assert running[-1] == pytest.approx(100)


def test_the_parts_of_the_time_sum_to_the_whole(file):
    recording = profharness.read(file)
    figure = recording.plot("partition")
    assert sum(widths(figure)) == pytest.approx(100)
    parts = recording.partition
    compute = figure.axes[0].patches[0].get_width()
    busy = sum(row.total_ns for row in recording.hotspots("kernel").itertuples())
    assert compute == pytest.approx(100 * busy / parts["window_ns"])


def test_without_a_kind_the_first_that_has_figures_is_drawn(file):
    assert profharness.read(file).plot(title="A title").axes[0].get_title("left") == "A title"


def test_a_scan_has_throughput_and_latency(tmp_path, monkeypatch):
    run = profharness.open(run_of(tmp_path / "run", ranks=1, kernels=2).root)
    summary = gpu_scan()
    monkeypatch.setitem(run.__dict__, "summary", summary)
    panels = run.plot("throughput").axes
    assert [axes.get_xlabel() for axes in panels] == ["Batch size"] * 2
    assert panels[0].get_ylabel().startswith("Throughput")
    axes = run.plot("latency").axes[0]
    assert axes.get_ylabel() == "Latency (ms)"
    measured = [point for point in summary.points if point.throughput is not None]
    drawn = {x for line in axes.lines for x in line.get_xdata()}
    assert {point.throughput for point in measured} >= drawn
    assert drawn


def test_matplotlib_stays_as_the_user_has_it(file):
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mine = plt.figure()
    with mpl.rc_context({"font.size": 7.5}):
        before = (mpl.get_backend(), dict(mpl.rcParams), plt.get_fignums())
        for kind in ("hotspots", "partition"):
            profharness.read(file).plot(kind)
        assert (mpl.get_backend(), dict(mpl.rcParams), plt.get_fignums()) == before
    plt.close(mine)


def test_what_cannot_be_drawn_is_an_error_with_a_way_out(file):
    recording = profharness.read(file)
    with pytest.raises(profharness.UsageError, match="'pie': no such kind") as told:
        recording.plot("pie")
    assert "roofline" in told.value.hint
    with pytest.raises(profharness.InputError, match="no two levels"):
        recording.plot("throughput")
    with pytest.raises(profharness.InputError, match="operations and bytes"):
        recording.plot("roofline")
    with pytest.raises(profharness.UsageError, match="top 0"):
        recording.plot("hotspots", top=0)
