"""Sources that hold no device work by their form, so that none is missing from them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.trace.model import TABLES, Source, Trace

# without a tool's file nobody meant to record device work
_HARNESS_FILES = frozenset(
    {"trials", "steps", "telemetry", "requests", "executions", "level", "host"}
)
_HOST_LOGS = frozenset(
    {"amd-log", "miopen-log", "py-spy"}
)  # what the host did: when the device worked stands in none of them
_DESCRIPTIONS = frozenset(
    {"rocminfo", "rocprof-compute-machine"}
)  # of the machine, or tables of results
_DEVICE_TABLES = frozenset({"kernel", "counter", "copy"})


def meant_none(source: Source) -> bool:
    """Whether nobody would look for device work in this source."""
    return source.format in _HARNESS_FILES | _HOST_LOGS | _DESCRIPTIONS or _of_other_records(source)


def of_host_files(trace: Trace) -> npt.NDArray[np.bool_]:
    """Per source, whether it tells of the host's calls alone: a log of them, or the table of them
    without that of kernels.
    """
    return np.array(
        [source.format in _HOST_LOGS or _of_other_records(source) for source in trace.sources],
        np.bool_,
    )


def _of_other_records(source: Source) -> bool:
    """A loose file of a tool that writes kernels into another one; in a run they were asked for."""
    kinds = dict(source.details).get(TABLES, "")
    return bool(kinds) and not source.pass_name and not _DEVICE_TABLES & set(kinds.split(", "))
