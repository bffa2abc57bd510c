"""What is not measured, folded: a line for each thing that would give it, whatever number of
figures and points lack it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from profharness.analysis.records import Figure, ProblemRow, Summary
from profharness.findings import ways
from profharness.report.text import names
from profharness.report.text.figures import is_known
from profharness.report.text.labels import KERNELS, no_kernels
from profharness.report.text.measured.vendors import on_nvidia
from profharness.rundir.telemetry import NOT_SAMPLED

_OF_DEVICES = (KERNELS, "hardware counters", "allocations of the runtime", "counters", "a counter")
"""How the needs of figures begin that a node without an accelerator cannot have."""
OF_AMD = _OF_DEVICES[1:]
"""Those of them that the tools of AMD give."""
ONLY_AMD = "figures that only tools of AMD give"

_MOST, _NAMED = 6, 4
"""Figures that one line names, and how many it names where there are more."""

_COUNTERS = f"hardware counters: {ways.COUNTERS}"
_BY_COUNTERS = re.compile(r"\(--pmc (?P<names>[^),]+)")
_MORE = re.compile(r"more (?P<what>trials|requests) \((?P<least>at least \d+)\)")

_SHAPES = re.compile(r"(?P<shapes>operators with shapes \([^)]*\)), or (?P<other>.+)")

# the system's own words for hardware and settings that this node does not have: nothing to do
_NOT_HERE = (
    "only HPE Cray EX nodes",
    "there is no RDMA adapter",
    "offers no RAPL counters",
    "no CPU quota is set",
)


@dataclass
class _Wanted:
    """The figures that one thing would give, and what else gives some of them."""

    titles: list[str] = field(default_factory=list)
    others: dict[str, None] = field(default_factory=dict)


def lacking_lines(summary: Summary, *, keys: bool = False) -> Iterator[str]:
    """`latency p99: needs more trials`, a line for each thing to do; then, in one line each, what
    needs a device where the workload has none, and AMD's tools where the device is NVIDIA's.

    Of what would give many figures the first ones are named, and their number; `keys` names all,
    as JSON does.
    """
    why, nvidia = no_kernels(summary), on_nvidia(summary)
    wanted: dict[str, _Wanted] = {}
    beyond = of_amd = 0
    for name, (needs, where) in _lacking(summary).items():
        if why and needs.startswith(_OF_DEVICES):
            beyond += 1
            continue
        if nvidia and needs.startswith(OF_AMD):
            of_amd += 1
            continue
        remedy, detail, other = _remedy(needs)
        title = name if keys else names.title_of(name)
        details = "; ".join(part for part in (detail, where) if part)
        one = wanted.setdefault(remedy, _Wanted())
        one.titles.append(f"{title} ({details})" if details else title)
        one.others |= {other: None} if other else {}
    if wanted:
        folded = any(len(one.titles) > _MOST for one in wanted.values()) and not keys
        yield "not measured (--keys lists all):" if folded else "not measured:"
    for remedy, one in wanted.items():
        others = f"; for some {' or '.join(one.others)} will do" if one.others else ""
        titles = one.titles if keys else _first(one.titles)
        yield f"  {'; '.join(titles)}: needs {remedy}{others}"
    if beyond:
        yield f"not measured: {beyond} figures that only device work gives ({why})"
    if of_amd:
        yield f"not measured: {of_amd} {ONLY_AMD} (an NVIDIA device)"


def _first(titles: list[str]) -> list[str]:
    """The first of many titles, and how many there are."""
    if len(titles) <= _MOST:
        return titles
    return [f"{len(titles)} figures, such as {titles[0]}", *titles[1:_NAMED]]


def _lacking(summary: Summary) -> dict[str, tuple[str, str]]:
    """What each missing figure needs, and at how many points, where some points have it."""
    found: dict[str, tuple[str, str]] = {
        name: (figure.needs, "") for name, figure in summary.metrics.items() if _misses(figure)
    }
    for name in dict.fromkeys(name for point in summary.points for name in point.metrics):
        figures = [point.metrics[name] for point in summary.points if name in point.metrics]
        without = [figure for figure in figures if _misses(figure)]
        if without and name not in found:
            some = len(without) < len(figures)
            found[name] = (
                without[0].needs,
                f"at {len(without)} of {len(figures)} points" if some else "",
            )
    return {name: (needs, where) for name, (needs, where) in found.items() if needs}


def _misses(figure: Figure) -> bool:
    return not is_known(figure)


def _remedy(needs: str) -> tuple[str, str, str]:
    """What to do, what one figure asks of it, and what else gives the figure: several numbers of
    trials are one thing to do, as are several counters.
    """
    more = _MORE.fullmatch(needs)
    if more:
        return f"more {more['what']}", more["least"], ""
    shapes = _SHAPES.fullmatch(needs)
    if shapes:
        return shapes["shapes"], "", shapes["other"]
    if "counter" in needs and (counted := _BY_COUNTERS.search(needs)):
        return _COUNTERS, counted["names"], ""
    return needs, "", ""


def problem_lines(problems: Sequence[ProblemRow]) -> tuple[list[ProblemRow], list[str]]:
    """The problems that are more than a metric that was not sampled, and those others as lines:
    one for each reason, and one for all that the node does not have.
    """
    others: list[ProblemRow] = []
    reasons: dict[str, dict[str, None]] = {}
    for row in problems:
        metric, found, reason = row.message.partition(NOT_SAMPLED)
        if not found or " " in metric:
            others.append(row)
            continue
        kind = "" if any(words in reason for words in _NOT_HERE) else reason
        reasons.setdefault(kind, {})[names.title_of(metric)] = None
    lines = [
        f"not sampled: {'; '.join(titles)}: {reason or 'this node has no such meter or limit'}"
        for reason, titles in reasons.items()
    ]
    return others, lines
