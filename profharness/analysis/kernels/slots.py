"""How many workgroups of a kernel one compute unit holds at once, by the rules of its architecture
(docs/metrics.md#occupancy).

AMD (LLVM's AMDGPU backend and the HIP runtime's occupancy query): each SIMD holds as many waves as
its wave slots, its vector and its scalar registers allow; the waves of a workgroup are dealt out
evenly over the SIMDs, the next workgroup going on where the last one stopped, so that all of the
SIMDs' places can be used. LDS is shared by the unit; workgroups of several waves need one of its
barriers each.

NVIDIA (the CUDA occupancy calculator): registers are given out per warp within each of the SM's
four parts, shared memory per block with what the system reserves; blocks and warps are limited by
number.

Everything is an array over kernels (or over distinct shapes); NULL stands for what was not
recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.node.devices import AmdLimits, NvidiaLimits
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64

_NO_LIMIT = np.int64(2**31)


@dataclass(frozen=True, eq=False)
class Shapes:
    """What each kernel asks for: work-items of a workgroup, registers per work-item (scalar: per
    wave), LDS bytes in all.
    """

    threads: I64
    vector_registers: I64
    accum_registers: I64
    scalar_registers: I64
    lds_bytes: I64


def waves_per_workgroup(limits: AmdLimits | NvidiaLimits, threads: I64) -> I64:
    """Waves (warps) of a workgroup of this many work-items."""
    return np.asarray(-(-threads // limits.wave_size))


def slots(limits: AmdLimits | NvidiaLimits, shapes: Shapes) -> I64:
    """Workgroups that one compute unit holds; NULL where the record lacks something, or says what
    cannot have run.
    """
    held = _amd(limits, shapes) if isinstance(limits, AmdLimits) else _nvidia(limits, shapes)
    return np.where((held > 0) & _recorded(limits, shapes), held, NULL)


def _recorded(
    limits: AmdLimits | NvidiaLimits, shapes: Shapes
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    needed = [shapes.vector_registers, shapes.lds_bytes]
    if isinstance(limits, AmdLimits):
        needed += [shapes.accum_registers, shapes.scalar_registers]
    known = shapes.threads > 0
    for column in needed:
        known = known & (column != NULL)
    return known


def _amd(limits: AmdLimits, shapes: Shapes) -> I64:
    waves = np.maximum(waves_per_workgroup(limits, shapes.threads), 1)
    per_simd = np.minimum(limits.waves_per_simd, _waves_by_vector_registers(limits, shapes))
    scalar = _aligned(shapes.scalar_registers, limits.scalar_granule)
    per_simd = np.minimum(per_simd, _share(limits.scalar_registers, scalar))
    by_waves = limits.simds * per_simd // waves
    by_lds = _share(limits.lds_bytes, _aligned(shapes.lds_bytes, limits.lds_granule))
    by_barriers = np.where(waves > 1, limits.multi_wave_workgroups, _NO_LIMIT)
    return np.minimum(np.minimum(by_waves, by_lds), by_barriers)


def _waves_by_vector_registers(limits: AmdLimits, shapes: Shapes) -> I64:
    """Unified files hold the architectural registers, aligned to 4, and the accumulators after
    them; split ones the larger of both.
    """
    arch, accum = np.maximum(shapes.vector_registers, 0), np.maximum(shapes.accum_registers, 0)
    asked = _aligned(arch, 4) + accum if limits.unified else np.maximum(arch, accum)
    return _share(
        limits.vector_registers,
        np.maximum(_aligned(asked, limits.vector_granule), limits.vector_granule),
    )


def _nvidia(limits: NvidiaLimits, shapes: Shapes) -> I64:
    warps = np.maximum(waves_per_workgroup(limits, shapes.threads), 1)
    per_warp = _aligned(
        np.maximum(shapes.vector_registers, 0) * limits.wave_size, limits.register_granule
    )
    by_registers = limits.parts * _share(limits.registers // limits.parts, per_warp) // warps
    by_shared = _share(
        limits.shared_bytes,
        _aligned(np.maximum(shapes.lds_bytes, 0) + limits.shared_reserved, limits.shared_granule),
    )
    return np.minimum(
        np.minimum(by_registers, by_shared), np.minimum(limits.warps // warps, limits.blocks)
    )


def _aligned(value: I64, granule: int) -> I64:
    return np.asarray(-(-value // granule) * granule)


def _share(whole: int, part: I64) -> I64:
    """How often the part fits; without limit where it is nothing."""
    return np.where(part > 0, whole // np.maximum(part, 1), _NO_LIMIT)
