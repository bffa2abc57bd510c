"""NVIDIA devices through nvidia-ml-py (extra `nvidia`), which loads the driver's own library: in the sampler's process only."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from profharness.telemetry.sources import SampledDevice, Source, Target
from profharness.telemetry.sources.absent import AbsentSource
from profharness.telemetry.sources.nvml_calls import Device, NvmlFieldsSource, NvmlStateSource
from profharness.telemetry.sources.nvml_gpm import NvmlGpmSource


def open_sources(target: Target) -> tuple[Source, ...]:  # noqa: ARG001 - part of the contract; the library finds its devices itself
    """Three sources per device; or the reason why there is none."""
    try:
        library = import_module("pynvml")
    except ImportError:
        return (AbsentSource("nvml", "nvidia-ml-py is not installed (extra `nvidia`)"),)
    except Exception as error:  # noqa: BLE001 - a broken installation must not end the other sources
        return (AbsentSource("nvml", f"nvidia-ml-py cannot be imported ({error})"),)
    try:
        library.nvmlInit()
        devices = [_device(library, number) for number in range(library.nvmlDeviceGetCount())]
    except Exception as error:  # noqa: BLE001 - NVMLError has many kinds; what it says is the reason
        return (AbsentSource("nvml", f"NVIDIA's library cannot be used ({error})"),)
    if not devices:
        return (AbsentSource("nvml", "NVIDIA's library finds no device"),)
    kinds = (NvmlFieldsSource, NvmlStateSource, NvmlGpmSource)
    return tuple(kind(device) for device in devices for kind in kinds)


def _device(library: ModuleType, number: int) -> Device:
    handle = library.nvmlDeviceGetHandleByIndex(number)
    identity = _text(library.nvmlDeviceGetUUID(handle))
    return Device(library, handle, SampledDevice(str(number), identity, _text(library.nvmlDeviceGetName(handle)), "nvidia", identity, "device"))


def _text(value: str | bytes) -> str:
    """Older versions of the package give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
