"""Which captured graph a replay is, and which of its launches each kernel is: by the names of the
kernels, in order. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profharness.trace.columns.table import NULL
from profharness.trace.graphs.captures import Capture
from profharness.trace.graphs.in_order import longest_match
from profharness.trace.model import I64, Strings

LEAST_SHARE = 0.5
"""Of a replay's kernels, that must match a captured graph in order: with fewer it is another."""


@dataclass(frozen=True, eq=False)
class Match:
    """`graph` is the captured graph; `launch` its launch for each kernel of the replay, NULL for
    kernels without one. `exact`: the same kernels in the same order.
    """

    graph: int
    launch: I64
    exact: bool

    @property
    def kernels(self) -> int:
        """How many kernels have a launch."""
        return int((self.launch != NULL).sum())


AMBIGUOUS = Match(NULL, np.zeros(0, np.int64), exact=False)
"""Several captured graphs with other operators match equally well."""


class Matcher:
    """Finds the captured graph of replays; each distinct sequence of kernels is looked at once.

    `strings` are those that the replays' kernels refer to.
    """

    def __init__(self, captures: Sequence[Capture], strings: Strings) -> None:
        self._captures = captures
        self._sequences = [_names(capture, strings) for capture in captures]
        self._known: dict[tuple[bytes, bytes], Match | None] = {}

    def match(self, names: I64, streams: I64) -> Match | None:
        """The match of a replay's kernels, by the codes of their names and streams in the order of
        their starts; AMBIGUOUS, or None where no captured graph is like it.
        """
        key = (names.tobytes(), streams.tobytes())
        if key not in self._known:
            self._known[key] = self._found(names, streams)
        return self._known[key]

    def _found(self, names: I64, streams: I64) -> Match | None:
        wanted = names.tolist()
        matches = [
            Match(number, np.arange(len(wanted)), exact=True)
            for number, sequence in enumerate(self._sequences)
            if sequence == wanted
        ] or [
            Match(number, _in_order(wanted, streams, sequence), exact=False)
            for number, sequence in enumerate(self._sequences)
        ]
        most = max((match.kernels for match in matches), default=0)
        if most < max(LEAST_SHARE * len(wanted), 1):
            return None
        best = [match for match in matches if match.kernels == most]
        rest = min(len(self._sequences[match.graph]) for match in best)
        best = [match for match in best if len(self._sequences[match.graph]) == rest]
        first = self._operators(best[0]) if len(best) > 1 else []
        if any(self._operators(other) != first for other in best[1:]):
            return AMBIGUOUS
        return best[0]

    def _operators(self, match: Match) -> list[tuple[str, ...]]:
        """What the operators of the matched launches are called and were given."""
        capture = self._captures[match.graph]
        ops, strings = capture.recorded.trace.ops, capture.recorded.trace.strings
        columns = (ops.name, ops.shapes, ops.dtype, ops.concrete, ops.strides)
        return [
            () if op == NULL else tuple(strings[int(column[op])] for column in columns)
            for op in capture.op[match.launch[match.launch != NULL]].tolist()
        ]


def _names(capture: Capture, strings: Strings) -> list[int]:
    """The captured kernels by the codes of other strings; a name that these do not hold is no code
    of them.
    """
    texts = capture.recorded.trace.strings
    codes = {NULL: NULL}
    for code in np.unique(capture.kernel[capture.kernel != NULL]).tolist():
        found = strings.find(texts[code])
        codes[code] = -2 - code if found == NULL else found
    return [codes[code] for code in capture.kernel.tolist()]


def _in_order(names: Sequence[int], streams: I64, captured: Sequence[int]) -> I64:
    """The launch of each kernel by the longest match in order: of all kernels, or stream by stream
    (the longest first) where that matches more, since streams run beside each other.
    """
    whole = longest_match(names, captured)
    if not (whole == NULL).any() or len(np.unique(streams)) < 2:
        return whole
    apart = np.full(len(names), NULL, np.int64)
    left = np.arange(len(captured))
    numbers, counts = np.unique(streams, return_counts=True)
    for stream in numbers[np.argsort(-counts, kind="stable")].tolist():
        rows = np.flatnonzero(streams == stream)
        found = longest_match(
            [names[row] for row in rows.tolist()], [captured[place] for place in left.tolist()]
        )
        matched = found != NULL
        apart[rows[matched]] = left[found[matched]]
        left = np.delete(left, found[matched])
    return apart if (apart != NULL).sum() > (whole != NULL).sum() else whole
