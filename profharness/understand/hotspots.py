"""The hotspot table of one run, or of files that were loaded as one trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from profharness.analysis.kernels.columns import with_rates
from profharness.analysis.kernels.counter_table import counter_rows
from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.kernels.hotspots import listed, tally
from profharness.analysis.kernels.tally import OF_FRAMES
from profharness.analysis.operators.coverage import misfits
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.run import kernel_pass as passes
from profharness.errors import UsageError
from profharness.trace.wanted import Wanted
from profharness.understand.device_use import yardstick_of
from profharness.understand.load import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from profharness.analysis.kernels.tally import Grouping
    from profharness.analysis.records import Hotspots
    from profharness.findings import Finding
    from profharness.trace.model import Trace
    from profharness.understand.load import Loaded

_SAMPLED = ("kernel", "op", "category")


def load_for(paths: Sequence[Path], by: Grouping | None) -> Loaded:
    """What a table of these rows needs of runs and files. Raises as `load` does."""
    return load(paths, wanted=Wanted.STACKS if by in OF_FRAMES else Wanted.ALL)


def hotspots_of(
    loaded: Loaded,
    by: Grouping | None = None,
    pass_name: str | None = None,
    samples: str = "",
    operator_input: OperatorInput = NO_INPUT,
) -> Hotspots:
    """The table of one pass, with the means of the telemetry metrics named in `samples` (as
    `power,clock`). Without `by`, rows are the first kind that the pass holds. Where no pass was
    asked for and the one that speaks for kernels has no such rows, it is the first pass that has.

    Raises UsageError for a pass or metric that the trace does not hold, and InputError for a
    damaged calibration in the run.
    """
    tables = (
        _table(loaded, name, records, by, samples, operator_input)
        for name, records in passes_in_order(loaded, pass_name)
    )
    first = next(tables)
    if first.rows or by is None:
        return first
    return next((table for table in tables if table.rows), first)


def _table(
    loaded: Loaded,
    name: str | None,
    records: Trace,
    by: Grouping | None,
    samples: str,
    operator_input: OperatorInput,
) -> Hotspots:
    trace = loaded.trace
    counted = trace if len(trace.counters) else None
    facts = KernelFacts(records, yardstick_of(loaded, counted, operator_input))
    table = msgspec.structs.replace(
        with_rates(
            (listed(records, facts) if by is None else tally(records, by, facts=facts)).table(),
            facts,
        ),
        pass_name=name,
    )
    if table.by == "kernel":
        table = msgspec.structs.replace(table, counters=counter_rows(trace))
    if not samples:
        return table
    if table.by not in _SAMPLED:
        raise UsageError(
            f"--samples is for kernels, operators and categories, not for rows by {table.by}",
            "leave it out",
        )
    from profharness.analysis.kernels.hotspot_samples import with_samples
    from profharness.analysis.power.sample_joins import named

    return with_samples(table, records, trace, named(samples, trace))


def misfits_of(
    loaded: Loaded, pass_name: str | None, operator_input: OperatorInput
) -> tuple[Finding, ...]:
    """What the user's formulas do not fit in the pass that `hotspots_of` shows; nothing without
    formulas of the user's.
    """
    if not operator_input.formulas:
        return ()
    _, records = records_of(loaded, pass_name)
    return misfits(KernelFacts(records, Yardstick(operator_input=operator_input)))


def passes_in_order(
    loaded: Loaded, pass_name: str | None = None
) -> Iterator[tuple[str | None, Trace]]:
    """The pass asked for with its records; without one all passes, the one that speaks for kernels
    first. Raises as `records_of` does.
    """
    first = records_of(loaded, pass_name)
    yield first
    if pass_name is None:
        names = dict.fromkeys(source.pass_name for source in loaded.trace.sources)
        for name in names:
            if name not in ("", first[0]):
                yield records_of(loaded, name)


def records_of(loaded: Loaded, pass_name: str | None = None) -> tuple[str | None, Trace]:
    """The pass asked for, or else the one that speaks for kernels, and its records; without passes
    None and all records. Raises UsageError for a pass that the trace does not hold.
    """
    manifest = loaded.manifest
    order = None if manifest is None else manifest.kernel_order()
    return passes.choose(loaded.trace, pass_name, order=order)
