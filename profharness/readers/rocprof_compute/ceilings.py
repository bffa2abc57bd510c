"""The ceilings of a device by rocprof-compute: what its roofline benchmark reached (roofline.csv,
in GB/s, GFLOP/s and Gop/s) and the memory bandwidth that it works out of clock and channels
(`hbm_bw` in sysinfo.csv of older releases).

Of a type that matrix units multiply in, the benchmark of the vector units is no ceiling.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import read_table
from profharness.readers.rocprof_compute.machine_reader import Machine, file_beside, positive
from profharness.trace.model import Device, ToolCeiling

BENCHMARK = "rocprof-compute's roofline benchmark"
SYSINFO = "rocprof-compute's sysinfo.csv"
FILES = ("roofline.csv", "roofline.csv.gz")

_COPY = "copy"
_COLUMNS = {
    _COPY: ("hbmbw",),
    "fp64": ("fp64flops", "mfmaf64flops"),
    "fp32": ("fp32flops", "mfmaf32flops"),
    "fp16": ("mfmaf16flops",),
    "bf16": ("mfmabf16flops",),
    "fp8": ("mfmaf8flops",),
    "fp6": ("mfmaf6flops", "mfma_flops_f6f4"),
    "fp4": ("mfmaf4flops", "mfma_flops_f6f4"),
    "int8": ("mfmai8ops",),
}
"""Types of products and traffic to memory, by the columns that speak for them."""


def of_devices(
    devices: tuple[Device, ...], path: Path, machine: Machine | None
) -> tuple[Device, ...]:
    """The devices of a file of the tool, with the ceilings that stand beside it: what was measured
    before what was worked out. The benchmark runs on one device of a node, and holds for all of
    them unless it ran on each.
    """
    benchmark = _benchmark(path)
    bandwidth = machine.bandwidth_gb_s if machine is not None else None
    of_clock = (ToolCeiling(_COPY, bandwidth * 1e9, SYSINFO, measured=False),) if bandwidth else ()
    any_device = next(iter(benchmark.values()), ())
    return tuple(
        replace(device, ceilings=(*benchmark.get(device.index, any_device), *of_clock))
        for device in devices
    )


def _benchmark(path: Path) -> dict[str, tuple[ToolCeiling, ...]]:
    """What the benchmark reached, by the tool's number of the device; empty where it was left out,
    or broke off.
    """
    beside = file_beside(path, FILES)
    try:
        table = None if beside is None else read_table(beside)
    except InputError:
        return {}
    if table is None:
        return {}
    columns = {column.lower(): values for column, values in table.columns.items()}
    numbers = columns.get("device") or [str(row) for row in range(table.rows)]
    return {numbers[row].strip(): _of_row(columns, row) for row in range(table.rows)}


def _of_row(columns: dict[str, list[str]], row: int) -> tuple[ToolCeiling, ...]:
    found = []
    for figure, names in _COLUMNS.items():
        values = [positive(columns[name][row]) for name in names if name in columns]
        best = max((value for value in values if value is not None), default=None)
        if best is not None:
            found.append(ToolCeiling(figure, best * 1e9, BENCHMARK, measured=True))
    return tuple(found)
