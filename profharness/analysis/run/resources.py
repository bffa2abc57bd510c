"""A run's classic resource curves: device and memory shares over time, with the begin of each point
of the scan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.rundir.manifest import Manifest
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Trace

BARE = "bare"
CPU_NODE, MEMORY_NODE = "cpu_node", "memory_node_used"
GPU, GPU_USED, GPU_TOTAL = "gpu_percent", "gpu_memory_used", "gpu_memory_total"


@dataclass(frozen=True, eq=False)
class Resources:
    """Per cent over seconds from the first sample; `marks`: seconds at which a point of the scan
    began, and its batch size. Of several devices `use` and `memory` are the means over them, and
    `least` and `most` the use of the least and the most utilised one at each instant.
    """

    seconds: F64
    use: F64
    memory: F64
    of_device: bool
    marks: tuple[tuple[float, str], ...]
    devices: int
    least: F64
    most: F64


def columns(trace: Trace, manifest: Manifest | None) -> Resources | None:
    """The devices that report their use, at the instants of the first one; without any the node's
    CPU and RAM. None where neither was sampled.
    """
    samples, find = trace.samples, trace.strings.find
    of_device = find(GPU) != NULL and bool((samples.metric == find(GPU)).any())
    metric = find(GPU if of_device else CPU_NODE)
    rows = np.flatnonzero((samples.metric == metric) & (samples.metric != NULL))
    if not len(rows):
        return None
    devices = list(dict.fromkeys(samples.device[rows].tolist()))
    if of_device:
        rows = rows[samples.device[rows] == devices[0]]
    rows = rows[np.argsort(samples.at_ns[rows], kind="stable")]
    at = samples.at_ns[rows]
    node = manifest.nodes[0] if manifest is not None and manifest.nodes else None
    if of_device:
        of_each = np.array([_held(trace, GPU, device, at) for device in devices])
        used, total_of_all = (
            np.array([_held(trace, metric, device, at) for device in devices]).sum(axis=0)
            for metric in (GPU_USED, GPU_TOTAL)
        )
        memory = 100 * used / total_of_all
    else:
        of_each = (
            100
            * samples.value[rows][np.newaxis]
            / max(1, len(node.cpus_allowed) if node is not None else 1)
        )
        total = node.memory_bytes if node is not None else None
        memory = 100 * _held(trace, MEMORY_NODE, NULL, at) / (total or np.nan)
    begin = int(at[0])
    of_each = np.minimum(of_each, 100.0)
    known = np.where(np.isnan(of_each), 0.0, 1.0)
    with np.errstate(invalid="ignore"):
        mean = np.nansum(of_each, axis=0) / known.sum(axis=0)  # the first device has a value
    return Resources(
        (at - begin) / 1e9,
        mean,
        memory,
        of_device,
        _marks(trace, begin),
        len(devices) if of_device else 1,
        np.nanmin(of_each, axis=0),
        np.nanmax(of_each, axis=0),
    )


def _held(trace: Trace, metric: str, device: int, at: I64) -> F64:
    """The last value of a metric at or before each instant; NaN before the first."""
    samples, code = trace.samples, trace.strings.find(metric)
    rows = np.flatnonzero(
        (samples.metric == code) & (samples.metric != NULL) & (samples.device == device)
    )
    if not len(rows):
        return np.full(len(at), np.nan)
    rows = rows[np.argsort(samples.at_ns[rows], kind="stable")]
    place = np.searchsorted(samples.at_ns[rows], at, "right") - 1
    return np.where(place >= 0, samples.value[rows[np.maximum(place, 0)]], np.nan)


def _marks(trace: Trace, begin: int) -> tuple[tuple[float, str], ...]:
    """Points of the bare pass by their begin; `torch-b16` is marked 16."""
    marks = trace.marks
    rows = np.flatnonzero((marks.kind == trace.strings.find("point")) & (marks.kind != NULL))
    mark_rows = [
        row
        for row in rows.tolist()
        if trace.sources[marks.source[row]].pass_name == BARE
        and trace.sources[marks.source[row]].layer == "trials"
    ]
    starts = sorted(
        (int(marks.start_ns[row]), trace.strings[marks.point[row]]) for row in mark_rows
    )
    return tuple(((at - begin) / 1e9, name.rpartition("-b")[2] or name) for at, name in starts)
