"""Whether sysinfo.csv tells the number of XCDs right.

The tool takes it from a table of chip numbers, in which newer products were missing: its releases
of ROCm 6.4.0 and 6.4.1 write 1 for an MI325X, those of 6.2 and 6.3 for some MI300X (compute pull
requests 448, 663 and 674). GRBM counts clocks on every XCD, so that all shares of its cycles are
then too low by the number of XCDs. The device table knows better, but it is believed only where the
counters contradict the file: more cycles per nanosecond than the top clock allows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profharness.node.dies import known_dies
from profharness.readers.rocprof_compute.machine_reader import Machine
from profharness.trace.model import Counters, Kernels, Strings

_CLOCKS = ("GRBM_GUI_ACTIVE", "GRBM_COUNT")
_TOLERANCE = 1.05  # a clock may be a little above what the table calls its top


def checked(
    machine: Machine, kernels: Kernels, counters: Counters, strings: Strings
) -> tuple[Machine, str]:
    """The machine with as many XCDs as it has, and what to say where the file is wrong."""
    partition = dict(machine.details).get("compute_partition", "")
    known = known_dies(machine.architecture, machine.compute_units, partition)
    if known is None or machine.dies is None or machine.dies == known.dies:
        return machine, ""
    clock_ghz = (machine.max_clock_mhz or known.clock_mhz) / 1000
    measured = _cycles_per_ns(kernels, counters, strings)
    if measured is None or measured / machine.dies <= clock_ghz * _TOLERANCE:
        return machine, ""
    where = f" in {partition} mode" if partition else ""
    said = (
        f"sysinfo.csv says num_xcd {machine.dies}, but {machine.architecture} with "
        f"{machine.compute_units} compute units{where} has {known.dies}, and GRBM counts "
        f"{measured:.3g} cycles per ns where one XCD has {clock_ghz:.3g} at most: {known.dies} "
        "is used here; shares in the tool's own analysis are wrong by that factor"
    )
    return replace(machine, dies=known.dies), said


def _cycles_per_ns(kernels: Kernels, counters: Counters, strings: Strings) -> float | None:
    """Of all kernels with times: GRBM cycles, which are sums over XCDs, per nanosecond."""
    for name in _CLOCKS:
        rows = np.flatnonzero(counters.name == strings.find(name))
        dur = kernels.dur_ns[counters.kernel[rows]]
        timed = dur > 0
        if timed.any():
            return float(counters.value[rows][timed].sum() / dur[timed].sum())
    return None
