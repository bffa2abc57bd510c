"""A stand-in for AMD's Python package `amdsmi`: one device, and the faults that a wrong library
shows.

Put this folder on PYTHONPATH. STAND_IN_AMDSMI chooses: `abort` (the library kills the calling
process inside a call), `segfault` (it reads where nothing is, one second after it was loaded),
`hang` (it never returns, from then on), `nothing` (older than the driver's tables: every value is
'N/A'), `shifted` (structures of another version: wrong values), `symbol` (undefined symbol at
import), `library` (not found, with two lines on stdout), `secondary` (a die that reports 0).
"""

import ctypes
import os
import time

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
