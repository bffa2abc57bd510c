"""The sentence of a verdict: whether the device is saturated, and if not, what holds it back; then
the evidence, and the bound on a gain (docs/metrics.md#verdict).
"""

from __future__ import annotations

import msgspec

from profharness.analysis.verdict.records import Verdict
from profharness.units import format_number

LARGEST_FACTOR = 100_000
_NEARLY_ALL = 0.9
_ROOFS = {"compute": "Saturated by compute", "bandwidth": "Saturated by memory bandwidth"}
NOT_KNOWN = frozenset({"kernels", "undetermined"})


def verdict_of(
    kind: str,
    share: float,
    evidence: str,
    at_most: float | None = None,
    opening: str = "",
    *,
    in_part: bool = False,
) -> Verdict:
    """A verdict with its sentence. `opening` stands before the colon, where the kind alone does not
    say it; a factor outside of 1 to 100 000 is no bound; `in_part` is as in `Verdict`.
    """
    bound = at_most if at_most is not None and 1 <= at_most <= LARGEST_FACTOR else None
    gain = bound_text(kind, bound, in_part=in_part)
    clauses = "; ".join(part for part in (evidence, gain) if part)
    return Verdict(
        kind=kind,
        text=f"{opening or _opening(kind, share)}: {clauses}.",
        at_most=bound,
        share=share,
        evidence=evidence,
        in_part=in_part,
    )


def with_remark(said: Verdict, remark: str) -> Verdict:
    """The same verdict whose sentence ends with a remark in brackets."""
    return msgspec.structs.replace(
        said,
        text=f"{said.text.removesuffix('.')} ({remark}).",
        evidence=f"{said.evidence} ({remark})",
    )


def _opening(kind: str, share: float) -> str:
    if kind in _ROOFS:
        return _ROOFS[kind] + ("" if share >= _NEARLY_ALL else " part of the time")
    if kind in NOT_KNOWN:
        return "Whether the device is saturated is not known"
    return "Not saturated"


def bound_text(kind: str, at_most: float | None, *, in_part: bool = False) -> str:
    """`without them the work would run at most 1.28 times as fast`; of idle time the bound is for
    all of it, or all that is known. Empty without a bound.
    """
    if at_most is None:
        return ""
    idle = "without this idle time" if in_part else "without any idle time"
    condition = idle if kind.startswith("idle") else "without them"
    return (
        f"{condition} the work would run at most "
        f"{format_number(at_most, 2 if at_most < 10 else 0)} times as fast"
    )
