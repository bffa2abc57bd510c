"""The work of two traces in sentences: how much longer a step takes, and what makes it so."""

from __future__ import annotations

from profharness.analysis.compare.operators.records import StepChange, WorkRow, WorkTable
from profharness.units import format_ns, format_number

_NAMED, _MANY = 3, 10
_TITLES = {
    "op": "operator",
    "shape": "operator and inputs",
    "module": "module",
    "category": "category",
}


def work_answer(step: StepChange, operators: WorkTable) -> str:
    """How much faster or slower one step is in B, and which rows make it, in one sentence."""
    moved = [row for row in operators.rows if row.difference_ns]
    moved.sort(key=lambda row: (-abs(row.difference_ns), row.name))
    if not moved:
        return f"{_step_words(step)}: no operator took another time."
    return f"{_step_words(step)}: {', '.join(map(_row_words, moved[:_NAMED]))}."


def _step_words(step: StepChange) -> str:
    a_ns, b_ns, what = step.a_ns, step.b_ns, "One step"
    if a_ns is None or b_ns is None:
        a_ns, b_ns = step.whole_a_ns / step.steps_a, step.whole_b_ns / step.steps_b
        what = {"device": "The work of the device", "host": "The work of the host"}[step.clock]
    if a_ns == b_ns:
        return f"{what} takes {format_ns(b_ns)} in both"
    sides = f"({format_ns(a_ns)} in A, {format_ns(b_ns)} in B)"
    if not 0 < b_ns < _MANY * a_ns:
        return f"{what} takes {format_ns(a_ns)} in A and {format_ns(b_ns)} in B"
    word = "less" if b_ns < a_ns else "more"
    return f"{what} takes {100 * abs(b_ns / a_ns - 1):.1f} % {word} time in B {sides}"


def _row_words(row: WorkRow) -> str:
    return f"{row.name} {signed_ns(row.difference_ns)}{_more(row)}"


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
        f"{format_ns(whole / steps)} in {side}"
        for side, whole, steps in (
            ("A", step.whole_a_ns, step.steps_a),
            ("B", step.whole_b_ns, step.steps_b),
        )
    )
    return f"{whose}, {_window_words(step)}; with the rest the rows sum to {a} and {b}"


def _window_words(step: StepChange) -> str:
    if step.steps_a == step.steps_b == 1:
        a, b = step.window_a, step.window_b
        return a if a == b else f"{a} of A, {b} of B"
    return f"per step of {step.window_a} in A and {step.window_b} in B"
