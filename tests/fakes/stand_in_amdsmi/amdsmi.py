"""A stand-in for AMD's Python package `amdsmi`: one device, and the faults that a wrong library
shows.

Put this folder on PYTHONPATH. STAND_IN_AMDSMI chooses: `abort` (the library kills the calling
process inside a call), `segfault` (it reads where nothing is, one second after it was loaded),
`hang` (it never returns, from then on), `nothing` (older than the driver's tables: every value is
'N/A'), `shifted` (structures of another version: wrong values), `symbol` (undefined symbol at
import), `library` (not found, with two lines on stdout), `secondary` (a die that reports 0). The power cap
lies in the file that STAND_IN_AMDSMI_CAP names (µW); in the mode `permission` nobody may set it.
"""

import ctypes
import os
import time
from pathlib import Path

STAND_IN = True
MODE = os.environ.get("STAND_IN_AMDSMI", "")
START_NS = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

if MODE == "library":
    print("Unable to find libamd_smi.so library try installing amd-smi-lib")
    raise KeyError("libamd_smi.so")
if MODE == "symbol":
    raise AttributeError(
        "/opt/rocm/lib/libamd_smi.so: undefined symbol: amdsmi_get_gpu_enumeration_info"
    )


def amdsmi_init():
    print("the library talks to stdout")


def amdsmi_get_processor_handles():
    return [object()]


def amdsmi_get_gpu_device_bdf(handle):
    return "0000:C1:00.0"


def amdsmi_get_gpu_metrics_info(handle):
    if MODE == "abort":
        os.abort()
    if (
        MODE in ("segfault", "hang")
        and time.clock_gettime_ns(time.CLOCK_BOOTTIME) - START_NS > 1_000_000_000
    ):
        if MODE == "segfault":
            ctypes.string_at(0)
        time.sleep(1000)
    if MODE == "nothing":
        return dict.fromkeys(
            (
                "average_gfx_activity",
                "average_socket_power",
                "current_socket_power",
                "energy_accumulator",
                "current_gfxclk",
            ),
            "N/A",
        )
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    joules = 324 * (now - START_NS) / 1e9
    power = {"secondary": 0, "shifted": 58}.get(MODE, 324)
    return {
        "average_gfx_activity": 100,
        "average_umc_activity": 37,
        "average_socket_power": power,
        "current_socket_power": "N/A",
        "energy_accumulator": 0 if MODE == "secondary" else int(joules * 65536),
        "system_clock_counter": now,
        "current_gfxclks": [1700, 65535, 1600],
        "current_gfxclk": 1650,
        "current_uclk": 4294967295,
        "temperature_edge": 0,
        "temperature_hotspot": 58,
        "temperature_mem": "N/A",
    }


class AmdSmiLibraryException(Exception):  # noqa: N818  its name there
    pass


def amdsmi_get_power_cap_info(handle):
    if MODE == "secondary":
        return dict.fromkeys(("power_cap", "min_power_cap", "max_power_cap"), 0)
    cap = 560_000_000
    if "STAND_IN_AMDSMI_CAP" in os.environ:
        cap = int(Path(os.environ["STAND_IN_AMDSMI_CAP"]).read_text("ascii"))
    return {
        "power_cap": cap,
        "default_power_cap": 560_000_000,
        "dpm_cap": 1700,
        "min_power_cap": 100_000_000,
        "max_power_cap": 560_000_000,
    }


def amdsmi_set_power_cap(handle, sensor_ind, cap):
    info = amdsmi_get_power_cap_info(handle)
    if MODE == "permission":
        raise AmdSmiLibraryException("10: AMDSMI_STATUS_NO_PERM - Permission Denied")
    if sensor_ind != 0 or not info["min_power_cap"] <= cap <= info["max_power_cap"]:
        raise AmdSmiLibraryException("1: AMDSMI_STATUS_INVAL - Invalid parameters")
    Path(os.environ["STAND_IN_AMDSMI_CAP"]).write_text(str(cap), "ascii")
