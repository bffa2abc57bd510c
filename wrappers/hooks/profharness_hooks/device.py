"""What the torch hook asks about accelerators. It never touches one first, since that would start a
runtime which does not survive fork.
"""

from __future__ import annotations

import os

from profharness_hooks.process import masks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profharness_hooks.process import Process


DEVICE_FILES = ("/dev/kfd", "/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")


def has_device_files() -> bool:
    """Whether the kernel offers a device of AMD or NVIDIA here."""
    return any(os.path.exists(path) for path in DEVICE_FILES)


def describe_device(properties: Any, index: int) -> dict[str, Any]:
    """Index, name and address of a device as torch gives it; `identity` is the PCI address, or the
    uuid, or empty.
    """
    bus = getattr(properties, "pci_bus_id", None)
    if bus is not None:
        identity = "%04x:%02x:%02x.0" % (
            getattr(properties, "pci_domain_id", 0),
            bus,
            getattr(properties, "pci_device_id", 0),
        )
    else:
        identity = str(getattr(properties, "uuid", ""))
    return {"index": index, "name": str(properties.name), "identity": identity}


def note_devices(process: Process, torch: Any) -> None:
    """Put the devices that this process already uses into its hello, without touching any other."""
    if (
        process.hello.facts["devices"]
        or not is_device_build(torch)
        or not torch.cuda.is_initialized()
    ):
        return
    process.hello.update(masks=masks(os.environ))
    for index in range(torch.cuda.device_count()):
        process.hello.add(
            "devices", describe_device(torch.cuda.get_device_properties(index), index)
        )


def is_device_build(torch: Any) -> bool:
    """Whether this torch was made for CUDA or ROCm, be there a device or not."""
    return bool(torch.version.cuda or getattr(torch.version, "hip", None))
