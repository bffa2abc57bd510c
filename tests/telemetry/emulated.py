"""Emulated AMD hardware: a sysfs tree as the amdgpu and KFD drivers write it. Made-up values, real
layouts.

The binary tables are packed field by field in the order of the kernel's structures, with the
compiler's alignment, so that they do not share the reader's table of offsets.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

U16, U32, U64 = 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
FIRST, SECOND = "0000:c1:00.0", "0000:c6:00.0"
VRAM_MI250X, VRAM_MI300X = 68702699520, 206141652992


@dataclass
class State:
    """What a device shows. `energy_j` and `power_w` are of the package; None stands for what the
    driver leaves unset.
    """

    power_w: int | None = 324
    energy_j: float | None = 1234.5
    gpu: int | None = 100
    memory: int | None = 37
    clock: int = 1650
    stamp_ns: int = 0
    throttle: int = 0
    throttle_status: int = 0  # in the firmware's own bits
    cycles: int = 1000
    residencies: Sequence[int] = (0, 0, 0, 0, 0)  # prochot, power, socket, regulator, HBM
    gpu_accumulated: int = 0
    memory_accumulated: int = 0
    busy: Sequence[Sequence[int]] = field(
        default_factory=lambda: [[100, 90, 80, 70, 60, 50, 40, 30]]
    )  # per partition, per compute die

    @property
    def stamp(self) -> int:
        return self.stamp_ns or time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    @property
    def energy(self) -> int:
        return U64 if self.energy_j is None else int(self.energy_j * 65536)


def unset(value: int | None, ones: int = U16) -> int:
    return ones if value is None else value


def table(version: str, state: State) -> bytes:
    """gpu_metrics of one device."""
    return {
        "1.3": _v13,
        "1.4": _v14,
        "1.5": _v15,
        "1.6": _v16,
        "1.7": _v17,
        "1.8": _v18,
        "1.9": _v19,
    }[version](state)


def _whole(version: str, fmt: str, *values: int) -> bytes:
    """The structure with its header and its padding at the end (`0Q`: the alignment of its longest
    member).
    """
    major, minor = (int(part) for part in version.split("."))
    packed = struct.Struct(f"@HBB {fmt} 0Q")
    return packed.pack(packed.size, major, minor, *values)


def _v13(s: State) -> bytes:
    return _whole(
        "1.3",
        "6H 3H H Q Q 7H 7H I H H H H I I 4H Q 3H H Q",
        51,
        58,
        48,
        U16,
        U16,
        U16,
        unset(s.gpu),
        unset(s.memory),
        U16,
        unset(s.power_w),
        s.energy,
        s.stamp,
        *[U16] * 7,
        s.clock,
        1090,
        1600,
        *[U16] * 4,
        s.throttle_status,
        0,
        16,
        160,
        U16,
        s.gpu_accumulated,
        s.memory_accumulated,
        48,
        47,
        46,
        45,
        s.stamp // 10,
        *[U16] * 4,
        s.throttle,
    )


def _clocks(s: State) -> list[int]:
    """gfxclk[8], socclk[4], vclk0[4], dclk0[4], uclk; every second compute die is absent."""
    return [
        s.clock,
        U16,
        s.clock,
        U16,
        s.clock + 8,
        U16,
        s.clock - 8,
        U16,
        1300,
        1310,
        U16,
        U16,
        *[U16] * 8,
        1300,
    ]


def _v14(s: State) -> bytes:
    return _whole(
        "1.4",
        "3H H 2H 4H Q Q I I 2H 2H II QQQQQ 8Q 8Q Q 21H H",
        55,
        40,
        45,
        unset(s.power_w),
        unset(s.gpu),
        unset(s.memory),
        0,
        0,
        0,
        0,
        s.energy,
        s.stamp,
        s.throttle_status,
        0,
        16,
        320,
        16,
        32,
        s.gpu_accumulated,
        s.memory_accumulated,
        *[7] * 5,
        *range(1, 9),
        *[2000] * 8,
        s.stamp // 10,
        *_clocks(s),
        U16,
    )


def _v15(s: State) -> bytes:
    return _whole(
        "1.5",
        "3H H 2H 4H 32H Q Q I I 2H 2H II QQQQQ II 8Q 8Q Q 21H H",
        55,
        40,
        45,
        unset(s.power_w),
        unset(s.gpu),
        unset(s.memory),
        *[0] * 36,
        s.energy,
        s.stamp,
        s.throttle_status,
        0,
        16,
        320,
        16,
        32,
        s.gpu_accumulated,
        s.memory_accumulated,
        *[7] * 5,
        0,
        0,
        *range(1, 9),
        *[2000] * 8,
        s.stamp // 10,
        *_clocks(s),
        U16,
    )


def _xcps(s: State, jpegs: int, accumulators: int) -> tuple[str, list[int]]:
    """Eight partitions: gfx_busy_inst[8], jpeg_busy, vcn_busy[4], then so many accumulators
    of [8].
    """
    values: list[int] = []
    for place in range(8):
        busy = list(s.busy[place]) if place < len(s.busy) else []
        values += [
            *busy,
            *[U32] * (8 - len(busy)),
            *[0] * jpegs,
            *[0] * 4,
            *[U64] * (8 * accumulators),
        ]
    return (
        f"0Q 8I {jpegs}H 4H {8 * accumulators}Q " * 8,
        values,
    )  # 0Q: each begins aligned for its longest member


def _v16(s: State) -> bytes:
    xcp, stats = _xcps(s, 32, 1)
    return _whole(
        "1.6",
        f"3H H 2H Q Q 6I I 2H 2H II QQQQQ II 8Q 8Q Q 21H H {xcp} I",
        55,
        40,
        45,
        unset(s.power_w),
        unset(s.gpu),
        unset(s.memory),
        s.energy,
        s.stamp,
        s.cycles,
        *s.residencies,
        0,
        16,
        320,
        16,
        32,
        s.gpu_accumulated,
        s.memory_accumulated,
        *[7] * 5,
        0,
        0,
        *range(1, 9),
        *[2000] * 8,
        s.stamp // 10,
        *_clocks(s),
        len(s.busy),
        *stats,
        0,
    )


def _v17(s: State, version: str = "1.7", jpegs: int = 32, accumulators: int = 2) -> bytes:
    xcp, stats = _xcps(s, jpegs, accumulators)
    return _whole(
        version,
        f"3H H 2H Q Q Q 6I I 2H 2H II QQQQQ II 8Q 8Q 8H H Q 21H H {xcp} I",
        55,
        40,
        45,
        unset(s.power_w),
        unset(s.gpu),
        unset(s.memory),
        5300,
        s.energy,
        s.stamp,
        s.cycles,
        *s.residencies,
        0,
        16,
        320,
        16,
        32,
        s.gpu_accumulated,
        s.memory_accumulated,
        *[7] * 5,
        0,
        0,
        *range(1, 9),
        *[2000] * 8,
        *[1] * 8,
        U16,
        s.stamp // 10,
        *_clocks(s),
        len(s.busy),
        *stats,
        0,
    )


def _v18(s: State) -> bytes:
    return _v17(s, "1.8", 40, 5)


def attribute(number: int, kind: str, *values: int, unit: int = 0) -> bytes:
    """One attribute of v1.9: unit, type, number and count in a 64-bit word, then the values,
    packed.
    """
    word = unit << 24 | "BbHhIiQq".index(kind) << 20 | number << 10 | len(values)
    return struct.pack(f"<Q{len(values)}{kind}", word, *values)


def _v19(s: State) -> bytes:
    clocks = _clocks(s)
    attributes = [
        attribute(0, "H", 55, unit=2),
        attribute(1, "H", 40, unit=2),
        attribute(2, "H", 45, unit=2),
        attribute(3, "H", unset(s.power_w), unit=3),
        attribute(4, "H", unset(s.gpu), unit=10),
        attribute(5, "H", unset(s.memory), unit=10),
        attribute(6, "Q", 5300, unit=8),
        attribute(7, "Q", s.energy),
        attribute(8, "Q", s.stamp, unit=4),
        attribute(9, "I", s.cycles),
        *(attribute(10 + place, "I", value) for place, value in enumerate(s.residencies)),
        attribute(20, "I", s.gpu_accumulated, unit=10),
        attribute(21, "I", s.memory_accumulated, unit=10),
        attribute(29, "Q", *range(1, 9), unit=9),
        attribute(30, "Q", *[2000] * 8, unit=9),
        attribute(33, "H", *clocks[:8], unit=1),
        attribute(34, "H", *clocks[8:12], unit=1),
        attribute(37, "H", clocks[20], unit=1),
        attribute(38, "H", len(s.busy)),
        attribute(40, "I", *s.busy[0], unit=10),
        attribute(200, "b", -1, 3),
    ]
    body = b"".join(attributes)
    return struct.pack("<HBBi", 8 + len(body), 1, 9, len(attributes)) + body


class Tree:
    """A sysfs root that grows device by device; `metrics` rewrites a device's table in place, as
    one write.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("module/amdgpu/initstate", "live\n")
        self.write("module/amdgpu/version", "6.8.5\n")
        self.write("module/amdgpu/refcnt", "8\n")
        self.write("class/kfd/kfd/proc/.keep", "")
        (root / "class/kfd/kfd/proc/.keep").unlink()
        self.nodes = 0
        self.cards = 0
        self.node(gpu_id=0, simd_count=0, cpu_cores_count=64, location_id=0)

    def write(self, path: str, content: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def link(self, path: str, target: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def node(self, *, gpu_id: int, **facts: int) -> None:
        """A KFD node; nodes are numbered from 0 without gaps."""
        folder = f"devices/virtual/kfd/kfd/topology/nodes/{self.nodes}"
        if not self.nodes:
            (self.root / "class/kfd/kfd/proc").rmdir()
            (self.root / "class/kfd/kfd").rmdir()
            self.link("class/kfd/kfd", "../../devices/virtual/kfd/kfd")
            (self.root / "devices/virtual/kfd/kfd/proc").mkdir(parents=True)
            self.write("devices/virtual/kfd/kfd/topology/generation_id", "2\n")
            self.write(
                "devices/virtual/kfd/kfd/topology/system_properties",
                "platform_oem 0\nplatform_id 0\nplatform_rev 0\n",
            )
        (self.root / folder / "io_links").mkdir(parents=True)
        self.write(f"{folder}/gpu_id", f"{gpu_id}\n")
        self.write(f"{folder}/name", "aldebaran\n" if gpu_id else "\n")
        self.write(
            f"{folder}/properties", "".join(f"{name} {value}\n" for name, value in facts.items())
        )
        self.nodes += 1

    def pci(self, address: str, product: str, device: str, vram: tuple[int, int]) -> str:
        """A PCI device with its card and its hwmon; returns its folder below the root."""
        folder, card = f"devices/pci0000:c0/{address}", self.cards
        self.cards += 1
        for name, text in {
            "vendor": "0x1002",
            "device": device,
            "product_name": product,
            "class": "0x038000",
            "unique_id": f"a1b2c3d4e5f6070{card}",
            "mem_info_vram_used": str(vram[0]),
            "mem_info_vram_total": str(vram[1]),
        }.items():
            self.write(f"{folder}/{name}", text + "\n")
        self._vendor_files(folder, address, device)
        self.write(
            f"{folder}/drm/card{card}/uevent",
            f"MAJOR=226\nMINOR={card}\nDEVNAME=dri/card{card}\nDEVTYPE=drm_minor\n",
        )
        self.write(f"{folder}/drm/card{card}/dev", f"226:{card}\n")
        self.write(f"{folder}/drm/renderD{128 + card}/dev", f"226:{128 + card}\n")
        for name in (f"card{card}", f"renderD{128 + card}"):
            self.link(f"{folder}/drm/{name}/device", f"../../../{address}")
            self.link(f"class/drm/{name}", f"../../{folder}/drm/{name}")
        self.link(f"bus/pci/devices/{address}", f"../../../{folder}")
        self.link(f"bus/pci/drivers/amdgpu/{address}", f"../../../../{folder}")
        hwmon = f"{folder}/hwmon/hwmon{3 + card}"
        self.link(f"{hwmon}/device", f"../../../{address}")
        self.write(f"{hwmon}/name", "amdgpu\n")
        self.link(f"class/hwmon/hwmon{3 + card}", f"../../{hwmon}")
        for number, (label, value) in enumerate(
            {"edge": 51000, "junction": 58000, "mem": 48000}.items(), 1
        ):
            self.write(f"{hwmon}/temp{number}_label", label + "\n")
            self.write(f"{hwmon}/temp{number}_input", f"{value}\n")
        for number, label in enumerate(("sclk", "mclk"), 1):
            self.write(f"{hwmon}/freq{number}_label", label + "\n")
        self.write(f"{hwmon}/in0_label", "vddgfx\n")
        self.write(f"{hwmon}/in0_input", "806\n")
        return folder

    def _vendor_files(self, folder: str, address: str, device: str) -> None:
        """What AMD's own library looks at and we do not."""
        for name, text in {
            "subsystem_vendor": "0x1002",
            "subsystem_device": "0x0b0c",
            "revision": "0x01",
            "numa_node": "0",
            "vbios_version": "113-D65209-080",
            "uevent": (
                f"DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:{device[2:].upper()}\n"
                f"PCI_SUBSYS_ID=1002:0B0C\nPCI_SLOT_NAME={address}"
            ),
            "product_number": "102-D65209-00",
            "serial_number": "PCB0000",
            "mem_info_vram_vendor": "hynix",
            "mem_info_gtt_total": "540000000000",
            "mem_info_gtt_used": "14000000",
            "mem_info_vis_vram_total": "68702699520",
            "mem_info_vis_vram_used": "67000000000",
            "power_dpm_force_performance_level": "auto",
            "pcie_bw": "1000 2000 256",
            "pcie_replay_count": "0",
            "current_link_speed": "16.0 GT/s PCIe",
            "current_link_width": "16",
            "max_link_speed": "16.0 GT/s PCIe",
            "max_link_width": "16",
            "pp_dpm_fclk": "0: 400Mhz\n1: 2000Mhz *",
            "pp_dpm_socclk": "0: 666Mhz\n1: 1090Mhz *",
            "pp_dpm_pcie": "0: 2.5GT/s, x16 8Mhz\n1: 16.0GT/s, x16 619Mhz *",
        }.items():
            self.write(f"{folder}/{name}", text + "\n")

    def shown_clocks(self, folder: str, gpu: int, memory: int) -> None:
        """The clocks in MHz as the driver lists them for AMD's library; the current one has a
        star.
        """
        self.write(f"{folder}/pp_dpm_sclk", f"0: 500Mhz\n1: {gpu}Mhz *\n2: {max(gpu, 1700)}Mhz\n")
        self.write(f"{folder}/pp_dpm_mclk", f"0: 400Mhz\n1: 700Mhz\n2: 1200Mhz\n3: {memory}Mhz *\n")

    def hwmon(self, folder: str, **files: int | str) -> None:
        place = next((self.root / folder / "hwmon").iterdir())
        for name, value in files.items():
            (place / name).write_text(f"{value}\n")

    def process(self, pid: int, gpu_id: int, filled: int | None, vram: int = 1 << 30) -> None:
        """A process of KFD; `filled` compute units, None where the part has no such figure."""
        folder = f"devices/virtual/kfd/kfd/proc/{pid}"
        self.write(f"{folder}/vram_{gpu_id}", f"{vram}\n")
        if filled is not None:
            self.write(f"{folder}/stats_{gpu_id}/cu_occupancy", f"{filled}\n")


def mi250x(root: Path, first: State | None = None, second: State | None = None) -> Tree:
    """One package, two dies: the first reports power and energy for both, the second zeros."""
    tree = Tree(root)
    states = (
        first or State(),
        second or State(power_w=0, energy_j=0.0, gpu=0, memory=0, clock=800),
    )
    for place, (address, state) in enumerate(zip((FIRST, SECOND), states, strict=True)):
        folder = tree.pci(
            address, "AMD INSTINCT MI250X", "0x7408", ((67000000000, 11534336)[place], VRAM_MI250X)
        )
        tree.write(f"{folder}/gpu_metrics", table("1.3", state))
        tree.write(f"{folder}/gpu_busy_percent", f"{state.gpu}\n")
        tree.write(f"{folder}/mem_busy_percent", f"{state.memory}\n")
        tree.shown_clocks(folder, state.clock, 1600)
        watts, cap = (324_000_000, 560_000_000) if place == 0 else (0, 0)
        tree.hwmon(
            folder,
            power1_average=watts,
            power1_cap=cap,
            power1_cap_min=cap and 100_000_000,
            power1_cap_max=cap,
            freq1_input=state.clock * 1_000_000,
            freq2_input=1_600_000_000,
        )
        tree.node(
            gpu_id=50000 + 111 * place,
            cpu_cores_count=0,
            simd_count=440,
            simd_per_cu=4,
            max_waves_per_simd=8,
            location_id=(0xC1, 0xC6)[place] << 8,
            domain=0,
            drm_render_minor=128 + place,
            num_xcc=1,
            array_count=8,
            simd_arrays_per_engine=1,
            cu_per_simd_array=16,
            gfx_target_version=90010,
            vendor_id=4098,
            device_id=0x7408,
            hive_id=1234567890,
            unique_id=int(f"a1b2c3d4e5f6070{place}", 16),
        )
    return tree


def mi300x(root: Path, version: str = "1.6", mode: str = "SPX", state: State | None = None) -> Tree:
    """One package of eight compute dies, as one device (SPX) or as eight partitions (CPX)."""
    tree = Tree(root)
    parts = {"SPX": 1, "DPX": 2, "QPX": 4, "CPX": 8}[mode]
    shown = state or State(
        power_w=612,
        energy_j=5678.25,
        clock=2100,
        busy=[[100 - 10 * part - one for one in range(8 // parts)] for part in range(parts)],
    )
    folder = tree.pci(FIRST, "AMD Instinct MI300X", "0x74a1", (150000000000, VRAM_MI300X))
    tree.write(f"{folder}/gpu_metrics", table(version, shown))
    tree.shown_clocks(folder, shown.clock, 1300)
    tree.write(f"{folder}/gpu_busy_percent", f"{shown.gpu}\n")
    tree.write(f"{folder}/mem_busy_percent", f"{shown.memory}\n")
    tree.write(f"{folder}/current_compute_partition", mode + "\n")
    tree.write(f"{folder}/current_memory_partition", "NPS1\n")
    tree.hwmon(
        folder,
        power1_input=612_000_000,
        power1_label="PPT",
        power1_cap=750_000_000,
        power1_cap_min=0,
        power1_cap_max=750_000_000,
        freq1_input=2_100_000_000,
    )
    for part in range(parts):
        tree.node(
            gpu_id=60000 + part,
            cpu_cores_count=0,
            simd_count=1216 // parts,
            simd_per_cu=4,
            max_waves_per_simd=8,
            location_id=part << 28 | 0xC1 << 8,
            domain=0,
            drm_render_minor=128 + part,
            num_xcc=8 // parts,
            array_count=32 // parts,
            simd_arrays_per_engine=1,
            cu_per_simd_array=10,
            gfx_target_version=90402,
            vendor_id=4098,
            device_id=0x74A1,
            hive_id=1234567890,
            unique_id=int("a1b2c3d4e5f60700", 16),
        )
    return tree
