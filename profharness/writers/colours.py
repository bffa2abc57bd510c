"""Equal colours for slices of equal kind: viewers colour a slice by its name unless it has a
correlation id, and step 3 is not of another kind than step 4.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.build import per_text
from profharness.writers.options import OperatorKind
from profharness.writers.spans import MARKS, OPS, REQUESTS, Spans

_ALIKE = ("point", "warmup", "trial", "step", "phase", "execution")


class Colours:
    """Numbers of the kinds of one file, each the same in all of its parts."""

    def __init__(self, operator_kind: OperatorKind) -> None:
        self._operator_kind = operator_kind
        self._numbers: dict[str, int] = {}

    def of(self, spans: Spans) -> npt.NDArray[np.int16]:
        """The correlation id of each span, 0 for none: operators by their kind, points, trials and
        steps by theirs, and requests by whether they were answered.
        """
        ids = np.zeros(len(spans), np.int16)
        for table, column, kind in (
            (OPS, spans.name, self._of_operator),
            (MARKS, spans.category, self._of_mark),
            (REQUESTS, spans.name, self._number),
        ):
            rows = np.flatnonzero(spans.table == table)
            if len(rows):
                ids[rows] = per_text(spans.strings, column[rows], kind)
        return ids

    def _of_operator(self, name: str) -> int:
        kind = self._operator_kind(name)
        return self._number(f"operator {kind}") if kind else 0

    def _of_mark(self, kind: str) -> int:
        return self._number(kind) if kind in _ALIKE else 0

    def _number(self, kind: str) -> int:
        return self._numbers.setdefault(kind, len(self._numbers) + 1)
