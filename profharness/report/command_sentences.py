"""Answer and Next for a command or loose trace files: the largest part of the time, why, and what to try."""

from __future__ import annotations

from profharness.analysis.records import Hotspots, Partition, Summary
from profharness.report import names
from profharness.report.figures import figure_text, finite, number_text
from profharness.report.folding import fold_kernel_name
from profharness.report.labels import device_word, on_cpu
from profharness.report.limits import clause_of, headroom_text, largest_cause, limit_of
from profharness.units import format_ns, format_share


def answer(summary: Summary) -> str:
    """How much of the window the device computes, and what the rest is."""
    top = "" if summary.partition is not None and not on_cpu(summary) else top_row(summary)
    parts = [_partition(summary), _gpu_percent(summary), top, _cores(summary)]
    text = " ".join(part for part in parts if part)
    return text or "Nothing was measured: no trace and no point gave figures."


def next_step(summary: Summary) -> str:
    """The advice for the verdict of the whole window, or what would give one."""
    verdict = summary.verdict
    if verdict is not None and verdict.trusted and verdict.limiter != "none":
        gain = headroom_text(verdict)
        if verdict.limiter == "undetermined" and verdict.evidence:
            return f"{verdict.evidence[0].upper()}{verdict.evidence[1:].rstrip('.')}. Try {limit_of(verdict, summary.partition).advice}."
        clause = clause_of(verdict, summary.partition, device_word(summary))
        return f"{clause[0].upper()}{clause[1:]}{f'; {gain}' if gain else ''}. Try {limit_of(verdict, summary.partition).advice}."
    if verdict is not None and verdict.trusted:
        return "Nothing stands out: the next gain lies in the model or in a faster device."
    if not _anything(summary):
        return "Run something: `profharness run` scans the built-in model, `profharness run -- COMMAND` profiles a command."
    if on_cpu(summary):
        return "Take the operations at the top of the table first; scan batch sizes to see where throughput levels off."
    return "Why the device waits was not measured: add --profile torch, or --profile rocprofv3 --hip-trace on AMD."


def _anything(summary: Summary) -> bool:
    return bool(summary.hotspots or summary.metrics or summary.telemetry or summary.points or summary.trace.kernels)


def _partition(summary: Summary) -> str:
    partition = summary.partition
    if partition is None or partition.window_ns <= 0:
        return ""
    text = f"The {device_word(summary)} computes {_share(partition.compute_ns, partition)} of the time"
    for ns, label in ((partition.exposed_communication_ns, "communication"), (partition.exposed_copy_ns, "copies")):
        if ns >= partition.window_ns / 100:
            text += f", waits {_share(ns, partition)} for {label}"
    idle = f" and is idle {_share(partition.idle_ns, partition)}"
    cause = largest_cause(partition)
    why = f", mostly {cause[0].label} ({_share(cause[1], partition)})" if cause and partition.idle_ns else ""
    return f"{text}{idle}{why}."


def _gpu_percent(summary: Summary) -> str:
    figure = summary.metrics.get(names.GPU_PERCENT)
    value = None if figure is None else finite(figure.value)
    partition = summary.partition
    if value is None or partition is None or partition.window_ns <= 0:
        return ""
    idle = 100 * partition.idle_ns / partition.window_ns
    return f'The driver\'s "GPU %" said {value:.0f} meanwhile.' if idle >= 10 and value >= 90 else ""


def top_row(summary: Summary) -> str:
    """The kernel or operation that takes most time; empty without a table of hotspots."""
    table = first_hotspots(summary)
    if table is None:
        return ""
    row = table.rows[0]
    return f"Most time goes to {fold_kernel_name(row.name, 48)}: {format_share(row.share)} of {format_ns(table.total_ns, 3)} in {_kind(table)}."


def first_hotspots(summary: Summary) -> Hotspots | None:
    """The table that a terminal shows: by kernel where there are kernels, else by op."""
    tables = {table.by: table for table in reversed(summary.hotspots) if table.rows}
    return tables.get("kernel") or tables.get("op") or tables.get("category")


def _kind(table: Hotspots) -> str:
    return {"kernel": "kernels", "op": "operations", "category": "all categories"}[table.by]


def _cores(summary: Summary) -> str:
    used, allowed = summary.metrics.get(names.CORES_USED), summary.metrics.get(names.CORES_ALLOWED)
    if used is None or used.value is None or not on_cpu(summary):
        return ""
    of = f" of {number_text(allowed.value)}" if allowed is not None and allowed.value is not None else ""
    return f"It kept {figure_text(used, interval=False).removesuffix(' cores')}{of} cores busy."


def _share(ns: int, partition: Partition) -> str:
    return format_share(ns / partition.window_ns)
