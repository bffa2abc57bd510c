"""Where device time goes by what the host was in: ranges of the program, modules, call stacks
(docs/metrics.md#hotspots).
"""

from __future__ import annotations

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.grouping import group
from profharness.analysis.kernels.tally import Tally
from profharness.analysis.operators.around import SpanKind, around
from profharness.analysis.operators.sums import sums_of
from profharness.analysis.time.counts import pass_of


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
