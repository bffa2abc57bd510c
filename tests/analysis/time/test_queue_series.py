"""Queue depth over time: means of equal parts of the window, stream by stream."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.queue_series import mean_depth
from profharness.stats import intervals
from tests.analysis.scene import Scene

SPANS = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 30)), max_size=20)
BOUNDS = st.lists(st.integers(0, 130), min_size=2, max_size=8, unique=True).map(sorted)


@given(SPANS, BOUNDS, st.sampled_from((0, 1_700_000_000_000_000_000)))
def test_the_mean_is_that_of_every_nanosecond(
    spans: list[tuple[int, int]], bounds: list[int], base: int
) -> None:
    open_at = np.zeros(200)
    for start, length in spans:
        open_at[start : start + length] += 1
    starts = [base + start for start, _ in spans]
    queued = intervals.of(starts, [base + start + length for start, length in spans])
    found = mean_depth(queued, np.array(bounds) + base)
    wanted = [open_at[a:b].mean() for a, b in pairwise(bounds)]
    assert found == pytest.approx(wanted)


def test_each_stream_has_a_series_from_launch_to_end() -> None:
    scene = Scene()
    for stream, start in ((0, 0), (0, 100), (1, 200)):
        call = scene.launch(start, start + 10)
        scene.kernel(start + 300, start + 400, call, stream=stream)
    queues = summarise_trace(scene.build(), "a.json").queues
    assert [(row.stream, row.peak) for row in queues] == [("0", 2), ("1", 1)]
    (deep, _) = queues
    assert (deep.at_ns[0], deep.end_ns, len(deep.depth)) == (300, 600, 200)
    # the first kernel ends at 400, the second at 500; both were launched before the window
    assert deep.depth[0] == 2
    assert deep.depth[-1] == 0
    assert deep.mean == pytest.approx((100 * 2 + 100) / 300)


def test_without_launches_there_is_none() -> None:
    scene = Scene()
    scene.kernel(0, 10)
    assert summarise_trace(scene.build(), "a.json").queues == ()


@pytest.mark.parametrize("name", ["a100_multistream_graphs_rank0of16", "mi250_minitoy_rocm6.2"])
def test_the_series_of_a_recorded_file_add_up_to_the_figure(shared: Path, name: str) -> None:
    trace = readers.read(shared / f"fixtures/kineto/{name}.json.gz")
    summary = summarise_trace(trace, name)
    whole = summary.metrics["queue_depth"].value
    assert whole is not None
    assert sum(row.mean for row in summary.queues) == pytest.approx(whole)
