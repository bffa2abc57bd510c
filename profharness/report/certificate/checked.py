"""The check of a certificate as text for a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from profharness.analysis.certificate.records import Check, Fault
from profharness.rundir.shown.screen import encoded, lines_text, one_line
from profharness.units import format_number

MOST_FAULTS = 20
"""Lines of a text; JSON has all."""


def check_json(check: Check) -> str:
    """The whole record, with a newline at its end."""
    return encoded(msgspec.to_builtins(check)).decode() + "\n"


def check_text(check: Check, document: str) -> str:
    """Whether it holds, what is not as it was, and what was scrubbed."""
    return lines_text(_lines(check, document))


def _lines(check: Check, document: str) -> Iterator[str]:
    point = f" at {check.point}" if check.point else ""
    if check.holds:
        yield one_line(
            f"{document} holds: {check.outcome}, of {check.run}{point}; "
            f"{format_number(check.files)} files are as they were, and the criteria give the same"
        )
    else:
        yield one_line(f"{document} does not hold (it says {check.outcome}, of {check.run}{point})")
    for fault in check.faults[:MOST_FAULTS]:
        yield one_line(f"  {_why(fault)}")
    more = len(check.faults) - MOST_FAULTS
    if more > 0:
        yield f"  and {format_number(more)} more (--json names all)"
    if check.faults and not check.recomputed:
        yield "  the criteria were not judged again"
    for name in check.scrubbed[:MOST_FAULTS]:
        yield one_line(f"  scrubbed    {name}: its secrets were removed, and nothing else changed")
    for note in check.notes:
        yield one_line(f"  note        {note}")


def _why(fault: Fault) -> str:
    said = f": {fault.text}" if fault.text else ""
    if fault.why == "another result":
        return f"differs     {fault.name}{said}"
    return f"{fault.why:<10}  {fault.name}{said}"
