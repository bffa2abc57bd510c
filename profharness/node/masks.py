"""Which devices of a node a process sees, by the variables that hide some from it. Pure.

The runtime of HSA takes ROCR_VISIBLE_DEVICES. HIP then counts among what is left, by
HIP_VISIBLE_DEVICES or, where that is empty, by CUDA_VISIBLE_DEVICES. CUDA knows its own alone. Each
list ends at the first number that is no device (docs: ROCm, "Setting the number of visible
devices"; CUDA programming guide, "CUDA environment variables").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profharness.rundir.manifest import DeviceRecord

MASKS = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def visible(
    masks: Mapping[str, str], devices: Sequence[DeviceRecord]
) -> tuple[DeviceRecord, ...] | None:
    """The accelerators in the order in which a process with these variables numbers them; None
    where the variables name devices in a way that does not tell (by a part of a GPU, or by an
    identity that is not known).
    """
    accelerators = [device for device in devices if device.kind != "cpu"]
    if any(device.kind == "rocm" for device in accelerators):
        first = _left(masks.get("ROCR_VISIBLE_DEVICES"), accelerators)
        second = masks.get("HIP_VISIBLE_DEVICES") or masks.get("CUDA_VISIBLE_DEVICES") or None
        left = None if first is None else _left(second, first)
    else:
        left = _left(masks.get("CUDA_VISIBLE_DEVICES"), accelerators)
    return None if left is None else tuple(left)


def _left(mask: str | None, devices: Sequence[DeviceRecord]) -> list[DeviceRecord] | None:
    if mask is None:
        return list(devices)
    left: list[DeviceRecord] = []
    for item in (word.strip() for word in mask.split(",")):
        if item.startswith(("GPU-", "MIG-")):
            named = [one for one in devices if item in one.identity and item.startswith("GPU-")]
            if len(named) != 1:
                return None
            left += named
        elif item.isdecimal() and item.isascii() and int(item) < len(devices):
            left.append(devices[int(item)])
        else:  # -1, a number beyond the last one, or nothing
            break
    return left
