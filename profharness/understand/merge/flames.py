"""Flame graphs of a run whose records are never in memory at once together with Python's functions
and modules: each group of records that refer to each other is folded into the trees.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from profharness.trace.parts import select

if TYPE_CHECKING:
    from profharness.analysis.pictures.records import Flame
    from profharness.trace.model import Trace
    from profharness.understand.load_run import RunRecords


def flames_of_groups(groups: Iterable[Trace], records: RunRecords) -> tuple[Flame, ...]:
    """The flame graphs of the pass that speaks for kernels. `groups` hold the same sources as the
    `records`, and what was recorded beside them of functions and modules.
    """
    from profharness.analysis.operators.device_time import is_timed
    from profharness.analysis.pictures.flame import Folding
    from profharness.analysis.pictures.flame_layout import TREES, flame_of
    from profharness.analysis.run import kernel_pass as passes

    manifest = records.manifest
    perturbing = frozenset(record.name for record in manifest.passes if record.perturbing)
    order = manifest.kernel_order()
    _, speaking = passes.speakers(records.trace, perturbing=perturbing, order=order)
    _, chosen = passes.choose(records.trace, perturbing=perturbing, order=order)
    folded = [Folding(kind, is_timed(chosen)) for kind in TREES]
    del chosen
    for group in groups:
        part = group if speaking is None else select.by_source(group, speaking)
        for folding in folded:
            folding.add(part)
    made = (flame_of(folding.tree, folding.kind) for folding in folded)
    return tuple(flame for flame in made if flame is not None)
