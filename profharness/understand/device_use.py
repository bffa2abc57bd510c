"""How well the devices of a run, or of trace files, were used (docs/metrics.md#device-use)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.run import kernel_pass as passes
from profharness.analysis.use.device_use import device_use
from profharness.node import ceilings as calibration

if TYPE_CHECKING:
    from profharness.analysis.use.records import DeviceUse
    from profharness.trace.model import Trace
    from profharness.understand.load import Loaded


def use_of(
    loaded: Loaded, operator_input: OperatorInput = NO_INPUT, facts: KernelFacts | None = None
) -> DeviceUse | None:
    """The use of the devices in the pass that speaks for kernels, or where that knows no operators
    in the first that does; None where nothing was recorded of a device. Ceilings are those that a
    run keeps or that this machine's cache holds. `facts` are those of the trace of loose files, if
    known.

    Raises InputError for a damaged calibration in the run.
    """
    trace, manifest = loaded.trace, loaded.manifest
    counted = trace if len(trace.counters) else None
    if manifest is None:
        # counters and times of the same dispatches: no other pass stands beside them
        return device_use(facts or facts_of(loaded, operator_input))
    perturbing = frozenset(record.name for record in manifest.passes if record.perturbing)
    order = manifest.kernel_order()
    _, records = passes.choose(trace, perturbing=perturbing, order=order)
    if not _knows_operators(records):
        with_operators = [
            chosen
            for record in manifest.passes
            if record.name not in perturbing
            and any(source.pass_name == record.name for source in trace.sources)
            for _, chosen in (passes.choose(trace, record.name, order=order),)
            if _knows_operators(chosen)
        ]
        records = with_operators[0] if with_operators else records
    return device_use(KernelFacts(records, yardstick_of(loaded, counted, operator_input)))


def facts_of(loaded: Loaded, operator_input: OperatorInput = NO_INPUT) -> KernelFacts:
    """The facts of the kernels of loose files."""
    return KernelFacts(loaded.trace, yardstick_of(loaded, None, operator_input))


def yardstick_of(
    loaded: Loaded, counted: Trace | None = None, operator_input: OperatorInput = NO_INPUT
) -> Yardstick:
    """What work is measured against: the ceilings that a run keeps and those that this machine's
    cache holds, matched by the run's software, and the counter pass. Every command takes it from
    here, so that their shares of peak are the same.

    Raises InputError for a damaged calibration in the run.
    """
    manifest = loaded.manifest
    if manifest is None:
        return Yardstick(calibration.stored(), None, counted or loaded.counted, operator_input)
    node = manifest.nodes[0] if manifest.nodes else None
    kept = calibration.for_run(Path(loaded.source))
    return Yardstick(kept, node.versions if node else None, counted, operator_input)


def _knows_operators(trace: Trace) -> bool:
    """Whether any kernel stands under an operator."""
    return len(trace.ops) > 0 and bool((trace.kernels.op >= 0).any())
