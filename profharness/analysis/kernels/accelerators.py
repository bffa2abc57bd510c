"""The devices of a trace as the device table knows them."""

from __future__ import annotations

from profharness.node.devices import Accelerator, identify
from profharness.trace.columns.table import NULL
from profharness.trace.model import Device, Trace


def accelerator(trace: Trace, device: int) -> Accelerator | None:
    """The device at this position in `trace.devices`; None for records that name none."""
    return None if device == NULL else of_device(trace.devices[device])


def of_device(device: Device) -> Accelerator:
    """A device as a source describes it; what the source does not say comes from the table, what
    neither says is None.
    """
    return identify(
        name=device.name,
        architecture=device.architecture,
        compute_units=device.compute_units,
        clock_mhz=device.max_clock_mhz,
        pci_id=device.pci_id,
        memory_bytes=device.memory_bytes,
    )
