"""What ran a point where another device or execution provider was wanted, or ran a part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from profharness.findings import Finding, finding
from profharness.rundir.manifest import PointRecord

FALLBACK, ON_CPU, NODES, PROVIDERS, RECOMPILED, SUPPORTED, NO_POLICY = (
    "fallback",
    "nodes_on_cpu",
    "nodes",
    "providers",
    "recompiled",
    "supported_operators",
    "memory_policy",
)
"""Keys of the notes that workers and servers leave (wrappers/profharness_workloads)."""


def provider_findings(records: Sequence[PointRecord]) -> Iterator[Finding]:
    """Once for all points of a backend that say the same; of one point where no other says it.
    Which nodes a provider takes does not depend on the point.
    """
    for (backend, text, _), points in _same(records, FALLBACK):
        said = text if backend in text else f"{backend}: {text}"
        yield finding("device-fallback", said, point=_only(points))
    for (backend, operators, nodes), _ in _same(records, ON_CPU):
        total, on_cpu = _counted(nodes)
        yield finding(
            "nodes-on-cpu",
            f"{backend} left {on_cpu} of {total} nodes of the model to the CPU ({operators})",
            nodes=total,
            on_cpu=on_cpu,
        )
    for (backend, text, _), points in _same(records, SUPPORTED):
        share = float(text.partition(";")[0])
        if share < 1:
            yield finding(
                "operators-unsupported",
                _supported_text(backend, share),
                point=_only(points),
                supported_operators=share,
            )
    for (_, text, _), points in _same(records, NO_POLICY):
        yield finding("memory-not-bound", text, point=_only(points))


def _supported_text(backend: str, share: float) -> str:
    if not share:
        return f"{backend} supports none of the model's operators: its engine does not run at all"
    return (
        f"{backend} supports {100 * share:.0f} % of the model's operators, and leaves the others "
        "to the runtime beside its engine"
    )


def _same(
    records: Sequence[PointRecord], key: str
) -> Iterable[tuple[tuple[str, str, str], list[str]]]:
    """The points that have this note by backend, note and nodes."""
    said: dict[tuple[str, str, str], list[str]] = {}
    for record in records:
        if key in record.notes:
            same = (record.backend, record.notes[key], record.notes.get(NODES, ""))
            said.setdefault(same, []).append(record.id)
    return said.items()


def _only(points: Sequence[str]) -> str | None:
    return points[0] if len(set(points)) == 1 else None


def recompiled(record: PointRecord) -> Iterator[Finding]:
    """Compiling inside of what was timed."""
    if RECOMPILED in record.notes:
        yield finding(
            "compiled-in-trials",
            f"the execution provider compiled while {record.id} was measured in the "
            f"{record.pass_name} pass: {record.notes[RECOMPILED]}",
            point=record.id,
        )


def providers_of(record: PointRecord | None) -> tuple[str, ...]:
    """The execution providers of the point's session, best first, as onnxruntime reported them."""
    text = record.notes.get(PROVIDERS, "") if record is not None else ""
    return tuple(text.split(",")) if text else ()


def _counted(nodes: str) -> tuple[int, int]:
    """All nodes and those on the CPU of `MIGraphXExecutionProvider 52, CPUExecutionProvider 3`; of
    several models or processes, parted by semicolons, those of the first.
    """
    parts = [part.rpartition(" ") for part in nodes.partition(";")[0].split(", ")]
    by_name = {name: int(count) for name, _, count in parts}
    return sum(by_name.values()), by_name.get("CPUExecutionProvider", 0)
