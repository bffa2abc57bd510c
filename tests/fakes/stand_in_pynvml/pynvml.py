"""A stand-in for nvidia-ml-py's module `pynvml`: one made-up Hopper device whose energy follows its
power.

Put this folder on PYTHONPATH. STAND_IN_NVML chooses what is missing, parted by commas: `driver`,
`devices`, `gpm`, `instant` (an Ampere part without field 186), `utilisation`. `mig` is in it for a
device of two MIG instances: a handle is a pair then for an instance, which has its own GPM figures,
memory and processes, and neither clocks nor power. The limit of the power lies in the file that
STAND_IN_NVML_LIMIT names (mW); with `permission` in STAND_IN_NVML nobody may set it.
"""
# ruff: noqa: N801, N802 - the names are those of the package that this stands for

import ctypes
import os
import time
from pathlib import Path

STAND_IN = True
MISSING = frozenset(os.environ.get("STAND_IN_NVML", "").split(","))
NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
NVML_GPM_METRICS_GET_VERSION = 1
WATTS, LIMIT_W = 420.0, 700.0
START_NS = time.monotonic_ns()
NOT_SUPPORTED = 3


class NVMLError(Exception):
    def __init__(self, value, text):
        super().__init__(text)
        self.value = value


class _Answer:
    def __init__(self, **values):
        self.__dict__.update(values)


class c_nvmlGpmMetric_t(ctypes.Structure):
    _fields_ = [
        ("metricId", ctypes.c_uint),
        ("nvmlReturn", ctypes.c_int),
        ("value", ctypes.c_double),
    ]


class c_nvmlGpmMetricsGet_t(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint),
        ("numMetrics", ctypes.c_uint),
        ("sample1", ctypes.c_void_p),
        ("sample2", ctypes.c_void_p),
        ("metrics", c_nvmlGpmMetric_t * 300),
    ]


def nvmlInit():
    if "driver" in MISSING:
        raise NVMLError(12, "NVML Shared Library Not Found")


def nvmlDeviceGetCount():
    return 0 if "devices" in MISSING else 1


def nvmlDeviceGetHandleByIndex(number):
    return number


def nvmlDeviceGetMigMode(handle):
    if "mig" not in MISSING:
        raise NVMLError(NOT_SUPPORTED, "Not Supported")
    return [1, 1]


def nvmlDeviceGetMaxMigDeviceCount(handle):
    return 7


def nvmlDeviceGetMigDeviceHandleByIndex(handle, place):
    if place not in (0, 1):
        raise NVMLError(6, "Not Found")
    return (handle, place + 1)


def nvmlDeviceGetGpuInstanceId(handle):
    return handle[1]


def _whole_only(handle):
    """Not answered for an instance."""
    if isinstance(handle, tuple):
        raise NVMLError(NOT_SUPPORTED, "Not Supported")


def nvmlDeviceGetUUID(handle):
    if isinstance(handle, tuple):
        return f"MIG-00000000-1111-2222-3333-44444444444{handle[1]}"
    return "GPU-00000000-1111-2222-3333-444444444444"


def nvmlDeviceGetName(handle):
    if isinstance(handle, tuple):
        return "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    return b"NVIDIA A40" if "instant" in MISSING else "NVIDIA H100 80GB HBM3"


def nvmlErrorString(status):
    return {3: "Not Supported"}.get(status, "Unknown Error")


def _joules():
    return WATTS * (time.monotonic_ns() - START_NS) / 1e9


def nvmlDeviceGetFieldValues(handle, fields):
    values = {
        186: WATTS * 1000,
        185: WATTS * 1000 - 5000,
        83: _joules() * 1000,
        74: 0.25 * (time.monotonic_ns() - START_NS),
        75: 0,
    }
    if "instant" in MISSING:
        del values[186]
    now_us = time.time_ns() // 1000
    return [
        _Answer(
            fieldId=field,
            nvmlReturn=0 if field in values else NOT_SUPPORTED,
            timestamp=now_us,
            valueType=3,
            value=_Answer(ullVal=int(values.get(field, 0))),
        )
        for field in fields
    ]


def nvmlDeviceGetArchitecture(handle):
    return 7 if "instant" in MISSING else 9


def nvmlDeviceGetPowerUsage(handle):
    return int(WATTS * 1000 - 5000)


def nvmlDeviceGetUtilizationRates(handle):
    if (
        "utilisation" in MISSING or "mig" in MISSING
    ):  # under MIG there is none, of the device nor of its instances
        raise NVMLError(NOT_SUPPORTED, "Not Supported")
    return _Answer(gpu=97, memory=41)


def nvmlDeviceGetClockInfo(handle, kind):
    _whole_only(handle)
    return {NVML_CLOCK_SM: 1980, NVML_CLOCK_MEM: 2619}[kind]


def nvmlDeviceGetTemperature(handle, kind):
    _whole_only(handle)
    return 61


def nvmlDeviceGetMemoryInfo(handle):
    if isinstance(handle, tuple):
        return _Answer(total=40 << 30, used=handle[1] << 30, free=0)
    return _Answer(total=80 << 30, used=20 << 30, free=60 << 30)


def nvmlDeviceGetEnforcedPowerLimit(handle):
    _whole_only(handle)
    return int(LIMIT_W * 1000)


def nvmlDeviceGetPowerManagementLimitConstraints(handle):
    return [200_000, int(LIMIT_W * 1000)]


def nvmlDeviceGetPowerManagementLimit(handle):
    if "STAND_IN_NVML_LIMIT" not in os.environ:
        return int(LIMIT_W * 1000)
    return int(Path(os.environ["STAND_IN_NVML_LIMIT"]).read_text("ascii"))


def nvmlDeviceSetPowerManagementLimit(handle, limit):
    low, high = nvmlDeviceGetPowerManagementLimitConstraints(handle)
    if "permission" in MISSING:
        raise NVMLError(4, "Insufficient Permissions")
    if not isinstance(limit, int) or not low <= limit <= high:
        raise NVMLError(2, "Invalid Argument")
    Path(os.environ["STAND_IN_NVML_LIMIT"]).write_text(str(limit), "ascii")


def nvmlDeviceGetComputeRunningProcesses(handle):
    return [_Answer(pid=1)]


def nvmlDeviceGetCurrentClocksEventReasons(handle):
    _whole_only(handle)
    return 0x80 | 0x4


def nvmlGpmQueryDeviceSupport(handle):
    return _Answer(version=1, isSupportedDevice=0 if "gpm" in MISSING else 1)


_samples = []
_instances = {}


def nvmlGpmSampleAlloc():
    _samples.append(0)
    return len(_samples)


def nvmlGpmMigSampleGet(handle, instance, sample):
    _instances[sample] = instance
    _samples[sample - 1] = time.monotonic_ns()
    return sample


def nvmlGpmSampleGet(handle, sample):
    if "mig" in MISSING:
        raise NVMLError(NOT_SUPPORTED, "Not Supported")
    _samples[sample - 1] = time.monotonic_ns()
    return sample


def nvmlGpmMetricsGet(wanted):
    older, newer = _samples[wanted.sample1 - 1], _samples[wanted.sample2 - 1]
    if not 0 < older < newer:
        raise NVMLError(2, "Invalid Argument")
    values = {
        2: 80.0,
        3: 35.0,
        5: 22.0,
        10: 55.0,
        11: 0.0,
        12: 12.5,
        13: 1.0,
        20: 512.0,
        21: 1024.0,
    }
    if wanted.sample1 in _instances:
        values[2] = 10.0 * _instances[wanted.sample1]
    for place in range(wanted.numMetrics):
        metric = wanted.metrics[place]
        metric.nvmlReturn = 0 if metric.metricId in values else NOT_SUPPORTED
        metric.value = values.get(metric.metricId, float("nan"))
