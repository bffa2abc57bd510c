"""The accelerators of this node, without importing a framework: AMD's from sysfs, NVIDIA's from
nvidia-smi.

AMD: KFD's topology (Documentation/gpu/amdgpu in the kernel tree, and the thunk's topology.c for the
meaning of the properties) lists devices in the order in which HIP numbers them; the DRM device of
the same PCI address has the name. A device that a job may not use has unreadable properties and is
left out.
"""

from __future__ import annotations

import os
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping


NVIDIA_FIELDS = ("index", "name", "uuid", "memory.total", "driver_version", "compute_cap")
MIB = 1 << 20
MASKS = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def read(path: str) -> str:
    """A small text file, stripped, or "" where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def masks(variables: Mapping[str, str]) -> Dict[str, str]:
    """The variables that hide devices from a process; an empty one may hide all."""
    return {name: variables[name] for name in MASKS if name in variables}


def properties(path: str) -> Dict[str, int]:
    """`name value` lines of a KFD file, values as int where they are numbers."""
    pairs = (
        line.split(None, 1) for line in read(path).splitlines() if len(line.split(None, 1)) == 2
    )
    return {name: int(value) for name, value in pairs if value.isdigit()}


def architecture(version: int) -> str:
    """gfx_target_version as LLVM names the target: 90010 -> gfx90a, 110501 -> gfx1151 (the stepping
    is hexadecimal).
    """
    return "gfx%d%x%x" % (version // 10000, version // 100 % 100, version % 100) if version else ""


def address(facts: Mapping[str, int]) -> str:
    """PCI address from KFD's location_id (bus << 8 | device << 3 | function) and domain."""
    location = facts.get("location_id", 0)
    return "%04x:%02x:%02x.%d" % (
        facts.get("domain", 0),
        location >> 8 & 0xFF,
        location >> 3 & 0x1F,
        location & 7,
    )


def rocm(sysfs: str = "/sys") -> List[Dict[str, Any]]:
    """AMD devices in KFD's order, memory in bytes; empty where this node has no KFD."""
    nodes = os.path.join(sysfs, "class/kfd/kfd/topology/nodes")
    devices: List[Dict[str, Any]] = []
    try:
        numbers = sorted(int(name) for name in os.listdir(nodes) if name.isdigit())
    except OSError:
        return devices
    for number in numbers:
        folder = os.path.join(nodes, str(number))
        facts = properties(os.path.join(folder, "properties"))
        if facts.get("simd_count", 0) > 0:
            devices.append(_rocm_device(sysfs, folder, facts, len(devices)))
    return _partitions_named(devices)


def _partitions_named(devices: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Partitions of a package share a PCI address: `0000:c1:00.0/3` is the fourth of them, as the
    telemetry names it.
    """
    addresses = [device["identity"] for device in devices]
    return [
        dict(
            device,
            identity="%s/%d" % (address, addresses[:place].count(address))
            if addresses.count(address) > 1
            else address,
        )
        for place, (device, address) in enumerate(zip(devices, addresses))
    ]


def _rocm_device(sysfs: str, folder: str, facts: Mapping[str, int], index: int) -> Dict[str, Any]:
    device = os.path.join(sysfs, "class/drm/renderD%d/device" % facts.get("drm_render_minor", 0))
    banks = os.path.join(folder, "mem_banks")
    memory = 0
    for bank in os.listdir(banks) if os.path.isdir(banks) else ():
        bank_facts = properties(os.path.join(banks, bank, "properties"))
        if bank_facts.get("heap_type") in (1, 2):  # local memory, public or private
            memory += bank_facts.get("size_in_bytes", 0)
    memory = memory or int(read(os.path.join(device, "mem_info_vram_total")) or 0)
    return {
        "index": index,
        "kind": "rocm",
        "name": read(os.path.join(device, "product_name"))
        or read(os.path.join(folder, "name"))
        or "AMD GPU",
        "identity": address(facts),
        "memory_bytes": memory or None,
        "compute_units": facts["simd_count"] // max(1, facts.get("simd_per_cu", 4)),
        "architecture": architecture(facts.get("gfx_target_version", 0)),
        "driver": read(os.path.join(sysfs, "module/amdgpu/version")),
    }


def nvidia(tool: str = "nvidia-smi") -> List[Dict[str, Any]]:
    """NVIDIA devices as nvidia-smi lists them, memory in bytes; empty where the tool is missing or
    fails. An old nvidia-smi does not know the field compute_cap, so it is asked again without.
    """
    for fields in (NVIDIA_FIELDS, NVIDIA_FIELDS[:-1]):
        try:
            answer = subprocess.run(
                [tool, "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                timeout=20,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return []
        if answer.returncode == 0:
            return [
                row
                for row in map(
                    _nvidia_device, answer.stdout.decode("utf-8", "replace").splitlines()
                )
                if row
            ]
    return []


def _nvidia_device(line: str) -> Dict[str, Any] | None:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) < 5 or not cells[0].isdigit():
        return None
    capability = cells[5].replace(".", "") if len(cells) > 5 else ""
    return {
        "index": int(cells[0]),
        "kind": "cuda",
        "name": cells[1],
        "identity": cells[2],
        "memory_bytes": int(cells[3]) * MIB if cells[3].isdigit() else None,
        "compute_units": None,
        "architecture": "sm_" + capability if capability.isdigit() else "",
        "driver": cells[4],
    }
