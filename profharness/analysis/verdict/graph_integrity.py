"""Do replays of device graphs show all their kernels?

Tracers have dropped kernels of graph launches (ROCm 7.2.0 recorded 448 of 512), so that a busy
device looks idle.
"""

from __future__ import annotations

from profharness.analysis.time.device_work import Work
from profharness.analysis.time.graph_losses import graph_losses
from profharness.findings import Finding, finding
from profharness.trace.model import Trace


def graph_kernels_missing(trace: Trace, work: Work) -> list[Finding]:
    """Graph launches with no kernels, or with fewer than the fullest replay of the graph or its
    capture. The first and the last of a process may be cut, and are not judged.
    """
    losses = graph_losses(trace, work)
    empty = int((losses.judged & (losses.shown == 0)).sum())
    partial = losses.judged & (losses.shown > 0)
    short, lost = int(partial.sum()), int(losses.lost[partial].sum())
    if not empty and not short:
        return []
    parts = [f"{empty} of {losses.launches} graph launches show no kernel"] if empty else []
    parts += (
        [f"{short} replays show {lost} kernels less than the fullest of their graph"]
        if short
        else []
    )
    return [
        finding(
            "graph-kernels-missing",
            "; ".join(parts),
            graph_launches=losses.launches,
            without_kernels=empty,
            short_replays=short,
            lost_kernels=lost,
        )
    ]
