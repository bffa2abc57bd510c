"""How many cores a workload on the CPU kept busy, in one sentence: in its steps where it has any,
and apart from its start-up.
"""

from __future__ import annotations

from profharness.analysis.records import Summary
from profharness.report.text import names
from profharness.report.text.figures import brief_text, cores_text
from profharness.report.text.labels import is_command, on_cpu
from profharness.units import format_ns

WORTH_SAYING = 0.1
"""Of the pass, from which its start-up is said."""


def cores_kept_busy(summary: Summary) -> str:
    """`The command kept 1.9 of 2 cores busy in its steps; start-up took 8.0 s of 14.2 s.`; empty on
    a device and without samples.
    """
    of_steps = summary.metrics.get(names.CORES_USED_STEPS)
    used = of_steps or summary.metrics.get(names.CORES_USED)
    allowed = summary.metrics.get(names.CORES_ALLOWED)
    if used is None or used.value is None or not on_cpu(summary):
        return ""
    of = (
        f" of {brief_text(allowed.value, 3)}"
        if allowed is not None and allowed.value is not None
        else ""
    )
    attached = summary.run is not None and summary.run.attached is not None
    who = "process" if attached else "command" if is_command(summary) else "workload"
    where = " in its steps" if of_steps is not None else ""
    return f"The {who} kept {cores_text(used.value)}{of} cores busy{where}{_startup(summary)}."


def _startup(summary: Summary) -> str:
    figure = summary.metrics.get(names.STARTUP)
    if figure is None or figure.value is None:
        return ""
    seconds = next(
        (row.seconds for row in summary.passes if figure.source == f"{row.name} pass"), None
    )
    if not seconds or figure.value < WORTH_SAYING * seconds * 1e9:
        return ""
    return (
        f"; start-up took {format_ns(round(figure.value), 2)} of {format_ns(round(seconds * 1e9))}"
    )
