"""The telemetry metrics: name, unit, and whether a value is an instant or covers an interval. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SampleMetric:
    """What one telemetry metric means. `stamp` says whether a value is an instant or covers an interval."""

    name: str
    unit: str
    stamp: Literal["instant", "interval"]
    meaning: str


SAMPLE_METRICS: tuple[SampleMetric, ...] = (
    SampleMetric("cpu_tree", "cores", "interval", "cores that the workload's process tree ran on"),
    SampleMetric("cpu_tree_wait", "cores", "interval", "cores that the process tree waited for (run queue)"),
    SampleMetric("cpu_node", "cores", "interval", "cores busy on the whole node"),
    SampleMetric("memory_tree", "B", "instant", "resident memory of the process tree (shared pages count in each process)"),
    SampleMetric("memory_node_used", "B", "instant", "memory in use on the node (total less available)"),
    SampleMetric("memory_cgroup", "B", "instant", "memory charged to the cgroup"),
    SampleMetric("cpu_throttled", "share", "interval", "share of time in quota periods in which the cgroup was stopped by its CPU quota"),
    SampleMetric("pressure_cpu", "share", "interval", "share of time that some task waited for a CPU"),
    SampleMetric("pressure_memory", "share", "interval", "share of time that some task waited for memory"),
    SampleMetric("pressure_io", "share", "interval", "share of time that some task waited for I/O"),
    SampleMetric("processes_tree", "processes", "instant", "processes of the workload's tree"),
    SampleMetric("throughput", "items/s", "interval", "items of the trials in the interval over its length"),
)
