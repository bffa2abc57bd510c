"""What the manifest says of a point, as a summary has it."""

from __future__ import annotations

import msgspec

from profharness.analysis.records import PointSummary
from profharness.analysis.run.provider_findings import providers_of
from profharness.rundir.manifest import PointRecord


def as_recorded(summary: PointSummary, record: PointRecord) -> PointSummary:
    """The summary with it."""
    return msgspec.structs.replace(
        summary,
        backend=record.backend,
        batch_size=record.batch_size,
        concurrency=record.concurrency,
        processes=record.processes,
        cores_per_process=record.cores_per_process,
        mode=record.mode or "",
        rate=record.rate,
        state=record.state,
        error=record.error,
        trials=record.trials,
        warmup_trials=record.warmup_trials,
        providers=providers_of(record),
    )
