"""NVIDIA devices through nvidia-ml-py (extra `nvidia`), which loads the driver's own library: in
the sampler's process only.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from profharness.telemetry.sources import SampledDevice, Source, Target
from profharness.telemetry.sources.absent import AbsentSource
from profharness.telemetry.sources.nvidia.calls import (
    Device,
    NvmlFieldsSource,
    NvmlStateSource,
    Parent,
)
from profharness.telemetry.sources.nvidia.gpm import NvmlGpmSource


def open_sources(target: Target) -> tuple[Source, ...]:
    """Three sources per device, and two per MIG instance of it; or the reason why there is none."""
    try:
        library = import_module("pynvml")
    except ImportError:
        return (AbsentSource("nvml", "nvidia-ml-py is not installed (extra `nvidia`)"),)
    except Exception as error:  # noqa: BLE001  a broken installation must not end the other sources
        return (AbsentSource("nvml", f"nvidia-ml-py cannot be imported ({error})"),)
    try:
        library.nvmlInit()
        devices = [_device(library, number) for number in range(library.nvmlDeviceGetCount())]
    except Exception as error:  # noqa: BLE001  NVMLError has many kinds; what it says is the reason
        return (AbsentSource("nvml", f"NVIDIA's library cannot be used ({error})"),)
    if not devices:
        return (AbsentSource("nvml", "NVIDIA's library finds no device"),)
    return tuple(source for device in devices for source in _sources(device, target.roots_file))


def _sources(device: Device, roots_file: str) -> tuple[Source, ...]:
    """Power, energy, clocks and throttling are the whole device's; GPM and memory each instance's
    own.
    """
    instances = _instances(device)
    if instances:
        device = device._replace(
            sampled=device.sampled._replace(
                scope=f"package of {len(instances)} MIG instances", mode="MIG"
            )
        )
    whole: tuple[Source, ...] = (
        NvmlFieldsSource(device),
        NvmlStateSource(device, roots_file),
        NvmlGpmSource(device),
    )
    return (
        *whole,
        *(
            source
            for instance in instances
            for source in (NvmlStateSource(instance, roots_file), NvmlGpmSource(instance))
        ),
    )


def _instances(device: Device) -> tuple[Device, ...]:
    """The MIG instances of a device, named as nvidia-smi names them: `0.1` is MIG device 1 of GPU
    0.
    """
    library, whole = device.library, device.sampled
    try:
        if device.call("nvmlDeviceGetMigMode")[0] != 1:  # NVML_DEVICE_MIG_ENABLE
            return ()
        places = range(device.call("nvmlDeviceGetMaxMigDeviceCount"))
    except Exception:  # noqa: BLE001 - parts and drivers without MIG say so by an error
        return ()
    instances = []
    for place in places:
        try:
            handle = device.call("nvmlDeviceGetMigDeviceHandleByIndex", place)
            identity, name = (
                _text(library.nvmlDeviceGetUUID(handle)),
                _text(library.nvmlDeviceGetName(handle)),
            )
            instance = int(library.nvmlDeviceGetGpuInstanceId(handle))
        except Exception:  # noqa: BLE001,S112 - a place without an instance answers with an error
            continue
        sampled = SampledDevice(
            f"{whole.number}.{place}",
            identity,
            name,
            "nvidia",
            whole.identity,
            "",
            name.rpartition("MIG ")[2],
        )
        instances.append(Device(library, handle, sampled, Parent(device.handle, instance)))
    scope = f"package of {len(instances)} MIG instances"
    return tuple(mig._replace(sampled=mig.sampled._replace(scope=scope)) for mig in instances)


def _device(library: ModuleType, number: int) -> Device:
    handle = library.nvmlDeviceGetHandleByIndex(number)
    identity = _text(library.nvmlDeviceGetUUID(handle))
    return Device(
        library,
        handle,
        SampledDevice(
            str(number),
            identity,
            _text(library.nvmlDeviceGetName(handle)),
            "nvidia",
            identity,
            "device",
        ),
    )


def _text(value: str | bytes) -> str:
    """Older versions of the package give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
