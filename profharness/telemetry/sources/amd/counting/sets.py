"""Which counters are read on which architecture: one set that fits a single pass of the hardware.

At once there is room for 8 counters of the shader blocks (SQ), 2 of the graphics block (GRBM) and 4
of the L2 cache (TCC), on gfx90a, gfx942 and gfx950 alike (asked of AMD's aqlprofile of ROCm 7.2).
Only these CDNA parts are here: on RDNA the shader counters have 32 bits and stick after a tenth of
a second. Names are AMD's; event numbers differ by architecture, so counters are found by name.
"""

from __future__ import annotations

from typing import NamedTuple

CYCLES, BUSY = "GRBM_COUNT", "GRBM_GUI_ACTIVE"
GRBM = (CYCLES, BUSY)
SQ = (
    "SQ_BUSY_CU_CYCLES",
    "SQ_WAVE_CYCLES",
    "SQ_VALU_MFMA_BUSY_CYCLES",
    "SQ_ACTIVE_INST_VALU",
    "SQ_ACTIVE_INST_VMEM",
    "SQ_ACTIVE_INST_FLAT",
    "SQ_ACTIVE_INST_LDS",
    "SQ_ACTIVE_INST_SCA",
)
_TCC_90A = ("TCC_EA_RDREQ", "TCC_EA_RDREQ_32B", "TCC_EA_WRREQ", "TCC_EA_WRREQ_64B")
_TCC_942 = ("TCC_EA0_RDREQ", "TCC_EA0_RDREQ_32B", "TCC_BUBBLE", "TCC_EA0_WRREQ")
# the count of 128-byte reads has a name of its own in newer lists; where that is absent, the older
# one counts the same requests
_TCC_950 = (
    "TCC_EA0_RDREQ",
    "TCC_EA0_RDREQ_32B",
    "TCC_EA0_RDREQ_128B",
    "TCC_EA0_WRREQ",
    "TCC_BUBBLE",
)
INSTEAD = {"TCC_BUBBLE": "TCC_EA0_RDREQ_128B"}
"""Counters that are asked for only where the other one is not listed."""
PREFIX = "counter_rate"
"""The metric of a raw counter: `counter_rate:SQ_WAVE_CYCLES`, of a die `counter_rate:GRBM_COUNT:3`.
"""


class CounterSet(NamedTuple):
    """The counters of one architecture by block, those that matter most first."""

    arch: str
    blocks: tuple[tuple[str, ...], ...]

    def columns(self, dies: int) -> tuple[str, ...]:
        """The totals that are kept of one device with so many compute dies: each die's own for
        GRBM, since its clock may differ; the sum over all instances for the other blocks.
        """
        first, *others = self.blocks
        return (
            *(f"{name}:{die}" for name in first for die in range(dies)),
            *(name for block in others for name in block),
        )


SETS = {
    90010: CounterSet("gfx90a", (GRBM, SQ, _TCC_90A)),
    90402: CounterSet("gfx942", (GRBM, SQ, _TCC_942)),
    90500: CounterSet("gfx950", (GRBM, SQ, _TCC_950)),
}
"""By KFD's gfx_target_version."""


def arch_name(version: int) -> str:
    """`gfx942` of 90402, as LLVM names it: major, then minor and stepping as hexadecimal digits."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
