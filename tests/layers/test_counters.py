from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from profharness.errors import UsageError
from profharness.launchers.wrappers import wrappers_dir
from profharness.layers.counters import assumption, groups, load
from tests.layers.places import node

WRAPPERS = wrappers_dir()
INSTINCT = ("gfx908", "gfx90a", "gfx942", "gfx950")
RADEON = ("gfx1030", "gfx1100", "gfx1101", "gfx1102")
ARCHITECTURES = (*INSTINCT, *RADEON)
LIMITS = {
    "SQ": 8,
    "TA": 2,
    "TD": 2,
    "TCP": 4,
    "TCC": 4,
    "CPC": 2,
    "CPF": 2,
    "SPI": 6,
    "GRBM": 2,
    "GDS": 4,
}
RADEON_LIMITS = {
    "SQ": 8,
    "TA": 2,
    "GRBM": 2,
    "CPC": 2,
    "GCEA": 2,
    "TCP": 4,
    "SPI": 6,
    "GL1A": 4,
    "GL1C": 4,
    "GL2A": 4,
    "GL2C": 4,
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_set_fits_one_pass_and_names_what_exists(architecture: str) -> None:
    table = load(WRAPPERS, architecture)
    assert table is not None
    for name, members in table.sets.items():
        assert groups((name,), node("7.0", architecture=architecture), WRAPPERS) == (members,)
        assert all(table.needs(member) for member in members)
    for needs in (*table.derived.values(), *table.accumulated.values()):
        assert set(needs) <= set(table.raw["names"])
    assert not set(table.instead) & {
        *table.derived,
        *table.accumulated,
        *table.raw["names"],
        *table.sets,
    }


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_is_named_as_a_substitute_can_be_asked_for(architecture: str) -> None:
    table = load(WRAPPERS, architecture)
    assert table is not None
    for instead in table.instead.values():
        assert groups(tuple(instead.split()), node("7.0", architecture=architecture), WRAPPERS)


def test_counters_are_split_by_the_limits_of_their_blocks() -> None:
    # 3 + 2 counters of the L2 cache, which has 4
    assert groups(("FETCH_SIZE", "WRITE_SIZE", "GPU_UTIL"), node("7.0"), WRAPPERS) == (
        ("FETCH_SIZE", "GPU_UTIL"),
        ("WRITE_SIZE",),
    )
    # two metrics that sum a level never share
    assert groups(("MeanOccupancyPerCU", "VmemLatency"), node("7.0"), WRAPPERS) == (
        ("MeanOccupancyPerCU",),
        ("VmemLatency",),
    )
    nine = tuple(
        f"SQ_INSTS_VALU_{op}_F{bits}" for bits in (16, 32, 64) for op in ("ADD", "MUL", "FMA")
    )
    assert [len(group) for group in groups(nine, node("7.0"), WRAPPERS)] == [8, 1]
    # a reduction costs what its counter costs
    assert (
        len(
            groups(
                ("TCC_HIT", "TCC_HIT_sum", "TCC_HIT_max", "TCC_HIT[3]", "TCC_MISS_sum"),
                node("7.0"),
                WRAPPERS,
            )
        )
        == 1
    )
    assert groups(("activity", "SQ_WAVES"), node("7.0"), WRAPPERS)[1] == ("SQ_WAVES",)


@pytest.mark.parametrize(
    ("architecture", "name", "hint"),
    [
        ("gfx942", "L2CacheHit", "TCC_HIT_sum TCC_MISS_sum"),
        ("gfx942", "TCC_EA_RDREQ_sum", "TCC_EA0_RDREQ"),
        ("gfx90a", "TCC_EA0_RDREQ", "TCC_EA_RDREQ"),
        ("gfx950", "OccupancyPrecent", "OccupancyPercent"),
        ("gfx908", "MfmaUtil", "activity"),
        ("gfx942", "hello", "activity"),
    ],
)
def test_a_name_of_another_architecture_is_refused_with_the_one_of_this(
    architecture: str, name: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=architecture) as caught:
        groups((name,), node("7.0", architecture=architecture), WRAPPERS)
    assert hint in caught.value.hint


def test_an_architecture_without_a_table_is_left_to_the_tool() -> None:
    assert groups(("WHATEVER",), node("7.0", architecture="gfx1201"), WRAPPERS) == (("WHATEVER",),)
    assert groups(("SQ_WAVES",), node(""), WRAPPERS) == (("SQ_WAVES",),)


def test_tables_are_data_in_toml() -> None:
    files = sorted(Path(WRAPPERS, "counters").glob("*.toml"))
    assert [path.stem for path in files] == sorted(ARCHITECTURES)
    for path in files:
        table = tomllib.loads(path.read_text())
        assert table["architecture"] == path.stem
        assert table["limits"] == (LIMITS if path.stem in INSTINCT else RADEON_LIMITS)
        assert table.get("complete", True) == (path.stem in INSTINCT)


@pytest.mark.parametrize("architecture", RADEON)
def test_radeon_counters_are_split_and_unknown_ones_left_to_the_tool(architecture: str) -> None:
    here = node("7.0", architecture=architecture)
    # 4 + 2 counters of the L2 cache, which has 4; what the table does not hold stands alone
    assert groups(
        ("FETCH_SIZE", "WRITE_SIZE", "VALUBusy", "GPUBusy", "GL2C_HIT_sum"), here, WRAPPERS
    ) == (("FETCH_SIZE", "GPUBusy"), ("WRITE_SIZE", "GL2C_HIT_sum"), ("VALUBusy",))
    assert groups(("TCP_REQ", "TA_TA_BUSY", "SQ_WAVES"), here, WRAPPERS) == (
        ("TCP_REQ", "TA_TA_BUSY", "SQ_WAVES"),
    )
    for name, hint in (
        ("TCC_HIT_sum", "GL2C_HIT"),
        ("MemUnitStalled", "MemUnitBusy"),
        ("OccupancyPrecent", "OccupancyPercent"),
    ):
        with pytest.raises(UsageError, match=architecture) as caught:
            groups((name,), here, WRAPPERS)
        assert hint in caught.value.hint


def test_what_was_assumed_without_a_device_is_said() -> None:
    assert assumption(node("7.0")) == ""
    assert "planned for gfx942" in assumption(node(""))


def test_what_is_of_another_architecture_is_told_with_it() -> None:
    with pytest.raises(UsageError) as caught:
        groups(("MfmaUtil",), node("7.0", architecture="gfx908"), WRAPPERS)
    assert caught.value.message == (
        "--pmc: gfx908 has no counter or set 'MfmaUtil', which is one of gfx90a, gfx942, gfx950"
    )
    assert caught.value.hint.startswith("sets of gfx908: activity")


def test_a_device_without_a_table_has_no_sets() -> None:
    """Its counters are the tool's to judge, but a set's name means nothing to the tool."""
    radeon = node("7.0", architecture="gfx1201")
    with pytest.raises(UsageError) as caught:
        groups(("SQ_WAVES", "activity"), radeon, WRAPPERS)
    assert caught.value.message == (
        "--pmc: activity is a set of counters of gfx1030, gfx1100, gfx1101, gfx1102, gfx908, "
        "gfx90a, gfx942, gfx950, and gfx1201 has no sets"
    )
    assert groups(("SQ_WAVES",), radeon, WRAPPERS) == (("SQ_WAVES",),)
