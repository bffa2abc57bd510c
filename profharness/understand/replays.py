"""Operators of graph replays, for those who name a trace of the graphs' capture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profharness.errors import InputError, UsageError
from profharness.findings import Finding, finding
from profharness.trace.graphs.captures import Captured, captured_graphs
from profharness.trace.graphs.replays import Recovery, recovered
from profharness.trace.wanted import Wanted
from profharness.understand.load import Loaded, check_paths, load_files


def with_capture(loaded: Loaded, path: Path | None) -> Loaded:
    """What was loaded, with the operators of its graph replays from the capture in a file, and a
    finding that says how much of them it explains; unchanged without a file.

    Raises InputError for a file that cannot be read, captures no graph or does not name the kernels
    that it captured, and UsageError for a run in its place.
    """
    if path is None:
        return loaded
    trace, recovery = recovered(loaded.trace, read_capture(path))
    said = of_recovery(recovery, path)
    return replace(loaded, trace=trace, findings=(*loaded.findings, said))


def read_capture(path: Path) -> Captured:
    """The graphs that a trace file captures. Raises as `with_capture` does."""
    check_paths([path])
    if path.is_dir():
        raise UsageError(
            f"--capture-trace {path}: a run is no trace of a capture",
            "name the trace file that was recorded while the graph was captured",
        )
    captured = captured_graphs(load_files([path], wanted=Wanted.LAUNCHED, check=False).trace)
    if not captured.graphs:
        raise InputError(
            f"{path}: no graph is captured in this trace: no kernel is launched between a begin "
            "and an end of a stream's capture",
            "start the profiler before the graph is captured, and stop it afterwards",
        )
    if not captured.named:
        raise InputError(
            f"{path}: the launches that it captures do not say which kernels they launch",
            "torch.profiler records these names on ROCm only; without graphs, operators are "
            "recorded with their kernels",
        )
    return captured


def of_recovery(recovery: Recovery, path: Path) -> Finding:
    """How much of a trace's graph replays a capture explains; a warning where it is not all."""
    share = recovery.matched_ns / recovery.kernel_ns if recovery.kernel_ns else 0.0
    return finding(
        "graph-replays",
        f"{_sentence(recovery, share)} (capture: {path})",
        severity="info" if 0 < recovery.kernels == recovery.matched else "warning",
        captured_graphs=recovery.captures,
        replays=recovery.replays,
        exact_replays=recovery.exact,
        part_replays=recovery.in_part,
        ambiguous_replays=recovery.ambiguous,
        kernels=recovery.kernels,
        matched_kernels=recovery.matched,
        matched_time_share=share,
    )


def _sentence(recovery: Recovery, share: float) -> str:
    if not recovery.replays:
        return "the trace holds no kernel of a graph replay, so that its capture explains nothing"
    unlike = recovery.replays - recovery.exact - recovery.in_part - recovery.ambiguous
    parts = [
        f"{count} of {recovery.replays} {said}"
        for count, said in (
            (recovery.exact, "replays are a captured graph kernel by kernel"),
            (recovery.in_part, "replays are one in part, by the longest match in order"),
            (
                recovery.ambiguous,
                "replays fit several captured graphs of other operators equally well, and are left "
                "as they were",
            ),
            (unlike, "replays are like no captured graph, and are left as they were"),
        )
        if count
    ]
    return (
        f"{recovery.matched} of {recovery.kernels} kernels of graph replays ({share:.1%} of their "
        f"time) have the operators of their capture: {'; '.join(parts)}"
    )
