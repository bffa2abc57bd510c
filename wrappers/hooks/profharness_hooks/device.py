"""What the torch hook asks about accelerators, without ever being the first to touch one: that
would start a runtime which does not survive fork.
"""

import os

DEVICE_FILES = ("/dev/kfd", "/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")


def has_device_files():
    """The kernel offers a device of AMD or NVIDIA here."""
    return any(os.path.exists(path) for path in DEVICE_FILES)


def describe_device(properties, index):
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


def note_devices(process, torch):
    """Put the devices that this process uses into its hello; never the first to touch them."""
    if (
        process.hello.facts["devices"]
        or not is_device_build(torch)
        or not torch.cuda.is_initialized()
    ):
        return
    for index in range(torch.cuda.device_count()):
        process.hello.add(
            "devices", describe_device(torch.cuda.get_device_properties(index), index)
        )


def is_device_build(torch):
    """A torch made for CUDA or ROCm, whether or not there is a device."""
    return bool(torch.version.cuda or getattr(torch.version, "hip", None))
