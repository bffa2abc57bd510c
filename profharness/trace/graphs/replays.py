"""The operators that the replays of a graph ran, from a trace of its capture. Pure.

All kernels of a replay share the id of the one call that launched the graph, and the operators that
launched them ran when the graph was captured. They are put into the trace once per replay: with the
names and inputs that were captured, nested as they were, and without time on the host, where they
did not run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from profharness.trace import call_names, launches
from profharness.trace.columns.table import NULL, concat
from profharness.trace.graphs.captures import Capture, Recorded
from profharness.trace.graphs.matching import AMBIGUOUS, Match, Matcher
from profharness.trace.model import I32, I64, Ops, Trace

_TEXTS = ("name", "shapes", "dtype", "concrete", "strides")
_OF_CALL = ("host", "rank", "pid", "tid", "point", "source")


@dataclass(frozen=True)
class Recovery:
    """What was found of a trace's graph replays: how many there are, how many are a captured graph
    kernel by kernel (`exact`) or by the longest match in order (`in_order`), and how many fit
    several captured graphs of other operators equally well. `kernels` are those of all replays,
    `matched` those that now have a captured operator, with their times in ns; `bare` are those
    whose captured launch stands in no operator.
    """

    captures: int
    replays: int = 0
    exact: int = 0
    in_order: int = 0
    ambiguous: int = 0
    kernels: int = 0
    matched: int = 0
    bare: int = 0
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

    captured: Trace
    rows: I64
    depth: I64
    op: I64


def recovered(trace: Trace, captures: Sequence[Capture]) -> tuple[Trace, Recovery]:
    """The trace with the operators of its graph replays, and what was matched; kernels that match
    nothing stay as they were.
    """
    found = _replays(trace, Matcher(captures, trace.strings))
    sure = [
        (one, one.match) for one in found if one.match is not None and one.match is not AMBIGUOUS
    ]
    matches = {id(match): match for _, match in sure}
    templates = {key: _template(captures[match.graph], match) for key, match in matches.items()}
    recovery = _counted(trace, len(captures), found, templates)
    if not sure:
        return trace, recovery
    op = trace.kernels.op.astype(np.int64)
    blocks, used = [trace.ops], len(trace.ops)
    added = _Adding(trace)
    for number, (one, match) in enumerate(sure):
        template = templates[id(match)]
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


def _counted(
    trace: Trace, captures: int, found: Sequence[_Replay], templates: Mapping[int, _Template]
) -> Recovery:
    lasting = np.maximum(trace.kernels.dur_ns, 0)
    matches = [one.match for one in found if one.match is not None]
    sure = [match for match in matches if match is not AMBIGUOUS]
    held = [
        one.kernels[templates[id(one.match)].op != NULL]
        for one in found
        if id(one.match) in templates
    ]
    matched = sum(len(rows) for rows in held)
    return Recovery(
        captures=captures,
        replays=len(found),
        exact=sum(match.exact for match in sure),
        in_order=sum(not match.exact for match in sure),
        ambiguous=len(matches) - len(sure),
        kernels=sum(len(one.kernels) for one in found),
        matched=matched,
        bare=sum(match.kernels for match in sure) - matched,
        kernel_ns=sum(int(lasting[one.kernels].sum()) for one in found),
        matched_ns=sum(int(lasting[rows].sum()) for rows in held),
    )


def _template(capture: Capture, match: Match) -> _Template:
    """The operators around the launches that matched, up to those that began before the capture."""
    recorded, ops = capture.recorded, capture.recorded.trace.ops
    op = np.where(match.launch == NULL, NULL, capture.op[match.launch])
    kept = recorded.around(op) & (ops.start_ns >= capture.begin_ns)
    inner = np.flatnonzero(kept)
    keys = (recorded.nested.depth, -ops.dur_ns, ops.start_ns, recorded.thread)
    order = inner[np.lexsort((*(key[inner] for key in keys), _first_starts(recorded, inner)))]
    place = np.full(len(ops) + 1, NULL, np.int64)  # the last one is that of NULL
    place[order] = np.arange(len(order))
    parent = recorded.nested.parent[order]
    outermost = (parent == NULL) | ~kept[parent]
    depth = recorded.nested.depth[order].astype(np.int64)
    root = np.maximum.accumulate(np.where(outermost, np.arange(len(order)), 0))
    return _Template(recorded.trace, order, depth - depth[root], place[op])


def _first_starts(recorded: Recorded, rows: I64) -> I64:
    """Per operator when the first one of its thread began, so that threads stay together."""
    thread, start = recorded.thread[rows], recorded.trace.ops.start_ns[rows]
    first = np.full(int(recorded.thread.max(initial=0)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, thread, start)
    starts: I64 = first[thread]
    return starts


class _Adding:
    """Makes the rows of replays in the terms of the trace that they are for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._beyond = int(trace.ops.sequence.max(initial=NULL)) + 1

    def rows(self, template: _Template, number: int, call: int) -> Ops:
        """The operators of one replay. They begin one nanosecond after the other inside of the call
        that launched it, and end as they begin; numbers of autograd's nodes are apart from those of
        the trace.
        """
        api, ops = self._trace.api, template.captured.ops.take(template.rows)
        inside = max(int(api.dur_ns[call]) - 2, 0)
        steps = 1 + np.minimum(np.arange(len(ops)), inside)
        return ops.with_columns(
            start_ns=int(api.start_ns[call]) + steps,
            dur_ns=0,
            depth=template.depth,
            replay=number,
            external=NULL,
            sequence=np.where(ops.sequence == NULL, NULL, ops.sequence + self._beyond),
            **{column: self._recoded(template, getattr(ops, column)) for column in _TEXTS},
            **{column: getattr(api, column)[call] for column in _OF_CALL},
        )

    def _recoded(self, template: _Template, codes: I32) -> I32:
        """The same texts by the codes of the trace."""
        found, place = np.unique(codes, return_inverse=True)
        texts = template.captured.strings
        new = [NULL if code == NULL else self._trace.strings.code(texts[code]) for code in found]
        return np.array(new, np.int32)[place]
