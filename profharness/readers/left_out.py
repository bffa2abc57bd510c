"""What readers leave out of a file, in words that are the same for every format."""

from __future__ import annotations

from collections import Counter

from profharness.findings import Severity
from profharness.trace.model import Problem

UNTIMED = "events have no readable start or duration and were left out"
_SHOWN = 20


def left_out(
    where: str, kinds: Counter[str], what: str = "events", severity: Severity = "info"
) -> list[Problem]:
    """That these kinds of records have no place in a trace, the most frequent first; nothing where
    there are none.
    """
    counts = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    listed = [f"{kind} {count}" for kind, count in counts if count]
    more = [f"{len(listed) - _SHOWN} more kinds"] if len(listed) > _SHOWN else []
    said = f"{what} of kinds that are not analysed were left out: "
    said += ", ".join(listed[:_SHOWN] + more)
    return [Problem(severity, where, kinds.total(), said)] if listed else []
