"""Operators of graph replays, for those who name traces of the graphs' capture."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from msgspec.structs import replace as replace_fields

from profharness.errors import InputError, UsageError
from profharness.findings import Finding, finding
from profharness.trace.columns.table import NULL
from profharness.trace.graphs.captures import Capture, captured_graphs
from profharness.trace.graphs.replays import Recovery, recovered
from profharness.trace.wanted import Wanted
from profharness.understand.load import Loaded, check_paths, load_files
from profharness.units import format_share


def with_captures(loaded: Loaded, paths: tuple[Path, ...]) -> Loaded:
    """What was loaded, with the operators of its graph replays from the captures in these files,
    and a finding that says how much of them they explain; unchanged without a file. Raises as
    `read_captures` does.
    """
    if not paths:
        return loaded
    trace, recovery = recovered(loaded.trace, read_captures(paths))
    return replace(loaded, trace=trace, findings=(*loaded.findings, of_recovery(recovery)))


def read_captures(paths: tuple[Path, ...]) -> tuple[Capture, ...]:
    """The graphs that these trace files capture; each process reads them once, unless they change.

    Raises InputError for a file that cannot be read, captures no graph or does not name the kernels
    that it captured, and UsageError for a run in its place, or one named twice.
    """
    if not paths:
        return ()
    check_paths(paths)
    files = ((path, path.stat()) for path in paths)
    return tuple(
        capture
        for path, state in files
        for capture in _of_file(path, (state.st_mtime_ns, state.st_size))
    )


@cache
def _of_file(path: Path, _state: tuple[int, int]) -> tuple[Capture, ...]:
    if path.is_dir():
        raise UsageError(
            f"--capture-trace {path}: a run is no trace of a capture",
            "name the trace file that was recorded while the graph was captured",
        )
    captures = captured_graphs(load_files([path], wanted=Wanted.LAUNCHED, check=False).trace)
    if not captures:
        raise InputError(
            f"{path}: no graph is captured in this trace: no kernel is launched between a begin "
            "and an end of a stream's capture",
            "start the profiler before the graph is captured, and stop it afterwards",
        )
    named = tuple(capture for capture in captures if capture.named)
    if not named:
        raise InputError(
            f"{path}: the launches that it captures do not say which kernels they launch",
            "torch.profiler records these names on ROCm only; run once without graphs to record "
            "the operators with their kernels",
        )
    if all((capture.op == NULL).all() for capture in named):
        raise InputError(
            f"{path}: no operator is recorded around the captured launches",
            "record the CPU activity too",
        )
    return named


def of_recovery(recovery: Recovery) -> Finding:
    """How much of a trace's graph replays the captures explain."""
    share = recovery.matched_ns / recovery.kernel_ns if recovery.kernel_ns else 0.0
    whole = 0 < recovery.matched == recovery.kernels - recovery.bare
    item = finding(
        "graph-replays" if whole else "graph-replays-unmatched",
        _sentence(recovery, share),
        severity=None if recovery.replays else "info",
        captured_graphs=recovery.captures,
        replays=recovery.replays,
        exact_replays=recovery.exact,
        in_order_replays=recovery.in_order,
        ambiguous_replays=recovery.ambiguous,
        kernels=recovery.kernels,
        matched_kernels=recovery.matched,
        kernels_without_operator=recovery.bare,
        matched_time_share=share,
    )
    return item if recovery.replays else replace_fields(item, advice=_NO_REPLAY)


_NO_REPLAY = "leave --capture-trace out for this file"
_HOW = (
    "equal to a captured graph kernel by kernel",
    "by the longest match in order",
    "as they were, since several captured graphs with other operators match equally well",
    "as they were, since no captured graph matches",
)


def _sentence(recovery: Recovery, share: float) -> str:
    if not recovery.replays:
        return "the trace holds no kernel of a graph replay, so that a capture explains nothing"
    unlike = recovery.replays - recovery.exact - recovery.in_order - recovery.ambiguous
    counts = (recovery.exact, recovery.in_order, recovery.ambiguous, unlike)
    parts = [f"{count} {said}" for count, said in zip(counts, _HOW, strict=True) if count]
    outside = (
        f"; {recovery.bare} {'kernels were' if recovery.bare > 1 else 'kernel was'} launched "
        "outside of any operator of the capture"
        if recovery.bare
        else ""
    )
    return (
        f"{recovery.matched} of {recovery.kernels} kernels of graph replays "
        f"({format_share(share)} of their time) have the operators of their capture "
        f"(replays: {'; '.join(parts)}){outside}"
    )
