"""What the host did, told by Python's functions too where they were recorded."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from profharness.analysis.measurement import measure
from profharness.analysis.records import Summary
from profharness.analysis.run import kernel_pass as passes
from profharness.analysis.summarise import host_time
from profharness.analysis.time.believed import believed
from profharness.trace.model import Trace
from profharness.trace.parts import select
from profharness.understand.load import Loaded


def told_by_frames(summary: Summary, loaded: Loaded) -> Summary:
    """The summary of what was loaded with Python's functions in what its host did, where these were
    read; of a run in the pass that speaks for kernels. They are no part of any other figure.
    """
    if loaded.shown is None or summary.host is None:
        return summary
    manifest = loaded.manifest
    order = None if manifest is None else manifest.kernel_order()
    perturbing = frozenset(
        record.name for record in (manifest.passes if manifest else ()) if record.perturbing
    )
    _, speaking = passes.speakers(loaded.trace, perturbing=perturbing, order=order)
    _, records = passes.choose(loaded.trace, perturbing=perturbing, order=order)
    host = host_time(measure(believed(records)), _speaking_parts(loaded, speaking))
    return msgspec.structs.replace(summary, host=host)


def _speaking_parts(loaded: Loaded, speaking: tuple[bool, ...] | None) -> Iterator[Trace]:
    for part in loaded.shown() if loaded.shown is not None else ():
        yield part if speaking is None else select.by_source(part, speaking)
