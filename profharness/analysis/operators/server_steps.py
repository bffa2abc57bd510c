"""Lengths of sequences that a server writes into the annotation of each of its steps: attention
over a paged cache records none.

The annotation counts the sequences whose prompts are read (context) and those that get one token
more (generation), and gives for both the sums over their sequences of the query tokens, the key
tokens, the squares of the query tokens, and the products of query and key tokens (docs/formats.md
#server-steps).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from profharness.analysis.operators.records import Given, Lengths, ServerStep
from profharness.trace.columns.keys import coded, first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace
from profharness.trace.nesting import innermost, nest

_SUMS = r"\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\)"
_STEP = re.compile(rf"^execute_\d+_context_\d+{_SUMS}_generation_\d+{_SUMS}$")


def step_of(annotation: str) -> ServerStep | None:
    """The step that an annotation describes; None for another text, and where its sums cannot be
    those of sequences that keep a key for every query.
    """
    found = _STEP.match(annotation)
    if found is None:
        return None
    sums = [float(number) for number in found.groups()]
    step = ServerStep(Lengths(*sums[:4]), Lengths(*sums[4:]))
    return step if step.context.possible and step.generation.possible else None


def told(trace: Trace, rows: I64, call: I64) -> Iterator[tuple[I64, Given]]:
    """Those of the operators `rows` that a server's step holds, with what its annotation says;
    operators of the same `call` (a number per row of the trace) in the same step go together.
    """
    if not len(rows):
        return
    steps, step = _around(trace, rows)
    held = np.flatnonzero(step != NULL)
    if not len(held):
        return
    first, place = first_rows(pack([call[rows[held]], step[held]]))
    order = np.argsort(place, kind="stable")
    groups = np.split(rows[held][order], np.flatnonzero(np.diff(place[order])) + 1)
    for group, at in zip(groups, first.tolist(), strict=True):
        yield group, Given(step=steps[int(step[held[at]])])


def _around(trace: Trace, rows: I64) -> tuple[list[ServerStep], I64]:
    """Steps, and for each operator the position of that of the innermost annotation around its
    start on its thread; NULL without one.
    """
    marks, ops = trace.marks, trace.ops
    codes, place = coded(marks.name)
    steps: list[ServerStep] = []
    numbers = np.full(len(codes), NULL, np.int64)
    for at, code in enumerate(codes.tolist()):
        step = step_of(trace.strings[code])
        if step is not None:
            numbers[at] = len(steps)
            steps.append(step)
    annotations = np.flatnonzero(numbers[place] != NULL) if len(codes) else place
    if not len(annotations):
        return [], np.full(len(rows), NULL, np.int64)
    columns = ((marks.source, ops.source), (marks.pid, ops.pid), (marks.tid, ops.tid))
    thread = coded(pack([np.concatenate((a[annotations], b[rows])) for a, b in columns]))[1]
    of_marks, of_rows = thread[: len(annotations)], thread[len(annotations) :]
    start, dur = marks.start_ns[annotations], marks.dur_ns[annotations]
    asked = (ops.start_ns[rows], of_rows)
    found = innermost(start, dur, of_marks, nest(start, dur, of_marks), asked, with_end=False)
    return steps, np.where(found == NULL, NULL, numbers[place][annotations[found]])
