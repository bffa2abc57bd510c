"""Pictures of recorded files, and of runs of earlier versions, against their summaries."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from profharness.analysis.pictures.records import KINDS, Pictures
from profharness.analysis.records import IdleCauses, Partition, Summary
from profharness.trace.model import Source
from profharness.understand import report_run as understand
from profharness.understand.load import Loaded
from profharness.understand.pictures import pictures_of
from tests.analysis.scene import Scene
from tests.conftest import shared_path
from tests.samples.keep import unpacked

NAMES = ("a100_nccl_rank0of2", "mi300x_bert_small", "a100_event_sync", "mi250_minitoy_rocm6.2")
RECORDED = [
    path for name in NAMES if (path := shared_path(f"fixtures/kineto/{name}.json.gz")).is_file()
]


def drawn(path: Path) -> tuple[Summary, Pictures]:
    loaded = understand.load([path])
    summary = understand.summarise(loaded)
    return summary, pictures_of(loaded, summary)


def parts(split: Partition) -> dict[str, int]:
    causes = split.idle_causes or IdleCauses()
    figures = {**msgspec.structs.asdict(split), **msgspec.structs.asdict(causes)}
    return {name: figures[name] for name in KINDS if figures[name]}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.split(".")[0])
def test_strips_have_the_sums_of_the_partition(path: Path) -> None:
    summary, pictures = drawn(path)
    totals: dict[str, int] = {}
    for strip in pictures.strips.strips:
        for kind, ns in strip.totals().items():
            totals[kind] = totals.get(kind, 0) + ns
    assert summary.partition is not None
    assert totals == parts(summary.partition)
    assert sum(strip.window_ns for strip in pictures.strips.strips) == summary.partition.window_ns


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.split(".")[0])
def test_flame_graphs_hold_all_device_time(path: Path) -> None:
    summary, pictures = drawn(path)
    kernels = summary.trace.sum_kernel_ns
    assert kernels is not None
    for flame in pictures.flames:
        assert flame.of_device
        assert flame.total_ns >= kernels
        outermost = [ns for ns, depth in zip(flame.length, flame.depth, strict=True) if depth == 0]
        assert sum(outermost) == flame.total_ns


@pytest.mark.slow
def test_a_run_on_the_cpu_has_a_flame_graph_of_its_operators(tmp_path: Path) -> None:
    summary, pictures = drawn(unpacked("0.1-scan-torch", tmp_path))
    assert pictures.strips.strips == ()
    (flame,) = pictures.flames
    assert (flame.by, flame.of_device) == ("op", False)
    assert summary.hotspots[0].total_ns == flame.total_ns


def test_the_longest_step_is_that_of_the_slowest_rank() -> None:
    """Each process numbers its steps; the second one's first is longer than all others."""
    scene = Scene(sources=(Source("a", "kineto", pid=7), Source("b", "kineto", pid=8)))
    for source, lengths in enumerate(((100, 500, 100, 200), (100, 100, 100, 400))):
        at = 0
        for number, length in enumerate(lengths):
            mark = f"ProfilerStep#{number}"
            scene.mark("step", at, at + length, mark, pid=7 + source, source=source)
            at += length
    loaded = Loaded(scene.build(), "a")
    assert pictures_of(loaded, understand.summarise(loaded)).longest_step == 1
