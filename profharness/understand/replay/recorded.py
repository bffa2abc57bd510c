"""The hottest calls of what the user named, with the options under which they were recorded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profharness.analysis.replay.hottest import HotCalls, hottest
from profharness.errors import InputError
from profharness.trace.calls.plan import ProfilerOptions
from profharness.trace.columns.table import NULL
from profharness.trace.model import Problem, Trace
from profharness.understand.hotspots import passes_in_order
from profharness.understand.load import load
from profharness.understand.replay.threads import (
    RecordedThreads,
    cores_here,
    recorded_threads,
)

SHAPES = (
    "record them with record_shapes=True of torch.profiler; `profharness run --profile torch` "
    "does so"
)


@dataclass(frozen=True)
class Recorded:
    """The calls of one pass, hottest first, and with how many threads they were recorded."""

    source: str
    pass_name: str | None
    hot: HotCalls
    profiler: ProfilerOptions
    threads: RecordedThreads
    problems: tuple[Problem, ...]


def recorded(paths: Sequence[Path], pass_name: str | None = None) -> Recorded:
    """The calls of the pass asked for, or of the first one that holds operators. Raises InputError
    where there are none, or none with shapes, and as `load` does.
    """
    loaded = load(paths)
    passes = passes_in_order(loaded, pass_name)
    chosen = next(((name, records) for name, records in passes if len(records.ops)), None)
    if chosen is None:
        raise InputError(
            f"{loaded.source}: it holds no operators, so there is nothing to replay",
            "a run records them with --profile torch",
        )
    name, records = chosen
    if not np.any(records.ops.shapes != NULL):
        raise InputError(
            f"{loaded.source}: its operators were recorded without their shapes", SHAPES
        )
    return Recorded(
        loaded.source,
        name,
        hottest(records),
        _options(records),
        recorded_threads(records.sources, loaded.manifest, os.environ, cores_here()),
        records.problems,
    )


def _options(records: Trace) -> ProfilerOptions:
    """What the files say of the profiler's options."""
    said = {name for source in records.sources for name, value in source.details if value == "1"}
    return ProfilerOptions(
        record_shapes=True,
        with_stack="with_stack" in said,
        profile_memory="profile_memory" in said,
    )
