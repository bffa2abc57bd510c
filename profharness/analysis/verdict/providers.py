"""Nodes of a model that onnxruntime ran on the CPU, though the session had another provider."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from profharness.analysis.time.device_work import Work
from profharness.findings import Finding, finding
from profharness.trace.model import NODES, Trace

_CPU = f"{NODES} CPUExecutionProvider"


def nodes_on_cpu(trace: Trace, work: Work) -> Sequence[Finding]:  # noqa: ARG001  a check's form
    """Once for all profiles of sessions that share their nodes in the same way."""
    shared = sorted(
        tuple(sorted(entry for entry in source.details if entry[0].startswith(f"{NODES} ")))
        for source in trace.sources
    )
    found = []
    for entries, _ in groupby(shared):
        counts = {name: _count(text) for name, text in entries}
        if _CPU in counts and len(counts) > 1:
            total, on_cpu = sum(counts.values()), counts[_CPU]
            found.append(
                finding(
                    "nodes-on-cpu",
                    f"onnxruntime ran {on_cpu} of {total} recorded nodes of the model on the CPU "
                    f"({dict(entries)[_CPU]}; what a provider compiles together is one node)",
                    nodes=total,
                    on_cpu=on_cpu,
                )
            )
    return found


def _count(text: str) -> int:
    """The sum of `MatMul 2, Relu 1`."""
    return sum(int(part.rpartition(" ")[2]) for part in text.split(", "))
