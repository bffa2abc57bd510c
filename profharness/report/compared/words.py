"""The work of two traces in sentences: how much longer a step takes, and what makes it so."""

from __future__ import annotations

import math

from profharness.analysis.compare.deltas import BY_DRIFT
from profharness.analysis.compare.operators.records import (
    OtherWork,
    StepChange,
    WorkRow,
    WorkTable,
)
from profharness.analysis.kernels.mangled import readable
from profharness.report.text.figures import si_text
from profharness.units import format_ns, format_number, format_share

_NAMED, _MANY = 3, 10
_COUNTS = 0.25
"""Of the whole difference, that a part against it must come to for being named."""
_TITLES = {
    "op": "operator",
    "shape": "operator and inputs",
    "module": "module",
    "category": "category",
}


def work_answer(step: StepChange, operators: WorkTable) -> str:
    """How much faster or slower one step is in B, and which rows make it, in one sentence: the
    largest that go that way, and the largest of those against it where it counts.
    """
    slower = step.difference_ns > 0
    rows = [row for row in operators.rows if row.difference_ns]
    rows.sort(key=lambda row: (-abs(row.difference_ns), row.name))
    along, against = (
        [row for row in rows if (row.difference_ns > 0) is (slower is way)] for way in (True, False)
    )
    if not rows:
        return f"{_step_words(step)}: no operator took another time."
    said = ", ".join(map(_row_words, along[:_NAMED]))
    if against and abs(against[0].difference_ns) >= _COUNTS * abs(step.difference_ns):
        said += f"{'; against it ' if along else ''}{_row_words(against[0])}"
    return f"{_step_words(step)}: {said}." if said else f"{_step_words(step)}."


def other_work_words(other: OtherWork, step: StepChange | None) -> str:
    """Why two traces are not compared as measurements of one thing, and how long each takes."""
    if other.flops_a and other.flops_b:
        a, b = (si_text(flops, "FLOP") for flops in (other.flops_a, other.flops_b))
        why = f"the matrix products of one step are {a} in A and {b} in B"
    else:
        why = (
            f"{other.of} that both have take {format_share(other.common_a)} of A's time and "
            f"{format_share(other.common_b)} of B's"
        )
    times = "" if step is None else f" {_both(step, *_what(step))}."
    return f"A and B do different work, so that neither is the faster one: {why}.{times}"


def _what(step: StepChange) -> tuple[str, float, float]:
    """Whose time is compared, and how long it is on both sides."""
    if step.a_ns is not None and step.b_ns is not None:
        return "One step", step.a_ns, step.b_ns
    what = {"device": "The work of the device", "host": "The work of the host"}[step.clock]
    return what, step.whole_a_ns / step.parts[0], step.whole_b_ns / step.parts[1]


def _both(step: StepChange, what: str, a_ns: float, b_ns: float) -> str:
    many = max(step.units_a, step.units_b) > 1
    each = f" on each {'device' if step.clock == 'device' else 'process'}" if many else ""
    return f"{what} takes {format_ns(a_ns)} in A and {format_ns(b_ns)} in B{each}"


def _step_words(step: StepChange) -> str:
    what, a_ns, b_ns = _what(step)
    if a_ns == b_ns:
        return f"{what} takes {format_ns(b_ns)} in both"
    sides = f"({format_ns(a_ns)} in A, {format_ns(b_ns)} in B)"
    if not 0 < b_ns < _MANY * a_ns:
        return _both(step, what, a_ns, b_ns)
    if abs(math.log(b_ns / a_ns)) <= BY_DRIFT:
        return f"{what} takes as long in both, as far as two recordings tell {sides}"
    word = "less" if b_ns < a_ns else "more"
    return f"{what} takes {100 * abs(b_ns / a_ns - 1):.1f} % {word} time in B {sides}"


def _row_words(row: WorkRow) -> str:
    return f"{readable(row.name)} {signed_ns(row.difference_ns)}{_more(row)}"


def _more(row: WorkRow) -> str:
    said = ratio_text(row.ratio) or {"only-a": "only in A", "only-b": "only in B"}.get(row.side, "")
    return f" ({said})" if said else ""


def signed_ns(ns: float) -> str:
    """A difference of times, with its sign: `+1.995 ms`."""
    text = format_ns(abs(ns))
    return text if not ns else f"{'+' if ns > 0 else '-'}{text}"


def ratio_text(ratio: float | None) -> str:
    """How much longer it takes in B: `+29.9 %`, and `25 times` from ten times on."""
    if ratio is None:
        return ""
    return f"{format_number(ratio)} times" if ratio >= _MANY else f"{100 * (ratio - 1):+.1f} %"


def table_title(table: WorkTable) -> str:
    """`by operator`."""
    return f"by {_TITLES[table.by]}"


def table_note(step: StepChange, table: WorkTable) -> str:
    """What the times of the rows are, and what they sum to."""
    whose = {
        "device": "device time of the work that each launched",
        "host": "each operator's own time on the host",
    }[table.clock]
    a, b = (
        f"{format_ns(whole / parts)} in {side}"
        for side, whole, parts in (
            ("A", step.whole_a_ns, step.parts[0]),
            ("B", step.whole_b_ns, step.parts[1]),
        )
    )
    return f"{whose}, {_window_words(step)}; with the rest the rows sum to {a} and {b}"


def _window_words(step: StepChange) -> str:
    if step.steps_a == step.steps_b == 1:
        a, b = step.window_a, step.window_b
        return a if a == b else f"{a} of A, {b} of B"
    return f"per step of {step.window_a} in A and {step.window_b} in B"
