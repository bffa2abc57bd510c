"""A change between two runs in words: its size, whether chance explains it, and why it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profharness.analysis.compare.records import Delta, HotspotDelta


def change_text(delta: Delta) -> str:
    """`+3.1 % (noise ± 0.8 %): better`, `within noise`, `cannot tell`, or the change alone where no
    noise is known. Where repetitions gave equal values there is none to name.
    """
    text = f"{100 * delta.change:+.1f} %"
    if delta.unbounded:
        return f"{text}, cannot tell (the noise is not bounded)"
    if delta.noise is None:
        return text
    # what chance explains is a ratio, the same up and down: + 25 % is as likely as - 20 %
    noise = delta.noise if delta.change >= 0 else delta.noise / (1 + delta.noise)
    if not delta.significant:
        return f"{text}, within noise (± {100 * noise:.1f} %)"
    judged = (
        "changed"
        if delta.better == "neither"
        else "better"
        if (delta.change > 0) == (delta.better == "higher")
        else "worse"
    )
    return f"{text}, {judged} (noise ± {100 * noise:.1f} %)" if noise else f"{text}, {judged}"


def change_reason(row: HotspotDelta) -> str:
    """Why the row takes another time in the second run.

    Empty where one of the runs lacks the row or nothing is known.
    """
    if row.mean_a_ns is None or row.mean_b_ns is None:
        return ""
    if row.significant is not False:
        return row.reason
    chance = f"within noise (± {100 * (row.noise or 0):.1f} %)"
    return f"{chance}; {row.reason}" if row.reason else chance
