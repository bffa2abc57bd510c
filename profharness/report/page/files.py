"""What trace files are called in a heading, and the facts of them that stand below it."""

from __future__ import annotations

from profharness.analysis.records import Summary
from profharness.report.text.folding import cut_middle
from profharness.report.text.labels import is_table
from profharness.units import format_ns, format_number

_NAMED = 3
_LONGEST = 60


def files_title(summary: Summary) -> str:
    """The file's name; of several how many, the first and the last."""
    paths = tuple(dict.fromkeys(row.path for row in summary.sources)) or (summary.source,)
    names = [path.rstrip("/").rsplit("/", 1)[-1] for path in paths]
    names = ["standard input" if name == "-" else name for name in names]
    if len(names) == 1:
        return names[0]
    return f"{len(names)} files: {names[0]} to {names[-1]}"


def files_facts(summary: Summary) -> tuple[str, ...]:
    """Formats, devices, kernels and span, those that are known."""
    counts = summary.trace
    formats = dict.fromkeys(f"{row.format} {row.tool_version}".strip() for row in summary.sources)
    kernels = f"{format_number(counts.kernels)} kernel{'' if counts.kernels == 1 else 's'}"
    facts = (
        ", ".join(formats) or (f"CSV of a scan, {len(summary.points)} levels" * is_table(summary)),
        _devices(summary),
        f"{counts.ranks} ranks" if counts.ranks > 1 else "",
        kernels if counts.kernels else "",
        f"{format_ns(counts.span_ns, 3)} from first to last" if counts.span_ns else "",
    )
    return tuple(fact for fact in facts if fact)


def _devices(summary: Summary) -> str:
    count, known = (
        summary.trace.devices,
        [cut_middle(name, _LONGEST) for name in summary.device_names[:_NAMED]],
    )
    more = len(summary.device_names) - len(known)
    named = ", ".join(known) + (f" and {more} more" if more else "")
    if count > 1:
        return f"{count} devices ({named})" if named else f"{count} devices"
    return named
