"""What the report's pictures draw of a run, or of trace files, besides the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profharness.analysis.pictures.records import Pictures, Strips
from profharness.analysis.run import kernel_pass as passes
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.steps import measured
from profharness.analysis.time.strips import device_strips

if TYPE_CHECKING:
    from profharness.analysis.records import Summary
    from profharness.trace.model import Trace
    from profharness.understand.load import Loaded


def pictures_of(loaded: Loaded, summary: Summary) -> Pictures:
    """The pictures of what a summary was made of: of a run in the pass that speaks for kernels.
    Without a partition in the summary there is no strip either.
    """
    records = _records(loaded)
    return Pictures(strips=Strips() if summary.partition is None else _strips(records))


def _records(loaded: Loaded) -> Trace:
    manifest = loaded.manifest
    if manifest is None:
        return loaded.trace
    perturbing = frozenset(record.name for record in manifest.passes if record.perturbing)
    return passes.choose(loaded.trace, perturbing=perturbing, order=manifest.kernel_order())[1]


def _strips(trace: Trace) -> Strips:
    return device_strips(trace, measured(trace).when, IdleAnalysis(trace))
