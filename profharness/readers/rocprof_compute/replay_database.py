"""A rocpd database that rocprof-compute left of one process of one execution, as the rows that its
tables have.

From 3.3 on its back end writes such databases (`out/pmc_1/HOST/PID_results.db`, later
`out/PASS/PID/PID.db`), from which the tool makes its tables; where it was ended before that, or
keeps them, they hold the counters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from profharness.readers.bytes.csv_columns import Table
from profharness.readers.rocprofv3 import rocpd_reader
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace

NAME = re.compile(r"\d+(?:_results)?\.db\Z")
_COLUMNS = {
    "Dispatch_ID": "dispatch",
    "LDS_Per_Workgroup": "lds_bytes",
    "Scratch_Per_Workitem": "scratch_bytes",
    "Arch_VGPR": "vgpr",
    "Accum_VGPR": "accum_vgpr",
    "SGPR": "sgpr",
    "Start_Timestamp": "start_ns",
}


def read(path: Path) -> Table:
    """One row per counter value, and one for a dispatch without any. Raises InputError as the
    reader of rocpd does.
    """
    trace = rocpd_reader.read(path)
    kernels, counters = trace.kernels, trace.counters
    bare = np.setdiff1d(np.arange(len(kernels)), counters.kernel)
    kernel = np.concatenate([counters.kernel, bare])
    columns = {
        name: [_text(value) for value in getattr(kernels, column)[kernel].tolist()]
        for name, column in _COLUMNS.items()
    }
    end = (kernels.start_ns + kernels.dur_ns)[kernel]
    size = _product(trace, "workgroup_size")[kernel]
    groups = _product(trace, "workgroup_count")[kernel]
    columns |= {
        "GPU_ID": list(_devices(trace, kernel)),
        "GUID": [f"{path}:{pid}" for pid in kernels.pid[kernel].tolist()],
        "Grid_Size": [_text(value) for value in (size * groups).tolist()],
        "Workgroup_Size": [_text(value) for value in size.tolist()],
        "Kernel_Name": list(trace.strings.decode(kernels.name[kernel])),
        "End_Timestamp": [_text(value) for value in end.tolist()],
        "Counter_Name": [*trace.strings.decode(counters.name), *("" for _ in bare)],
        "Counter_Value": [*map(repr, counters.value.tolist()), *("" for _ in bare)],
    }
    damage = "; ".join(one.message for one in trace.problems if one.severity == "error")
    return Table(path, columns, len(kernel), damage=damage)


def _product(trace: Trace, of: str) -> I64:
    axes = [getattr(trace.kernels, f"{of}_{axis}") for axis in "xyz"]
    product: I64 = np.prod([np.maximum(axis, 1) for axis in axes], axis=0, dtype=np.int64)
    return product


def _devices(trace: Trace, kernel: I64) -> Iterator[str]:
    for device in trace.kernels.device[kernel].tolist():
        yield "" if device == NULL else trace.devices[device].index


def _text(value: int) -> str:
    return "" if value == NULL else str(value)
