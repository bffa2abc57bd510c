"""What `merge` says when it is done: where the trace went, how its sources were aligned, and what
was left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.findings import problem_text
from profharness.trace.model import Problem, Source
from profharness.trace.parts.cutting import Cut
from profharness.understand.load import NO_CLOCK
from profharness.understand.merge.writing import Merged
from profharness.units import format_ns, format_number
from profharness.writers.options import LeftOut

_NAMED = 3


@dataclass(frozen=True)
class MergeReport:
    """Where the trace went, and what there is to say about it: `lines` in full, `brief` short."""

    path: Path
    lines: tuple[str, ...]
    brief: tuple[str, ...] = ()


def merge_report(target: Path, merged: Merged, cut: Cut) -> MergeReport:
    """In full each source's alignment and each problem; in short their counts, and only errors and
    warnings.
    """
    outside = _outside(merged.dropped, cut)
    written = replace(merged.written, left_out=(*outside, *merged.written.left_out)).lines()
    records = (*written, *_files_left_out(merged.files_left_out))
    return MergeReport(
        target,
        (*_in_full(merged.sources, merged.problems), *records),
        (*_in_short(merged.sources), *_serious(merged.problems), *records),
    )


def _files_left_out(files: int) -> Iterator[str]:
    if files:
        counted = f"{format_number(files)} {'file' if files == 1 else 'files'}"
        yield f"left out {counted} of ranks that were not asked for"


def _in_short(sources: Sequence[Source]) -> Iterator[str]:
    """How many sources, the worst bound of their alignment, and those that have none or are not on
    the common clock.
    """
    count = f"{len(sources)} {'source' if len(sources) == 1 else 'sources'}"
    bounds = [
        (bound, source.path)
        for source in sources
        if (bound := source.residual_ns if source.bound_ns is None else source.bound_ns) is not None
    ]
    worst = max(bounds, default=None)
    yield (
        count
        if worst is None
        else f"{count}, aligned to {format_ns(worst[0], 2)} or better (worst: {worst[1]})"
    )
    lost = [source.path for source in sources if source.alignment == NO_CLOCK]
    if lost:
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        named = f"{', '.join(lost[:_NAMED])}{more}"
        yield f"{len(lost)} not aligned, their times stand as the tools wrote them: {named}"


def _serious(problems: Sequence[Problem]) -> Iterator[str]:
    """Errors, then warnings; the same message of several sources once."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        if problem.severity != "info":
            groups.setdefault((problem.severity, problem.message), []).append(problem)
    for (severity, message), group in sorted(groups.items(), key=lambda pair: pair[0][0]):
        rest = f" and {len(group) - 1} more" if len(group) > 1 else ""
        count = sum(problem.count for problem in group)
        yield f"{severity}: {problem_text(f'{group[0].source}{rest}', count, message)}"


def _outside(dropped: Counter[str], wanted: Cut) -> tuple[LeftOut, ...]:
    return tuple(
        LeftOut(table, count, f"outside of {wanted.words()}") for table, count in dropped.items()
    )


def _in_full(sources: Sequence[Source], problems: Sequence[Problem]) -> tuple[str, ...]:
    return (
        *(f"{source.path}: {source.alignment}" for source in sources if source.alignment),
        *(
            f"{problem.severity}: {problem_text(problem.source, problem.count, problem.message)}"
            for problem in problems
        ),
    )
