"""Real Kineto traces against exact facts: integer-ns figures computed apart from this code."""

from __future__ import annotations

import json

import pytest

from profharness import readers
from profharness.analysis.kernels.hotspots import by_category, by_kernel
from profharness.analysis.records import IdleCauses
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.counts import count, count_devices
from tests.conftest import shared_path

FOLDER = shared_path("fixtures/kineto")
FACTS = (
    [facts for facts in json.loads((FOLDER / "facts.json").read_text()) if "cats" in facts]
    if (FOLDER / "facts.json").exists()
    else []
)


@pytest.fixture(
    scope="module", params=FACTS, ids=lambda facts: facts["file"].removesuffix(".json.gz")
)
def case(request, shared):
    """The facts of one file and its trace."""
    return request.param, readers.read(FOLDER / request.param["file"])


def test_counts(case):
    facts, trace = case
    counts = count(trace)
    expected = {
        "kernels": facts["kernels"],
        "copies": facts["gpu_events"] - facts["kernels"],
        "busy_ns": facts["union_kernel_ns"],
        "busy_any_ns": facts["union_gpu_ns"],
        "span_ns": facts["span_gpu_ns"],
        "sum_kernel_ns": facts["sum_kernel_ns"],
        "streams": facts["n_streams"],
        "distinct_kernels": facts["distinct_kernel_names"],
        "graph_launches": facts["graph_launches"],
        "kernels_in_graphs": facts["kernels_in_graphs"],
        "unlinked_kernels": facts["kernels_without_runtime"],
        "devices": len(facts["per_device"]),
        "ranks": 1,
    }
    assert {name: getattr(counts, name) for name in expected} == expected


def test_devices(case):
    facts, trace = case
    devices = count_devices(trace)
    assert {name: (device.busy_any_ns, device.span_ns) for name, device in devices.items()} == {
        name: (device["union_ns"], device["span_ns"])
        for name, device in facts["per_device"].items()
    }
    assert sum(device.kernels for device in devices.values()) == facts["kernels"]


def test_hotspots(case):
    facts, trace = case
    table = by_kernel(trace)
    rows = [row for row in table.rows if row.total_ns is not None]  # the others are counters alone
    assert [[row.name, row.calls, row.total_ns] for row in rows[:5]] == facts["top5"]
    assert (table.total_ns or 0, sum(row.calls for row in rows)) == (
        facts["sum_kernel_ns"],
        facts["kernels"],
    )
    assert (by_category(trace).total_ns or 0) == facts["sum_gpu_ns"]


def test_parts_and_causes_sum_exactly(case):
    facts, trace = case
    split = summarise_trace(trace, facts["file"]).partition
    if not facts["gpu_events"]:
        assert split is None
        return
    assert split is not None
    work = split.compute_ns + split.exposed_communication_ns + split.exposed_copy_ns
    assert work + split.idle_ns + split.idle_or_not_recorded_ns == split.window_ns
    assert split.idle_or_not_recorded_ns >= 0
    assert split.idle_causes is not None
    by_cause = [getattr(split.idle_causes, name) for name in IdleCauses.__struct_fields__[:6]]
    assert sum(by_cause) == split.idle_ns == split.idle_causes.micro_ns + split.idle_causes.macro_ns
    assert min(by_cause) >= 0
