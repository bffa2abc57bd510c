"""A process from which devices are hidden numbers them anew; its records are of the node's."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from profharness.rundir.manifest import DeviceRecord, Hello, NodeRecord
from profharness.rundir.paths import RunDir
from profharness.understand.run_parts import keep_in_memory, read_run
from tests.understand.test_run_parts import run_of_files

DEVICES = tuple(
    DeviceRecord(index=number, kind="rocm", name="MI300X", identity=f"0000:{number}1:00.0")
    for number in range(4)
)


def _with(run: RunDir, *masks: dict[str, str], hidden: int = 0) -> None:
    """Each rank has a hello with these variables; the files say nothing of devices but numbers."""
    manifest = run.read_manifest()
    run.write_manifest(
        msgspec.structs.replace(
            manifest,
            nodes=(NodeRecord(host="n0", devices=DEVICES, hidden_devices=hidden),),
            processes=tuple(
                Hello(pid=10 + rank, host="n0", rank=rank, masks=of_rank)
                for rank, of_rank in enumerate(masks)
            ),
            artifacts=tuple(
                msgspec.structs.replace(artifact, host="n0") for artifact in manifest.artifacts
            ),
        )
    )


def _identities(run: RunDir) -> list[str]:
    parts = read_run(run.root, keep_in_memory).parts
    return [device.identity for part in parts for device in part.trace.devices]


@pytest.mark.parametrize(
    ("hidden", "expected"), [(0, ["", "0000:31:00.0", "0000:21:00.0", ""]), (2, ["", "", "", ""])]
)
def test_the_devices_of_each_rank(tmp_path: Path, hidden: int, expected: list[str]) -> None:
    """The first rank sees all, the others one each, the last one by a name that does not tell."""
    run = run_of_files(tmp_path / "run", dict.fromkeys(("0.json", "1.json", "2.json", "3.json"), 1))
    _with(
        run,
        {},
        {"ROCR_VISIBLE_DEVICES": "3"},
        {"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"},
        {"ROCR_VISIBLE_DEVICES": "GPU-f00d"},
        hidden=hidden,
    )
    assert _identities(run) == expected
