"""What hides devices from a process, against what the runtimes' documents say."""

from __future__ import annotations

import runpy

import pytest

from profharness.launchers.wrappers import wrappers_dir
from profharness.node.masks import MASKS, visible
from profharness.node.probe import Environment
from profharness.rundir.manifest import DeviceRecord

FOUR = tuple(
    DeviceRecord(index=number, kind="rocm", name="MI300X", identity=f"0000:{number}1:00.0")
    for number in range(4)
)
CPU = DeviceRecord(index=0, kind="cpu", name="EPYC")
NVIDIA = tuple(
    DeviceRecord(index=number, kind="cuda", name="H100", identity=f"GPU-{number}abc")
    for number in range(2)
)


def _seen(masks: dict[str, str], devices: tuple[DeviceRecord, ...]) -> list[int] | None:
    found = visible(masks, devices)
    return None if found is None else [device.index for device in found]


@pytest.mark.parametrize(
    ("masks", "expected"),
    [
        ({}, [0, 1, 2, 3]),
        ({"ROCR_VISIBLE_DEVICES": "3"}, [3]),
        ({"HIP_VISIBLE_DEVICES": "2,0"}, [2, 0]),
        ({"CUDA_VISIBLE_DEVICES": "1"}, [1]),
        ({"HIP_VISIBLE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "1"}, [2]),
        ({"HIP_VISIBLE_DEVICES": "", "CUDA_VISIBLE_DEVICES": "1"}, [1]),
        ({"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "1"}, [3]),
        ({"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "2"}, []),
        ({"ROCR_VISIBLE_DEVICES": ""}, []),
        ({"ROCR_VISIBLE_DEVICES": "1,9,2"}, [1]),
        ({"HIP_VISIBLE_DEVICES": "-1"}, []),
        ({"ROCR_VISIBLE_DEVICES": "GPU-f00d"}, None),
    ],
)
def test_amd(masks: dict[str, str], expected: list[int] | None) -> None:
    assert _seen(masks, (*FOUR, CPU)) == expected


@pytest.mark.parametrize(
    ("masks", "expected"),
    [
        ({"CUDA_VISIBLE_DEVICES": "1"}, [1]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-1a"}, [1]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-"}, None),
        ({"CUDA_VISIBLE_DEVICES": "MIG-1abc"}, None),
        ({"ROCR_VISIBLE_DEVICES": "1"}, [0, 1]),
    ],
)
def test_nvidia(masks: dict[str, str], expected: list[int] | None) -> None:
    assert _seen(masks, (*NVIDIA, CPU)) == expected


def test_a_node_is_as_it_is_inside() -> None:
    """A mask that is set in the container alone counts, and one that does not reach it is none."""
    outside = {"ROCR_VISIBLE_DEVICES": "7", "OMP_NUM_THREADS": "4", "SECRET": "x"}
    inside = Environment(host="n", masks={"HIP_VISIBLE_DEVICES": "1"})
    assert inside.node(outside).variables == {"HIP_VISIBLE_DEVICES": "1", "OMP_NUM_THREADS": "4"}
    assert Environment(host="n").node(outside).variables == {
        "ROCR_VISIBLE_DEVICES": "7",
        "OMP_NUM_THREADS": "4",
    }


def test_probe_and_hooks_tell_the_same_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    of_probe = runpy.run_path(str(wrappers_dir() / "probe_devices.py"))
    monkeypatch.syspath_prepend(str(wrappers_dir() / "hooks"))
    of_hooks = runpy.run_path(str(wrappers_dir() / "hooks/profharness_hooks/process.py"))
    assert of_probe["MASKS"] == of_hooks["MASKS"] == MASKS
    variables = {"ROCR_VISIBLE_DEVICES": "", "HOME": "/"}
    for told in (of_probe["masks"], of_hooks["masks"]):
        assert told(variables) == {"ROCR_VISIBLE_DEVICES": ""}
