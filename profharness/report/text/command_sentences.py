"""Answer and Next for a command or loose trace files: the largest part of the time, why, and what
to try.
"""

from __future__ import annotations

from collections.abc import Sequence

from profharness.analysis.communication.records import SlowestRank
from profharness.analysis.host.kinds import Kind
from profharness.analysis.host.records import HostTime
from profharness.analysis.records import Hotspots, Partition, Summary
from profharness.analysis.run.checks import NOBODY
from profharness.analysis.verdict.window import NOTHING_MEASURED
from profharness.analysis.verdict.wording import NOT_KNOWN
from profharness.findings import Finding, ways
from profharness.report.tables import runtime_logs
from profharness.report.text.folding import fold_kernel_name
from profharness.report.text.labels import device_word, is_command, on_cpu
from profharness.report.text.limits import clause_of, gain_text, largest_cause, limit_of
from profharness.report.text.measured import feeding, python_lines, slow_rank
from profharness.report.text.measured.counted import counted, gpu_percent, nothing_of
from profharness.report.text.measured.endings import ending, failed_before_anything
from profharness.report.text.measured.host_time import (
    crowded,
    groups,
    idle_reason,
    short_calls,
    step_advice,
    step_sentence,
    without_waits,
)
from profharness.report.text.measured.step_cores import cores_kept_busy
from profharness.units import format_ns, format_number, format_share

OTHER_WORK = (
    "Other work competed for the CPU, so what limits this run cannot be told: "
    "repeat on a quiet node."
)
OWN_THREADS = (
    "The workload waited for cores although nothing else ran here, "
    "so what limits this run cannot be told: try fewer threads "
    "(OMP_NUM_THREADS, --threads), or a machine that is no guest of another's."
)
OWN_THREADS_OF_COMMAND = OWN_THREADS.replace("OMP_NUM_THREADS, --threads", "OMP_NUM_THREADS")
WAITS = (
    "Faster operations gain little here: find what it waits for first (imports and start-up "
    "count too, reading data, "
    "other processes). The merged trace shows when its cores idle."
)
FAILED = "First the command itself: it failed, and what it did until then need not be what it does."
DIED = (
    "First the command itself: it ended before there was anything to record, and the last lines of "
    "its stderr say why."
)


def answer(summary: Summary) -> str:
    """How much of the window the device computes, and what the rest is."""
    top = "" if summary.partition is not None and not on_cpu(summary) else _of_host(summary)
    logged = "" if summary.log is None or top else runtime_logs.answer_of(summary.log)
    parts = [
        _partition(summary),
        gpu_percent(summary),
        counted(summary),
        top or logged or _sampled(summary),
        cores_kept_busy(summary),
    ]
    if not any(parts[:-1]):
        parts.insert(0, _forked(summary.findings))
    text = " ".join(part for part in parts if part) or _counts(summary) or nothing_of(summary)
    run = summary.run
    return (
        f"{_upper(ending(run, summary.findings))}. {text}"
        if run is not None and is_command(summary) and run.exit_status
        else text
    )


def _forked(findings: Sequence[Finding]) -> str:
    """What a trace lacks where all of it was done in forked processes; empty where none was."""
    forked = next((item for item in findings if item.id == "fork-not-recorded"), None)
    if forked is None:
        return ""
    count = int(forked.figures.get("processes", 1))
    where = "a forked process" if count == 1 else f"{count} forked processes"
    return f"The work was done in {where}, of which no operation is recorded."


def _sampled(summary: Summary) -> str:
    """The line of Python that most samples met; empty where stacks were not sampled, or a device
    was recorded, which comes first.
    """
    table = python_lines.answering(summary.host_lines)
    return "" if table is None or summary.partition is not None else python_lines.answer_of(table)


def _of_host(summary: Summary) -> str:
    """Where the step went, on a run whose work is the host's; else the operation or kernel that
    takes most time.
    """
    host = _host(summary)
    if host is None:
        return top_row(summary)
    slowest = slow_rank.worth_saying(_slowest(summary))
    share = host.kind_ns(Kind.COLLECTIVE.key) / host.window_ns
    said = step_sentence(
        host,
        short_calls(_operators(summary)),
        slow_rank.sentence(slowest) if slowest is not None and _waits_first(summary) else "",
        slow_rank.part_of_collectives(slowest, share),
    )
    return f"{said} {crowded(summary.findings)}".strip()


def _slowest(summary: Summary) -> SlowestRank | None:
    return None if summary.communication is None else summary.communication.slowest


def _waits_first(summary: Summary) -> bool:
    """Whether waiting for the slowest rank is the largest cause of what the others' time goes to,
    or, of all ranks together, collectives are. Where other work held the cores, operators and
    collectives take longer than they would, and what the rank does beside them is all that is sure.
    """
    slowest = slow_rank.worth_saying(_slowest(summary))
    if slowest is None:
        return False
    if on_cpu(summary) and under_pressure(summary):
        return slow_rank.is_named(slowest)
    host, verdict = _host(summary), summary.verdict
    if host is not None:
        return slowest.is_largest or groups(host)[0].key == "collectives"
    return slowest.is_largest or (verdict is not None and verdict.kind == "communication")


def _operators(summary: Summary) -> Hotspots | None:
    return next((table for table in summary.hotspots if table.by == "op"), None)


def _host(summary: Summary) -> HostTime | None:
    """What the steps of a run on the CPU went to; None on a device."""
    host = summary.host
    if host is None or host.of != "window" or not on_cpu(summary):
        return None
    return without_waits(host) if under_pressure(summary) else host


def _counts(summary: Summary) -> str:
    """What is there of kernels whose times nobody recorded; empty without kernels."""
    counts = summary.trace
    if not counts.kernels:
        return ""
    kernels = f"{format_number(counts.kernels)} kernel{'' if counts.kernels == 1 else 's'}"
    of = (
        f" of {format_number(counts.distinct_kernels)} names" if counts.distinct_kernels > 1 else ""
    )
    return f"{kernels}{of} were recorded, without times that could be laid on a common axis."


def _upper(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}" if text.startswith("the ") else text


def next_step(summary: Summary) -> str:
    """The advice for the verdict of the whole window, or what would give one; of a command that
    failed, to repair that first.
    """
    if is_command(summary) and summary.run is not None and summary.run.exit_status:
        return DIED if failed_before_anything(summary) else FAILED
    slowest = _slowest(summary)
    if slowest is not None and _waits_first(summary):
        return slow_rank.advice(slowest, own_pace=not under_pressure(summary))
    first = _outside_operations(summary) or feeding.first(summary)
    if first:
        return first
    verdict = summary.verdict
    if verdict is not None and verdict.kind != "idle-waiting":
        gain = gain_text(verdict)
        if verdict.kind in NOT_KNOWN and verdict.evidence:
            return (
                f"{verdict.evidence[0].upper()}{verdict.evidence[1:].rstrip('.')}. "
                f"Try {limit_of(verdict, summary.partition).advice}."
            )
        clause = clause_of(verdict, summary.partition, device_word(summary))
        advice = limit_of(verdict, summary.partition).advice
        if verdict.idle:
            advice = feeding.advice(summary) or advice
        return f"{clause[0].upper()}{clause[1:]}{f'; {gain}' if gain else ''}. Try {advice}."
    return _without_limit(summary)


def _outside_operations(summary: Summary) -> str:
    """What to change where what operations compute is not what most of the step goes to; else
    empty.
    """
    host = _host(summary)
    if host is None:
        return ""
    return step_advice(host, short_calls(_operators(summary)), summary.findings)


def _without_limit(summary: Summary) -> str:
    """Where no limit stands out, or none can be told: what holds the process up from outside, else
    what would tell more.
    """
    table = python_lines.answering(summary.host_lines)
    if summary.verdict is not None:
        return WAITS if table is None else python_lines.next_of(table)
    if under_pressure(summary):
        return quieter(summary)
    return _without_verdict(summary)


def _without_verdict(summary: Summary) -> str:
    if not _anything(summary):
        return (
            "Run something: `profharness run` scans the built-in model, "
            "`profharness run -- COMMAND` profiles a command."
        )
    if first_hotspots(summary) is None and summary.log is not None:
        return runtime_logs.next_of(summary.log)
    if first_hotspots(summary) is None and on_cpu(summary):
        table = python_lines.answering(summary.host_lines)
        return _nothing_recorded(summary) if table is None else python_lines.next_of(table)
    if on_cpu(summary):
        return (
            "Take the operations at the top of the table first; "
            "scan batch sizes to see where throughput levels off."
        )
    if summary.verdict_needs not in ("", NOTHING_MEASURED):
        return f"What holds the device back cannot be told: that needs {summary.verdict_needs}."
    return f"Why the device waits was not measured: add {ways.WAITING}."


def under_pressure(summary: Summary) -> bool:
    """Whether the workload waited for cores, so that what limits it cannot be told."""
    return any(finding.id == "cpu-pressure" for finding in summary.findings)


def quieter(summary: Summary) -> str:
    """What to do where the workload waited for cores."""
    if not any(
        finding.id == "cpu-pressure" and finding.advice == NOBODY for finding in summary.findings
    ):
        return OTHER_WORK
    return OWN_THREADS_OF_COMMAND if is_command(summary) else OWN_THREADS


def _nothing_recorded(summary: Summary) -> str:
    """What to do where no operation and no kernel was recorded."""
    layers = sorted(
        {layer for row in summary.passes for layer in row.layers} & {"torch", "onnxruntime"}
    )
    if layers:
        return (
            f"{' and '.join(layers)} recorded no operation: check that the command runs Python "
            "with "
            f"{'them' if len(layers) > 1 else 'it'}; `profharness doctor --try` shows what "
            "works here."
        )
    if summary.run is not None and summary.run.attached is not None:
        return (
            "Which kernels take the time was not recorded: on AMD, attach with --profile "
            "rocprofv3. Operations need a start under `profharness run --profile torch`."
        )
    if summary.run is None:
        return (
            "`profharness hotspots` lists the host calls, where there are any. A verdict needs "
            f"{summary.verdict_needs}."
        )
    return (
        "Which operations take the time was not recorded: add --profile torch to a command "
        "in Python."
    )


def _anything(summary: Summary) -> bool:
    return bool(
        summary.hotspots
        or summary.metrics
        or summary.telemetry
        or summary.points
        or summary.trace.kernels
        or summary.log
        or summary.host_lines
    )


def _partition(summary: Summary) -> str:
    partition = summary.partition
    if partition is None or partition.window_ns <= 0:
        return ""
    least = "at least " if partition.open_ns else ""
    text = (
        f"The {device_word(summary)} computes {least}{_share(partition.compute_ns, partition)} of "
        "the time"
    )
    for ns, label in (
        (partition.exposed_communication_ns, "communication"),
        (partition.exposed_copy_ns, "copies"),
    ):
        if ns >= partition.window_ns / 100:
            text += f", waits {_share(ns, partition)} for {label}"
    idle = f" and is idle {least}{_share(partition.idle_ns, partition)}"
    cause = largest_cause(partition)
    why = (
        f", mostly {cause[0].label} ({_share(cause[1], partition)})"
        if cause and partition.idle_ns
        else ""
    )
    start_up = _start_up_share(summary.findings)
    if 2 * start_up * partition.window_ns >= partition.idle_ns > 0:
        return f"{text}{idle}, mostly start-up ({format_share(start_up)})."
    reason = idle_reason(summary.host) if why else ""
    threads = f" {crowded(summary.findings)}" if why else ""
    slowest = slow_rank.worth_saying(_slowest(summary))
    ranks = f" {slow_rank.sentence(slowest)}." if slowest is not None else ""
    waits = f" {feeding.wait_sentence(summary.host)}" if why else ""
    unknown = f"; {partition.why_open}" if partition.open_ns else ""
    said = f"{text}{idle}{why}{f': {reason}' if reason else ''}{unknown}."
    return f"{said}{threads.rstrip()}{waits.rstrip()}{ranks}"


def _start_up_share(findings: Sequence[Finding]) -> float:
    """Of the window; 0 where it is not worth a word."""
    found = [item.figures.get("window_share", 0) for item in findings if item.id == "start-up"]
    return max(map(float, found), default=0.0)


def top_row(summary: Summary) -> str:
    """The kernel or operation that takes most time; empty without a table of hotspots."""
    largest = _largest_row(summary)
    return f"Most time goes to {largest}." if largest else ""


PROFILED = ("torch", "onnxruntime")
"""Backends whose layer and pass have their own name."""


def start_with(summary: Summary, backend: str = "") -> str:
    """Where to begin: the same row as an advice, with its pass where several were profiled; empty
    without a table. Of a `backend` that the answer recommends, the table of another backend's pass
    says nothing.
    """
    table = first_hotspots(summary)
    shown = "" if table is None else table.pass_name
    if backend in PROFILED and shown in PROFILED and shown != backend:
        if any(backend in row.layers for row in summary.passes):
            return (
                f"`profharness hotspots --pass {backend}` lists where the time of {backend} goes."
            )
        return f"Where the time of {backend} goes was not measured: add --profile {backend}."
    largest = _largest_row(summary)
    if not largest:
        return ""
    several = sum(bool(row.layers) for row in summary.passes) > 1
    pass_name = table.pass_name if several and table is not None else ""
    return f"Start with {largest}{f' (pass {pass_name})' if pass_name else ''}."


def _largest_row(summary: Summary) -> str:
    """`aten::mm: 28.5 % of 385 ms in operations`."""
    table = first_hotspots(summary)
    if table is None:
        return ""
    row = table.rows[0]
    if row.share is None or table.total_ns is None:
        return ""
    return (
        f"{fold_kernel_name(row.name, 48)}: {format_share(row.share)} of "
        f"{format_ns(table.total_ns, 3)} in {_kind(table)}"
    )


def first_hotspots(summary: Summary) -> Hotspots | None:
    """The table that a terminal shows: by kernel where there are kernels, else by op."""
    tables = {table.by: table for table in reversed(summary.hotspots) if table.rows}
    return tables.get("kernel") or tables.get("op") or tables.get("category")


def _kind(table: Hotspots) -> str:
    return {"kernel": "kernels", "op": "operations", "category": "all categories"}[table.by]


def _share(ns: int, partition: Partition) -> str:
    return format_share(ns / partition.window_ns)
