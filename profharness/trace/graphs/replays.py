"""The operators that the replays of a graph ran, from a trace of its capture. Pure.

All kernels of a replay share the id of the one call that launched the graph, and the operators that
launched them ran when the graph was captured. They are put into the trace once per replay: with the
names and inputs that were captured, nested as they were, and without time on the host, where they
did not run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from profharness.trace import call_names, launches
from profharness.trace.columns.table import NULL, concat
from profharness.trace.graphs.captures import Captured
from profharness.trace.graphs.matching import AMBIGUOUS, Match, Matcher
from profharness.trace.model import I64, Ops, Strings, Trace

_TEXTS = ("name", "shapes", "dtype", "concrete", "strides")


@dataclass(frozen=True)
class Recovery:
    """What was found of a trace's graph replays: how many there are, how many are a captured graph
    kernel by kernel (`exact`) or in part, and how many fit several captured graphs of other
    operators equally well. `kernels` are those of all replays, `matched` those that now have a
    captured launch, with their times in ns.
    """

    captures: int
    replays: int = 0
    exact: int = 0
    in_part: int = 0
    ambiguous: int = 0
    kernels: int = 0
    matched: int = 0
    kernel_ns: int = 0
    matched_ns: int = 0


@dataclass(frozen=True, eq=False)
class _Replay:
    """One replay: its launching call, its kernels in the order of their starts, its match."""

    call: int
    kernels: I64
    match: Match | None


@dataclass(frozen=True, eq=False)
class _Template:
    """The operators of one match: rows of the captured trace, each before those nested in it, their
    depths, and for each kernel of a replay the position of its operator among them (NULL for none).
    """

    rows: I64
    depth: I64
    op: I64


def recovered(trace: Trace, captured: Captured) -> tuple[Trace, Recovery]:
    """The trace with the operators of its graph replays, and what was matched; kernels that match
    nothing stay as they were.
    """
    found = _replays(trace, Matcher(captured, trace.strings))
    sure = [one for one in found if one.match is not None and one.match is not AMBIGUOUS]
    recovery = _counted(trace, captured, found)
    if not sure:
        return trace, recovery
    templates: dict[int, _Template] = {}
    op = trace.kernels.op.astype(np.int64)
    blocks, used = [trace.ops], len(trace.ops)
    added = _Adding(trace, captured, _recoded(captured.trace, trace.strings))
    for number, one in enumerate(sure):
        assert one.match is not None
        template = templates.get(id(one.match))
        if template is None:
            template = templates[id(one.match)] = _template(captured, one.match)
        if len(template.rows):
            known = template.op != NULL
            op[one.kernels[known]] = used + template.op[known]
            blocks.append(added.rows(template, number, one.call))
            used += len(template.rows)
    return (
        replace(trace, ops=concat(blocks), kernels=trace.kernels.with_columns(op=op)),
        recovery,
    )


def _replays(trace: Trace, matcher: Matcher) -> list[_Replay]:
    """The replays of a trace, in the order of their kernels."""
    kernels = trace.kernels
    call = launches.join(trace, kernels).call
    graphs = call_names.matching(trace.strings, trace.api, call_names.GRAPH_LAUNCH)
    rows = np.flatnonzero(call != NULL)
    rows = rows[graphs[call[rows]]]
    rows = rows[np.lexsort((kernels.start_ns[rows], call[rows]))]
    cuts = np.flatnonzero(np.diff(call[rows])) + 1
    return [
        _Replay(
            int(call[part[0]]),
            part,
            matcher.match(
                kernels.name[part].astype(np.int64), kernels.stream[part].astype(np.int64)
            ),
        )
        for part in np.split(rows, cuts)
        if len(part)
    ]


def _counted(trace: Trace, captured: Captured, found: Sequence[_Replay]) -> Recovery:
    lasting = np.maximum(trace.kernels.dur_ns, 0)
    matches = [one.match for one in found if one.match is not None]
    sure = [match for match in matches if match is not AMBIGUOUS]
    held = [
        one.kernels[one.match.launch != NULL]
        for one in found
        if one.match is not None and one.match is not AMBIGUOUS
    ]
    return Recovery(
        captures=len(captured.graphs),
        replays=len(found),
        exact=sum(match.exact for match in sure),
        in_part=sum(not match.exact for match in sure),
        ambiguous=len(matches) - len(sure),
        kernels=sum(len(one.kernels) for one in found),
        matched=sum(len(rows) for rows in held),
        kernel_ns=sum(int(lasting[one.kernels].sum()) for one in found),
        matched_ns=sum(int(lasting[rows].sum()) for rows in held),
    )


def _template(captured: Captured, match: Match) -> _Template:
    """The operators around the launches that matched, up to those that began before the capture."""
    graph, ops = captured.graphs[match.graph], captured.trace.ops
    op = np.where(match.launch == NULL, NULL, graph.op[match.launch])
    kept = np.zeros(len(ops), np.bool_)
    rows = np.unique(op[op != NULL])
    while len(rows):
        rows = rows[ops.start_ns[rows] >= graph.begin_ns]
        kept[rows] = True
        rows = np.unique(captured.nested.parent[rows])
        rows = rows[rows != NULL]
        rows = rows[~kept[rows]]
    inner = np.flatnonzero(kept)
    keys = (captured.nested.depth, -ops.dur_ns, ops.start_ns, captured.thread)
    order = inner[np.lexsort((*(key[inner] for key in keys), _first_starts(captured, inner)))]
    place = np.full(len(ops) + 1, NULL, np.int64)  # the last one is that of NULL
    place[order] = np.arange(len(order))
    parent = captured.nested.parent[order]
    outermost = (parent == NULL) | ~kept[parent]
    depth = captured.nested.depth[order].astype(np.int64)
    root = np.maximum.accumulate(np.where(outermost, np.arange(len(order)), 0))
    return _Template(order, depth - depth[root] if len(order) else depth, place[op])


def _first_starts(captured: Captured, rows: I64) -> I64:
    """Per operator when the first one of its thread began, so that threads stay together."""
    thread, start = captured.thread[rows], captured.trace.ops.start_ns[rows]
    first = np.full(int(captured.thread.max(initial=0)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, thread, start)
    starts: I64 = first[thread]
    return starts


def _recoded(trace: Trace, strings: Strings) -> I64:
    """For each text of the captured operators its code in other strings; NULL stays NULL."""
    codes = np.full(len(trace.strings) + 1, NULL, np.int64)
    for column in _TEXTS:
        for code in np.unique(getattr(trace.ops, column)).tolist():
            if code != NULL and codes[code] == NULL:
                codes[code] = strings.code(trace.strings[code])
    return codes


@dataclass(frozen=True, eq=False)
class _Adding:
    """Makes the rows of replays: `codes` are those of the captured texts in the trace's strings."""

    trace: Trace
    captured: Captured
    codes: I64

    def rows(self, template: _Template, number: int, call: int) -> Ops:
        """The operators of one replay. They begin one nanosecond after the other inside of the call
        that launched it, and end as they begin.
        """
        api, ops = self.trace.api, self.captured.trace.ops
        inside = max(int(api.dur_ns[call]) - 2, 0)
        steps = 1 + np.minimum(np.arange(len(template.rows)), inside)
        of_call: dict[str, npt.ArrayLike] = {
            column: getattr(api, column)[call]
            for column in ("host", "rank", "pid", "tid", "point", "source")
        }
        sequence = ops.sequence[template.rows]
        beyond = int(self.trace.ops.sequence.max(initial=NULL)) + 1
        return Ops.build(
            len(template.rows),
            start_ns=int(api.start_ns[call]) + steps,
            dur_ns=0,
            depth=template.depth,
            replay=number,
            sequence=np.where(sequence == NULL, NULL, sequence + beyond),
            forward_tid=ops.forward_tid[template.rows],
            flops=ops.flops[template.rows],
            **{column: self.codes[getattr(ops, column)[template.rows]] for column in _TEXTS},
            **of_call,
        )
