"""A ROCm tree whose rocprofiler-sdk and HSA runtime are compiled stand-ins, and what they play."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
GENERATIONS = {  # version: flags of the compiler, number behind .so
    "0.5": (("-DMAJOR=0", "-DMINOR=5"), 0),
    "0.6": (("-DMAJOR=0", "-DMINOR=6"), 0),
    "1.0": (("-DMAJOR=1", "-DMINOR=0"), 1),
    "1.1": (("-DMAJOR=1", "-DMINOR=1"), 1),
    "1.3": (("-DMAJOR=1", "-DMINOR=3", "-DIDS=1"), 1),
    "2.0": (("-DMAJOR=2", "-DMINOR=0"), 1),
}


@dataclass(frozen=True)
class Gpu:
    """What KFD and the library say of a device."""

    gpu_id: int = 60000
    simds: int = 1216
    xccs: int = 8
    target: int = 90402

    @property
    def text(self) -> str:
        return f"{self.gpu_id}:{self.simds}:4:8:{self.xccs}:{self.target}"


MI210 = Gpu(50000, 416, 1, 90010)
MI300X = Gpu()
MI300X_CPX = Gpu(60000, 152, 1)
MI355X = Gpu(70000, 1024, 8, 90500)


@dataclass(frozen=True)
class Load:
    """What the counters show: shares of wall time, and bytes per cycle by requests."""

    busy: float = 1.0
    active: float = 0.38
    occupancy: float = 0.11
    matrix: float = 0.04
    valu: float = 0.21
    vmem: float = 0.06
    flat: float = 0.01
    lds: float = 0.09
    requests: dict[str, float] = field(default_factory=dict)

    def text(self, gpu: Gpu) -> str:
        """In events per cycle of the whole device; 32 waves fit into each compute unit."""
        units = gpu.simds / 4
        shares = {
            "GRBM_GUI_ACTIVE": self.busy,
            "SQ_BUSY_CU_CYCLES": self.active * units,
            "SQ_WAVE_CYCLES": self.occupancy * units * 32 / 4,
            "SQ_VALU_MFMA_BUSY_CYCLES": self.matrix * gpu.simds,
            "SQ_ACTIVE_INST_VALU": self.valu * units,
            "SQ_ACTIVE_INST_VMEM": self.vmem * units,
            "SQ_ACTIVE_INST_FLAT": self.flat * units,
            "SQ_ACTIVE_INST_LDS": self.lds * units,
            **self.requests,
        }
        return " ".join(f"{name}={value:.17g}" for name, value in shares.items())


def rocm_tree(root: Path, version: str = "1.1") -> Path:
    """Compile both libraries into `root`/lib; `root` is the value for ROCM_PATH."""
    flags, number = GENERATIONS[version]
    (root / "lib").mkdir(parents=True, exist_ok=True)
    compiled("stand_in_rocprofiler_sdk.c", root / f"lib/librocprofiler-sdk.so.{number}", *flags)
    compiled("stand_in_hsa.c", root / "lib/libhsa-runtime64.so.1")
    return root


def compiled(source: str, into: Path, *flags: str) -> Path:
    subprocess.run(
        ["gcc", "-Wall", "-Werror", "-shared", "-fPIC", *flags, "-o", into, HERE / source],
        check=True,
    )
    return into


def playing(gpus: tuple[Gpu, ...], load: Load, mode: str = "", **more: str) -> dict[str, str]:
    """The variables by which the libraries know what to play."""
    return {
        "STAND_IN_GPUS": " ".join(gpu.text for gpu in gpus),
        "STAND_IN_SHARES": load.text(gpus[0]),
        "STAND_IN_MODE": mode,
        **more,
    }
