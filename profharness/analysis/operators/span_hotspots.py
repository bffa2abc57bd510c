"""Where device time goes by what the host was in: ranges of the program, modules, call stacks; and
where no device works, the host's time by category of operator (docs/metrics.md#hotspots).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profharness.analysis.kernels.categories import CATEGORIES, op_category
from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.grouping import group
from profharness.analysis.kernels.tally import Tally
from profharness.analysis.operators.around import SpanKind, around
from profharness.analysis.operators.nests import nests, self_time
from profharness.analysis.operators.sums import sums_of
from profharness.analysis.time.counts import pass_of
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace


def of_spans(facts: KernelFacts, by: SpanKind) -> Tally:
    """The groups behind a table; none where the trace recorded no such spans. Each call of a range,
    module or function counts once, with its own time on the host.
    """
    spans = around(facts.trace, by)
    if not spans.names:
        return Tally(by=by, pass_name=pass_of(facts.trace))
    return Tally(
        by=by,
        pass_name=pass_of(facts.trace),
        names=spans.names,
        categories=(by,) * len(spans.names),
        groups=group(spans.group, spans.host_ns),
        work=sums_of(facts, spans.owners, spans.inclusive_ns),
    )


def of_op_categories(trace: Trace) -> Tally:
    """The groups behind a table by category of a trace without device work: the own time on the
    host of each call of an operator. What only graph replays ran has no such time.
    """
    ops = trace.ops.take(trace.ops.replay == NULL)
    codes = np.zeros(len(trace.strings) + 1, np.int64)
    for name in np.unique(ops.name).tolist():
        codes[name] = CATEGORIES.index(op_category(trace.strings[name]))
    own_ns = self_time(ops.start_ns, ops.dur_ns, nests(ops).parent)
    groups = group(codes[ops.name], own_ns)
    names = tuple(CATEGORIES[int(code)] for code in groups.key)
    return Tally(
        by="category",
        pass_name=pass_of(trace),
        names=names,
        categories=names,
        groups=replace(groups, key=np.arange(len(names), dtype=np.int64)),
    )
