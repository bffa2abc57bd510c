"""A node that a dry run plans for: which tools it has, by the stand-ins of each release and by the
layers' own words, and what is said of values that are not known.
"""

from __future__ import annotations

import pytest

from profharness import cli, layers
from profharness.errors import UsageError
from profharness.layers import planned_node, releases, rocm_versions
from profharness.layers.contract import Program
from profharness.layers.releases import RELEASES
from profharness.node import devices
from profharness.node.probe import Device, Environment, Permissions, Tool

HERE = Environment(
    host="login1",
    cpus_allowed=(0, 1),
    packages={"torch": "2.9.1"},
    devices=(
        Device(index=0, kind="cuda", architecture="sm_80"),
        Device(index=0, kind="cpu", name="EPYC"),
    ),
    tools={"srun": Tool("/usr/bin/srun", "23.2"), "rocprofv3": Tool("/opt/rocm/bin/rocprofv3")},
    rocm_version="6.3.0",
    permissions=Permissions(amdgpu=True),
)
NAMES = {
    "sdk": "rocprofv3",
    "systems": "rocprof-sys-sample",
    "compute": "rocprof-compute",
}


def there(for_node: str, rocm_version: str = "") -> Environment:
    planned = planned_node.named(for_node, rocm_version)
    assert planned is not None
    return planned_node.facts(planned, HERE)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: releases.text(release.rocm))
def test_a_node_has_the_tools_of_its_release(release: releases.Release) -> None:
    found = there("gfx90a", releases.text(release.rocm))
    for column, name in NAMES.items():
        own = getattr(release, column)
        assert (name in found.tools) == (own > releases.BEFORE), name
        if own > releases.BEFORE:
            tool = rocm_versions.installed(found, Program(name, release.rocm, column))
            assert (tool.own, tool.rocm, tool.found, tool.sure) == (own, release.rocm, True, True)
            assert tool.call == name
    assert ("rocprof" in found.tools) == (release.rocm < (7, 9))
    assert ("omniperf" in found.tools) == (release.rocm < (6, 3))
    assert ("omnitrace-run" in found.tools) == (release.rocm < (6, 3))
    assert found.rocm_version == releases.text(release.rocm)


@pytest.mark.parametrize("architecture", planned_node.architectures())
def test_a_node_has_devices_of_its_architecture(architecture: str) -> None:
    found = there(architecture)
    (device,) = found.accelerators
    vendor = devices.table().architectures[architecture].vendor
    assert (device.architecture, device.kind) == (
        architecture,
        "rocm" if vendor == "AMD" else "cuda",
    )
    assert bool(found.rocm_version) == (vendor == "AMD")
    # what it cannot know stays as it is here
    assert (found.host, found.cpus_allowed, found.packages) == ("login1", (0, 1), HERE.packages)
    assert found.tools["srun"] == HERE.tools["srun"]
    assert found.permissions == Permissions()
    tracers = {layer.name for layer in layers.members() if layer.about.programs}
    usable = {layer.name for layer in layers.members() if layer.probe(found).available}
    assert usable & tracers == (tracers - {"rocprof"} if vendor == "AMD" else set())


def test_without_an_architecture_the_devices_are_those_of_this_node() -> None:
    assert there("", "6.4").accelerators == ()  # this one has NVIDIA's alone
    planned = planned_node.named("", "6.4")
    assert planned is not None
    own = (Device(index=0, kind="rocm", architecture="gfx950"),)
    found = planned_node.facts(planned, Environment(devices=own))
    assert (found.devices, found.rocm_version) == (own, "6.4")
    assert planned.about == "this node's devices and the tools of ROCm 6.4"


def test_the_node_is_told_in_words() -> None:
    said = {
        ("gfx90a", "7.2.4"): "another node, with gfx90a (MI210, MI250, MI250X) and the tools of "
        "ROCm 7.2.4",
        ("gfx908", ""): "another node, with gfx908 (MI100) and the tools of ROCm 10.2, the newest "
        "known",
        ("sm_75", ""): "another node, with sm_75 (T4) and no tools of ROCm",
    }
    for (architecture, release), words in said.items():
        planned = planned_node.named(architecture, release)
        assert planned is not None
        assert planned.about == words
    assert planned_node.named("", "") is None


@pytest.mark.parametrize(
    ("version", "own"),
    [("6.2.4", (0, 4, 0)), ("7.2.3", (1, 1, 0)), ("7.2.4", (1, 3, 0)), ("7.10", (1, 0, 0))],
)
def test_a_third_number_counts_where_the_tools_differ_by_it(
    version: str, own: tuple[int, ...]
) -> None:
    tool = rocm_versions.installed(there("gfx942", version), Program("rocprofv3", (6, 2), "sdk"))
    assert tool.own == own


@pytest.mark.parametrize("version", ["8.0", "5.6", "7.3", "6.5.0", "10.3", "6", "rocm6.4", "6.4 "])
def test_a_release_that_never_was_is_refused(version: str) -> None:
    with pytest.raises(UsageError) as caught:
        planned_node.named("gfx90a", version)
    assert caught.value.message == f"--rocm-version: there is no known release {version!r}"
    assert "5.7, 6.0, 6.1, 6.2, 6.3, 6.4, 7.0" in caught.value.hint
    assert "7.2.4" in caught.value.hint


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--for-node", "gfx90b", "--dry-run"), 2, "known are gfx908, gfx90a, gfx942"),
        (("--for-node", "sm_90", "--rocm-version", "6.4", "--dry-run"), 2, "ROCm is for AMD's"),
        (("--for-node", "gfx90a"), 2, "add --dry-run"),
        (("--rocm-version", "6.4"), 2, "add --dry-run"),
        (("--rocm-version", "6.4", "--dry-run", "--resume"), 2, "leave --resume out"),
        (
            ("--rocm-version", "5.7", "--dry-run", "--profile", "rocprofv3"),
            3,
            "not on such a node (it came with ROCm 6.2; there is ROCm 5.7)",
        ),
        (
            ("--for-node", "sm_90", "--dry-run", "--profile", "amd-log"),
            3,
            "no ROCm was found there",
        ),
    ],
)
def test_what_cannot_be_planned_is_told(
    words: tuple[str, ...], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run_cli(["run", *words, "--", "true"]) == status
    out, err = capsys.readouterr()
    assert (out, err.startswith("error: "), said in err) == ("", True, True), err


def test_a_plan_for_another_node(capsys: pytest.CaptureFixture[str]) -> None:
    """Tool versions and counters are those of that node. Its devices take no switch of a container:
    an image that nobody can start is taken for one with a ROCm of its own.
    """
    words = ["run", "--dry-run", "--yes", "--profile", "rocprofv3,rocprof-compute"]
    words += ["--pmc", "FETCH_SIZE,WRITE_SIZE", "--container", "no.sif"]
    plans = {}
    for node in (("gfx90a", "6.2"), ("gfx942", "10.2")):
        line = [*words, "--for-node", node[0], "--rocm-version", node[1], "--", "python", "t.py"]
        assert cli.run_cli(line) == 0
        plans[node[0]] = capsys.readouterr().out
    assert plans["gfx90a"].startswith(
        "planned for     another node, with gfx90a (MI210, MI250, MI250X) and the tools of ROCm 6.2"
    )
    assert all("apptainer exec --bind " in plan for plan in plans.values())
    assert "--output-format csv json" in plans["gfx90a"]
    assert "omniperf profile" in plans["gfx90a"]
    assert "omniperf analyze" in plans["gfx90a"]
    assert "--output-format rocpd" in plans["gfx942"]
    assert "rocprof-compute profile" in plans["gfx942"]
    # what is written takes a fifth counter of a block of four on gfx942
    assert "pass rocprofv3-pmc1" in plans["gfx90a"]
    assert ("rocprofv3-pmc2" in plans["gfx90a"], "rocprofv3-pmc2" in plans["gfx942"]) == (
        False,
        True,
    )
    assert "no AMD device is seen" not in plans["gfx90a"]
    assert "not on this node" not in plans["gfx90a"]
