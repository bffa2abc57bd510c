"""The device of a workload where the wanted one is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.stand_in_node import TORCH
from tests.wrappers.control import END, Control, point


def test_a_missing_device_is_refused_or_the_cpu_stands_in(workloads: Path) -> None:
    from profharness_workloads.shared import devices, protocol

    def choose(device: str) -> str:
        if device == "tpu":
            raise protocol.Refusal("no such device")
        if device != "cpu":
            raise protocol.Refusal(f"there is no {device}", "look", protocol.MISSING)
        return device

    assert devices.placed("cpu", choose, allowed=False) == ("cpu", "")
    assert devices.placed("cuda", choose, allowed=True) == (
        "cpu",
        "there is no cuda; ran on the CPU instead",
    )
    with pytest.raises(protocol.Refusal) as refused:
        devices.placed("cuda", choose, allowed=False)
    assert refused.value.hint == "look; --allow-fallback runs on the CPU"
    with pytest.raises(protocol.Refusal) as refused:
        devices.placed("cuda", choose, allowed=False, verb=devices.SERVES)
    assert refused.value.hint == "look; --allow-fallback serves from the CPU"
    # what is no device at all is not missing
    with pytest.raises(protocol.Refusal, match="no such device"):
        devices.placed("tpu", choose, allowed=True)


@pytest.mark.parametrize("allowed", [False, True])
def test_a_scan_of_torch_falls_back_where_it_may(tmp_path: Path, allowed: bool) -> None:
    (tmp_path / "m.pt").touch()
    control = Control(
        tmp_path,
        {
            "backend": "torch",
            "model": str(tmp_path / "m.pt"),
            "shapes": {"x": [4]},
            "device": "cuda",
            "flops_per_item": 1,
            "allow_fallback": allowed,
        },
        fresh=True,
    )
    control.env["PYTHONPATH"] = str(TORCH)
    control.ask(point("b1", 1), END)
    status, said = control.serve("batch/torch_worker.py")
    if allowed:
        assert (status, said) == (0, "")
        (result,) = control.results().values()
        assert (result["ok"], result["device"]) == (True, "cpu")
        assert result["notes"]["fallback"].endswith("sees no GPU; ran on the CPU instead")
    else:
        assert status == 3
        assert "--allow-fallback runs on the CPU" in said
