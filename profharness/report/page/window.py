"""What the page says of a whole window beside its plots: gaps, causes of idle time with advice, and
the verdict.
"""

from __future__ import annotations

from profharness.analysis.records import Summary
from profharness.report.text.limits import IDLE_CAUSES, cause_times, full_verdict, withheld_text
from profharness.report.text.measured.vendors import for_device
from profharness.units import format_share


def gaps_text(summary: Summary) -> str:
    """How the idle time divides into short and long gaps."""
    partition = summary.partition
    causes = None if partition is None else partition.idle_causes
    if (
        causes is None
        or partition is None
        or not (causes.micro_ns or causes.macro_ns)
        or not partition.window_ns
    ):
        return ""
    return (
        f"Gaps under 10 µs hold {format_share(causes.micro_ns / partition.window_ns)} of the time, "
        f"longer ones {format_share(causes.macro_ns / partition.window_ns)}."
    )


def causes_note(summary: Summary) -> tuple[tuple[str, str], ...]:
    """What to try against each idle cause that holds 1 % of the window or more."""
    partition = summary.partition
    if partition is None or partition.idle_causes is None:
        return ()
    large = sorted(
        (
            (ns, name)
            for name, ns in cause_times(partition.idle_causes)
            if ns >= partition.window_ns / 100
        ),
        reverse=True,
    )
    return tuple(
        (IDLE_CAUSES[name].label, for_device(IDLE_CAUSES[name].advice, summary))
        for _, name in large
    )


def window_verdict(summary: Summary) -> str:
    """The verdict of a whole window, or what it needs; empty where nothing is to be judged. Of
    trace files what it needs is said, too, where they hold no device work at all.
    """
    needs = summary.verdict_needs
    if summary.verdict is None and summary.run is None and needs:
        return withheld_text(needs)
    return full_verdict(summary.verdict, needs)
