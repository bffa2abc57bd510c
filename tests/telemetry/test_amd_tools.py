"""The vendor's own tools over the same emulated trees: Debian's rocm-smi, and four versions of the
package amdsmi over a stand-in library.

`python tests/tools/get_amd_tools.py` fetches them; without them, and without namespaces, the tests
skip with the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profharness.telemetry.sources import Source, Target, open_families
from profharness.telemetry.sources.amd.smi import AmdsmiSource
from tests.telemetry import emulated, namespace
from tests.telemetry.emulated import FIRST, SECOND, State, Tree
from tests.telemetry.reading import read
from tests.telemetry.running import ROOT
from tests.telemetry.sources.test_amd import opened
from tests.tools.get_amd_tools import DEFAULT, WHEELS, rocm_smi, wheel_folder

TREES = ("mi250x", "SPX", "CPX")
# The library of this rocm-smi knows tables up to v1.3 and aborts on newer ones: of newer parts it
# is asked only for what lies in other files.
ANY_PART = ("--showclocks", "--showmeminfo", "vram", "--showmaxpower", "--showbus", "--json")
TWO_DIES = (
    "--showuse",
    "--showmemuse",
    "--showpower",
    "--showtemp",
    "--showenergycounter",
    *ANY_PART,
)


def tree_of(kind: str, root: Path) -> Tree:
    return emulated.mi250x(root) if kind == "mi250x" else emulated.mi300x(root, "1.6", kind)


def ours(tree: Tree) -> dict[tuple[str, str], float]:
    return read(opened(tree.root)[0])


# ---------------------------------------------------------------- rocm-smi 5.2.3, the real program
# and its real library


def asked(tree: Tree, folder: Path, *options: str) -> str:
    """What rocm-smi prints over the tree."""
    program = rocm_smi(DEFAULT)
    if not program.is_file():
        pytest.skip("needs rocm-smi: python tests/tools/get_amd_tools.py")
    if why := namespace.why_not():
        pytest.skip(why)
    done = subprocess.run(
        namespace.wrapped(tree, folder, sys.executable, program, *options),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


def cards(printed: str) -> dict[str, dict[str, str]]:
    """What the JSON says of each card, by PCI address."""
    line = next(line for line in printed.splitlines() if line.startswith("{"))
    return {card["PCI Bus"].lower(): card for card in json.loads(line).values()}


def concise(printed: str) -> list[tuple[float, float]]:
    """Temperature at the edge and GPU % of each card, from the table that it prints without
    options.
    """
    rows = (line.split() for line in printed.splitlines())
    return [
        (float(row[1].removesuffix("c")), float(row[-1].removesuffix("%")))
        for row in rows
        if row and row[0].isdigit()
    ]


def megahertz(text: str) -> float:
    return float(text.strip("()").removesuffix("Mhz"))


@pytest.mark.parametrize("kind", TREES)
def test_rocm_smi_reads_the_same_field_by_field(tmp_path: Path, kind: str) -> None:
    tree = tree_of(kind, tmp_path / "tree")
    theirs, own = cards(asked(tree, tmp_path / "sys", *ANY_PART)), ours(tree)
    assert set(theirs) == ({FIRST, SECOND} if kind == "mi250x" else {FIRST})
    table = concise(asked(tree, tmp_path / "again"))
    for (address, card), (edge, busy) in zip(theirs.items(), table, strict=True):
        mine = {
            metric: value
            for (identity, metric), value in own.items()
            if identity in (address, f"{address}/0")
        }
        assert mine["gpu_memory_total"] == float(card["VRAM Total Memory (B)"])
        assert mine["gpu_memory_used"] == float(card["VRAM Total Used Memory (B)"])
        assert mine["clock_gpu"] == megahertz(card["sclk clock speed:"])
        assert mine["clock_memory"] == megahertz(card["mclk clock speed:"])
        assert float(card["Max Graphics Package Power (W)"]) == pytest.approx(
            mine.get("power_limit", 0.0)
        )
        assert mine["temperature_edge"] == pytest.approx(edge)
        if kind == "CPX":
            # the driver has one figure for the card, and one for each partition, which is what we
            # give
            assert busy == 100
            assert [own[f"{FIRST}/{part}", "gpu_percent"] for part in range(8)] == [
                100,
                90,
                80,
                70,
                60,
                50,
                40,
                30,
            ]
        else:
            assert mine["gpu_percent"] == busy


def test_rocm_smi_reads_the_same_power_energy_and_temperatures_of_two_dies(tmp_path: Path) -> None:
    tree = emulated.mi250x(tmp_path / "tree")
    theirs, own = cards(asked(tree, tmp_path / "sys", *TWO_DIES)), ours(tree)
    assert (
        float(theirs[FIRST]["Average Graphics Package Power (W)"]) == own[FIRST, "power_w"] == 324
    )
    assert (
        "Average Graphics Package Power (W)" not in theirs[SECOND]
    )  # the other die reports for both: so say we
    assert (SECOND, "power_w") not in own
    assert float(theirs[FIRST]["Energy counter"]) * 2.0**-16 == own[FIRST, "power_energy"]
    # its own joules are counted at 15.3 µJ, not at 2^-16 J
    assert float(theirs[FIRST]["Accumulated Energy (uJ)"]) * 1e-6 == pytest.approx(
        own[FIRST, "power_energy"] * 15.3e-6 * 65536, rel=1e-6
    )
    for address in (FIRST, SECOND):
        for sensor, metric in (
            ("edge", "temperature_edge"),
            ("junction", "temperature_hotspot"),
            ("memory", "temperature_memory"),
        ):
            assert (
                float(theirs[address][f"Temperature (Sensor {sensor}) (C)"]) == own[address, metric]
            )
        assert float(theirs[address]["GPU use (%)"]) == own[address, "gpu_percent"]
        assert float(theirs[address]["GPU memory use (%)"]) == pytest.approx(
            100 * own[address, "memory_activity"]
        )


# ---------------------------------------------------------------- the package amdsmi, over a
# stand-in for its library


def answers(state: State, kind: str, address: str) -> dict[str, Any]:
    """What the library fills in for a device of that state: the names of AMD's header, in the units
    of the driver's table.
    """
    common = {
        "energy_accumulator": state.energy,
        "system_clock_counter": state.stamp,
        "average_gfx_activity": state.gpu,
        "average_umc_activity": state.memory,
    }
    if kind == "mi250x":
        metrics = {
            **common,
            "average_socket_power": state.power_w,
            "current_gfxclk": state.clock,
            "current_gfxclks": [state.clock],
            "current_uclk": 1600,
            "temperature_edge": 51,
            "temperature_hotspot": 58,
            "temperature_mem": 48,
        }
    else:
        clocks = [
            state.clock,
            0xFFFF,
            state.clock,
            0xFFFF,
            state.clock + 8,
            0xFFFF,
            state.clock - 8,
            0xFFFF,
        ]
        metrics = {
            **common,
            "current_socket_power": state.power_w,
            "current_gfxclk": state.clock,
            "current_gfxclks": clocks,
            "current_uclk": 1300,
            "temperature_hotspot": 55,
            "temperature_mem": 40,
        }
    return {
        "amdsmi_get_gpu_metrics_info": metrics,
        "amdsmi_get_gpu_device_bdf": {"as_uint": int(address[5:7], 16) << 8},
    }


def scene(kind: str, root: Path) -> list[dict[str, Any]]:
    """The tree of a part, and what the library says of each of its devices."""
    if kind == "mi250x":
        first, second = State(), State(power_w=0, energy_j=0.0, gpu=0, memory=0, clock=800)
        emulated.mi250x(root, first, second)
        return [answers(first, kind, FIRST), answers(second, kind, SECOND)]
    state = State(
        power_w=612,
        energy_j=5678.25,
        clock=2100,
        gpu=93,
        busy=[[93] * 8] if kind == "SPX" else [[93]] * 8,
    )
    emulated.mi300x(root, "1.6", kind, state)
    return [answers(state, kind, FIRST)] * (1 if kind == "SPX" else 8)


@pytest.fixture
def real_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> str:
    """Put one version of the package before the sampler's child, whose every load of the library
    meets the stand-in.
    """
    version: str = request.param
    folder = wheel_folder(DEFAULT, version)
    if not folder.is_dir():
        pytest.skip(f"needs amdsmi {version}: python tests/tools/get_amd_tools.py")
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import json, os\nfrom tests.fakes.stand_in_libamd_smi import install\n"
        "install(json.loads(os.environ['STAND_IN_DEVICES']))\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(site), str(folder), str(ROOT))))
    monkeypatch.setenv("ROCM_PATH", "/nowhere")
    return version


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("real_package", WHEELS, indirect=True)
def test_the_real_package_reads_the_same_field_by_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_package: str, kind: str
) -> None:
    root = tmp_path / "tree"
    monkeypatch.setenv("STAND_IN_DEVICES", json.dumps(scene(kind, root)))
    sources, missing = open_families(("amdsmi",), Target(0, "", 10.0, str(root)))
    assert not [absent for absent in missing if absent.metric == "amdsmi"], missing
    library = sources[0]
    assert isinstance(library, AmdsmiSource)
    theirs, own = by_field(library, library.first()), read(opened(root)[0])
    library.close()
    compared = {key: own[key] for key in theirs if key in own and key[1] != "stamp"}
    assert not theirs.keys() - own.keys() - spread_over_partitions(library)
    assert {key: theirs[key] for key in compared} == pytest.approx(
        compared, abs=0.5
    )  # we round the mean of the clocks
    named = {metric for _, metric in compared}
    assert {
        "memory_activity",
        "power_w",
        "power_energy",
        "clock_gpu",
        "clock_memory",
        "temperature_hotspot",
        "temperature_memory",
        "gpu_percent",
    } <= named
    assert ("temperature_edge" in named) == (kind == "mi250x")
    assert real_package in WHEELS
    assert [identity for identity, metric in theirs if metric == "power_w"] == [
        FIRST if kind != "CPX" else f"{FIRST}/0"
    ]  # once per package


def spread_over_partitions(library: Source) -> set[tuple[str, str]]:
    """The library repeats what the partitions share (clocks, temperatures) for each; we give it
    once, on the first.
    """
    return {
        (device.identity, column.metric or column.role)
        for device in library.devices[1:]
        for column in library.columns
    }


def by_field(source: Source, row: list[int | float]) -> dict[tuple[str, str], float]:
    return {
        (source.devices[column.device].identity, column.metric or column.role): raw * column.scale
        for column, raw in zip(source.columns, row, strict=True)
    }
