"""Which pass of a run speaks for kernels: never a sum over passes, and within a pass never over two
tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from profharness.errors import UsageError
from profharness.rundir.older_layers import kernel_order
from profharness.trace.columns.table import NULL
from profharness.trace.model import Source, Trace
from profharness.trace.parts import select


def choose(
    trace: Trace,
    wanted: str | None = None,
    perturbing: frozenset[str] = frozenset(),
    order: Mapping[str, int] | None = None,
) -> tuple[str | None, Trace]:
    """The pass asked for, else the first with kernels by `order`, else the first with operators, or
    with host calls; and its records.

    Passes that are `perturbing` speak only where no other holds kernels. `order` is the manifest's
    (`Manifest.kernel_order`), without one that of older runs.

    Sources of other passes, and other tools' device records and calls of the same pass, are left
    out. A trace of loose files (no source names a pass) is returned whole, with None. Raises
    UsageError for a pass that the trace does not hold.
    """
    name, speaking = speakers(trace, wanted, perturbing, order)
    return name, trace if speaking is None else select.by_source(trace, speaking)


def speakers(
    trace: Trace,
    wanted: str | None = None,
    perturbing: frozenset[str] = frozenset(),
    order: Mapping[str, int] | None = None,
) -> tuple[str | None, tuple[bool, ...] | None]:
    """The same pass, and which sources of the trace speak for it; None for all of loose files."""
    names = list(dict.fromkeys(source.pass_name for source in trace.sources if source.pass_name))
    if wanted is not None and wanted not in names:
        hint = f"this trace holds {', '.join(names)}" if names else "loose files have no passes"
        raise UsageError(f"--pass {wanted}: no such pass", hint)
    if not names:
        return None, None
    with_kernels = _holding(trace, trace.kernels.source)
    speaker = _first(
        trace,
        [
            position
            for position in with_kernels
            if wanted in (None, trace.sources[position].pass_name)
        ],
        perturbing,
        kernel_order() if order is None else order,
    )
    if speaker is None:
        holding = [*_holding(trace, trace.ops.source), *_holding(trace, trace.api.source)]
        chosen = wanted or next(
            (name for position in holding if (name := trace.sources[position].pass_name)), names[0]
        )
        return chosen, tuple(source.pass_name == chosen for source in trace.sources)
    chosen, layer = speaker.pass_name, speaker.layer
    device = set(with_kernels) | set(_holding(trace, trace.copies.source))
    return chosen, tuple(
        source.pass_name == chosen and (source.layer == layer or position not in device)
        for position, source in enumerate(trace.sources)
    )


def of_merged_file(trace: Trace) -> tuple[str, Trace] | None:
    """Of a merged file that tells the passes of its run apart, the pass that speaks for kernels,
    and its records with those that belong to no pass (telemetry); None for every other trace.
    """
    passes = {source.pass_name for source in trace.sources if source.pass_name}
    if len(passes) < 2 or len({source.path for source in trace.sources}) > 1:
        return None
    name, speaking = speakers(trace)
    assert name is not None
    assert speaking is not None
    of_none = (not source.pass_name for source in trace.sources)
    mask = tuple(one or other for one, other in zip(speaking, of_none, strict=True))
    return name, select.by_source(trace, mask)


def _holding(trace: Trace, sources: npt.NDArray[np.int32]) -> list[int]:
    return [
        int(position)
        for position in np.unique(sources)
        if position != NULL and trace.sources[position].pass_name
    ]


def _first(
    trace: Trace, positions: Sequence[int], perturbing: frozenset[str], order: Mapping[str, int]
) -> Source | None:
    """The source whose layer comes first; layers that are not in it come last, in the order of the
    trace.
    """

    def place(position: int) -> tuple[bool, bool, int]:
        source = trace.sources[position]
        return source.pass_name in perturbing, source.layer not in order, order.get(source.layer, 0)

    return trace.sources[min(positions, key=place)] if positions else None
