from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.kernels.slots import Shapes, slots, waves_per_workgroup
from profharness.node.devices import table
from profharness.trace.columns.table import NULL

NAMES = tuple(name for name, known in table().architectures.items() if known.limits)


def limits(name):
    return table().architectures[name].limits


def held(name, threads, vgpr=8, accum=0, sgpr=16, lds=0):
    shapes = Shapes(*(np.array([value], np.int64) for value in (threads, vgpr, accum, sgpr, lds)))
    return int(slots(limits(name), shapes)[0])


# worked out by hand from the rules: waves per SIMD x 4 SIMDs / waves of a workgroup, LDS /
# granules, 16 barriers
@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        # 256 work-items are 4 waves; nothing else limits: 8 (10) waves on each SIMD
        ("gfx90a", {"threads": 256}, 8),
        ("gfx908", {"threads": 256}, 10),
        ("gfx942", {"threads": 1024}, 2),
        # RDNA: waves of 32, two SIMDs of 16 waves; registers in granules of 24 or 16
        ("gfx1100", {"threads": 256, "vgpr": 96}, 4),
        ("gfx1201", {"threads": 256, "vgpr": 97}, 3),
        ("gfx1030", {"threads": 256, "vgpr": 128}, 2),
        ("gfx1151", {"threads": 256, "lds": 32768}, 2),
        # single waves need no barrier: every wave slot; two waves and more are held to 16
        # workgroups
        ("gfx90a", {"threads": 64}, 32),
        ("gfx908", {"threads": 64}, 40),
        ("gfx90a", {"threads": 128}, 16),
        ("gfx908", {"threads": 65}, 16),
        # 128 architectural registers: 512 / 128 = 4 waves; with 4 of accumulation 132 -> 136: 3
        # waves
        ("gfx90a", {"threads": 256, "vgpr": 128}, 4),
        ("gfx90a", {"threads": 256, "vgpr": 128, "accum": 4}, 3),
        # 9 architectural are aligned to 12, with 32 of accumulation 44, in granules of 8: 48 -> 10
        # waves, 8 at most
        ("gfx90a", {"threads": 256, "vgpr": 9, "accum": 32}, 8),
        ("gfx90a", {"threads": 256, "vgpr": 61, "accum": 1}, 7),
        # on gfx908 the files are apart: the larger one counts, in granules of 4; 40 -> 256 / 40 = 6
        ("gfx908", {"threads": 256, "vgpr": 40, "accum": 16}, 6),
        ("gfx908", {"threads": 256, "vgpr": 9, "accum": 32}, 8),
        ("gfx908", {"threads": 256, "vgpr": 24}, 10),
        ("gfx908", {"threads": 256, "vgpr": 25}, 9),
        # the largest kernels: one wave per SIMD, so that three waves leave no room for another
        # three
        ("gfx942", {"threads": 256, "vgpr": 256, "accum": 256}, 1),
        ("gfx942", {"threads": 192, "vgpr": 256, "accum": 256}, 1),
        ("gfx942", {"threads": 128, "vgpr": 256, "accum": 256}, 2),
        ("gfx942", {"threads": 64, "vgpr": 256, "accum": 256}, 4),
        # scalar registers in granules of 16 out of 800: 112 -> 7 waves, 96 -> 8, on gfx908 80 -> 10
        # and 96 -> 8
        ("gfx90a", {"threads": 256, "sgpr": 112}, 7),
        ("gfx90a", {"threads": 256, "sgpr": 96}, 8),
        ("gfx908", {"threads": 256, "sgpr": 81}, 8),
        # LDS in granules of 512 B: 65536 / 16896 = 3; gfx950 has 160 KiB in granules of 1280 B
        ("gfx90a", {"threads": 256, "lds": 16385}, 3),
        ("gfx90a", {"threads": 256, "lds": 65536}, 1),
        ("gfx950", {"threads": 256, "lds": 65536}, 2),
        ("gfx950", {"threads": 256, "lds": 163840}, 1),
        ("gfx942", {"threads": 64, "lds": 1}, 32),
        ("gfx942", {"threads": 64, "lds": 4096}, 16),
        # 5 waves of 8 per SIMD: 32 places, 6 workgroups
        ("gfx942", {"threads": 320}, 6),
        # NVIDIA: 64 warps of 32; 32 blocks
        ("sm_80", {"threads": 256}, 8),
        ("sm_80", {"threads": 32}, 32),
        ("sm_75", {"threads": 256}, 4),
        ("sm_86", {"threads": 32}, 16),
        ("sm_89", {"threads": 64}, 24),
        # registers per warp in granules of 256: 33 x 32 = 1056 -> 1280; 16384 / 1280 = 12 warps per
        # part, 48 in all, 6 blocks of 8
        ("sm_80", {"threads": 256, "vgpr": 33}, 6),
        ("sm_90", {"threads": 128, "vgpr": 255}, 2),
        ("sm_80", {"threads": 384, "vgpr": 168}, 1),
        # shared memory with 1 KiB reserved per block: 167936 / (49152 + 1024) = 3; none is reserved
        # on sm_70
        ("sm_80", {"threads": 128, "lds": 49152}, 3),
        ("sm_70", {"threads": 128, "lds": 49152}, 2),
        ("sm_90", {"threads": 128, "lds": 231424}, 1),
    ],
)
def test_cases_worked_out_by_hand(name, shape, expected):
    assert held(name, **shape) == expected


@pytest.mark.parametrize(
    "shape",
    [
        {"threads": NULL},
        {"threads": 256, "vgpr": NULL},
        {"threads": 256, "accum": NULL},
        {"threads": 256, "sgpr": NULL},
        {"threads": 256, "lds": NULL},
        {"threads": 256, "lds": 65537},
        {"threads": 256, "vgpr": 600},
    ],
)
def test_what_is_not_recorded_or_cannot_have_run_is_not_known(shape):
    assert held("gfx90a", **shape) == NULL


def test_nvidia_needs_no_accumulation_and_scalar_registers():
    assert held("sm_80", 256, accum=NULL, sgpr=NULL) == 8
    assert held("sm_80", 256, vgpr=NULL) == NULL


RESOURCES = st.tuples(
    st.integers(1, 1024),
    st.integers(0, 256),
    st.integers(0, 256),
    st.integers(0, 112),
    st.integers(0, 65536),
)


@given(st.sampled_from(NAMES), st.lists(RESOURCES, min_size=1, max_size=20))
def test_arrays_say_what_single_kernels_say_and_what_fits(name, shapes):
    columns = Shapes(*(np.array(column, np.int64) for column in zip(*shapes, strict=True)))
    found = slots(limits(name), columns)
    assert found.tolist() == [held(name, *shape) for shape in shapes]
    waves = waves_per_workgroup(limits(name), columns.threads)
    known = found != NULL
    assert np.all(found[known] * waves[known] <= limits(name).waves)
    whole = limits(name).lds_bytes if name.startswith("gfx") else limits(name).shared_bytes
    assert np.all(found[known] * columns.lds_bytes[known] <= whole)


@given(st.sampled_from(NAMES), RESOURCES, st.integers(0, 4), st.integers(1, 64))
def test_asking_for_more_never_gives_more_places(name, shape, which, more):
    larger = list(shape)
    larger[which] += more
    before, after = held(name, *shape), held(name, *larger)
    # a workgroup of one wave needs no barrier, so that growing from one wave to two is the only
    # jump, and it goes down too
    assert after <= before or before == NULL


def test_waves_of_a_workgroup():
    assert waves_per_workgroup(limits("gfx90a"), np.array([1, 64, 65, 1024])).tolist() == [
        1,
        1,
        2,
        16,
    ]
    assert waves_per_workgroup(limits("sm_80"), np.array([1, 64, 65, 1024])).tolist() == [
        1,
        2,
        3,
        32,
    ]
