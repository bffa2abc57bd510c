"""Which version of a tool is on a node, and which ROCm release that means."""

from __future__ import annotations

import pytest

from profharness.layers import releases, rocm_versions
from profharness.layers.contract import Program
from profharness.node.probe import Environment, Tool

V3 = Program("rocprofv3", (6, 2), "sdk")
SYS = Program("rocprof-sys-sample", (6, 3), "systems")
COMPUTE = Program("rocprof-compute", (6, 3), "compute")
OMNIPERF = Program("omniperf", (5, 7))


def found(
    program: Program, *, version: str = "", rocm: str = "", node: str = ""
) -> rocm_versions.Installed:
    tools = {program.name: Tool(path=f"/mine/{program.name}", version=version, rocm=rocm)}
    return rocm_versions.installed(Environment(tools=tools, rocm_version=node), program)


@pytest.mark.parametrize(
    ("program", "version", "release"),
    [
        (V3, "0.4.0", "6.2"),
        (V3, "0.5.0", "6.3"),
        (V3, "0.6.0", "6.4"),
        (V3, "1.0.0", "7.0"),
        (V3, "1.1.0", "7.1"),
        (V3, "1.3.0", "7.2"),
        (V3, "1.3.2", "7.14"),
        (V3, "1.3.5", "10.0"),
        (SYS, "1.0.0", "6.4"),
        (SYS, "1.6.0", "7.13"),
        (SYS, "1.10.0", "10.2"),
        (COMPUTE, "3.2.3", "7.0"),
        (COMPUTE, "3.7.0", "7.14"),
        (COMPUTE, "3.10.0", "10.2"),
    ],
)
def test_a_tool_in_no_rocm_folder_tells_its_release_by_its_own_version(
    program: Program, version: str, release: str
) -> None:
    tool = found(program, version=version)
    assert (tool.release, tool.sure, tool.newer) == (release, True, "")
    assert tool.own == releases.parse(version)


@pytest.mark.parametrize(
    ("rocm", "sdk", "systems", "compute"),
    [
        ("6.1.3", (0,), (0,), (0,)),
        ("6.4.1", (0, 6, 0), (1, 0), (3, 1)),
        ("7.1.1", (1, 1, 0), (1, 2), (3, 3)),
        ("7.2.3", (1, 1, 0), (1, 3), (3, 4)),
        ("7.2.4", (1, 3, 0), (1, 3), (3, 4)),
        ("7.10.0", (1, 0, 0), (1, 1), (3, 2)),
        ("7.12.0", (1, 1, 0), (1, 5), (3, 5)),
        ("7.13.0a20260515", (1, 3, 0), (1, 6), (3, 6)),
        ("10.1.0rc0", (1, 3, 5), (1, 9), (3, 9)),
    ],
)
def test_the_release_names_the_versions_of_tools_that_do_not_tell_their_own(
    rocm: str, sdk: releases.Version, systems: releases.Version, compute: releases.Version
) -> None:
    for program, own in ((V3, sdk), (SYS, systems), (COMPUTE, compute)):
        assert found(program, rocm=rocm).own == own
        assert found(program, node=rocm).own == own
    assert found(OMNIPERF, rocm=rocm).own == releases.BEFORE


def test_the_order_of_releases_is_not_the_order_of_features() -> None:
    classic, other = found(V3, rocm="7.2.4"), found(V3, rocm="7.12.0")
    assert classic.rocm < other.rocm
    assert classic.own > other.own


def test_a_tools_own_version_goes_before_that_of_its_folder() -> None:
    tool = found(V3, version="1.3.2", rocm="7.2.3")
    assert (tool.own, tool.release) == ((1, 3, 2), "7.2")


def test_a_tool_that_tells_nothing_is_taken_for_the_oldest_of_its_name() -> None:
    for version in ("", "0.3.0"):
        tool = found(V3, version=version)
        assert (tool.release, tool.sure) == ("6.2", False)
        assert "does not tell its release: planned for ROCm 6.2" in rocm_versions.planned_for(tool)


@pytest.mark.parametrize(
    ("version", "rocm", "said"),
    [
        ("1.9.3", "", "rocprofv3 1.9.3 is newer than the newest known"),
        ("", "11.2.0", "rocprofv3 of ROCm 11.2 is newer than the newest known"),
        ("1.4.0", "10.1.0", ""),
        ("1.4.0", "10.3.0", "rocprofv3 1.4.0 is newer"),
        ("1.3.5", "10.3.0", ""),
        ("1.3.9", "10.2.0", ""),
    ],
)
def test_what_is_newer_than_the_newest_known_is_used_as_that_one_and_said(
    version: str, rocm: str, said: str
) -> None:
    tool = found(V3, version=version, rocm=rocm)
    assert tool.own >= releases.newest_of("sdk")
    note = rocm_versions.planned_for(tool)
    assert note.startswith(said) if said else not note


def test_the_table_grows_with_the_releases_of_each_line() -> None:
    """Each line of releases by itself: the classic one, and that of 7.9 to 10."""
    for line in (
        [one for one in releases.RELEASES if one.rocm < (7, 9)],
        [one for one in releases.RELEASES if one.rocm >= (7, 9)],
    ):
        by_number = sorted(line)
        for column in ("sdk", "systems", "compute"):
            own = [getattr(one, column) for one in by_number]
            assert own == sorted(own)
