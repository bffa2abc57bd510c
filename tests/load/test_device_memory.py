"""Tensors in a GPU's memory, with stand-ins for the vendors' libraries: what the server maps, and
what is said where a library or a device is missing.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.load import running

SOURCE = Path(__file__).parents[1] / "fakes" / "stand_in_device.c"
FILES = {"cuda": "libcudart.so", "hip": "libamdhip64.so"}

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="needs a C compiler for the stand-ins"
)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with one vendor's library each."""
    root = tmp_path_factory.mktemp("device-libraries")
    for vendor, name in FILES.items():
        (root / vendor).mkdir()
        command = ["gcc", "-Wall", "-Werror", "-shared", "-fPIC", f"-DVENDOR={vendor}"]
        subprocess.run([*command, "-o", root / vendor / name, SOURCE], check=True)
    return {vendor: root / vendor for vendor in FILES}


def level(folder: Path, ready: object, vendor: str, **spec: object) -> running.Outcome:
    return running.level(
        folder,
        ready,
        concurrency=2,
        seconds=0.3,
        spec={"protocol": "grpc", "shared_memory": vendor, **spec},
    )


@pytest.mark.parametrize(("vendor", "protocol"), [("cuda", "http"), ("hip", "grpc")])
def test_inputs_lie_in_the_devices_memory(
    tmp_path: Path,
    libraries: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    vendor: str,
    protocol: str,
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries[vendor]))
    monkeypatch.setenv("STAND_IN_DEVICES", "2")
    with running.server(tmp_path, service_ms=2, slots=2) as served:
        done = level(tmp_path, served.ready, vendor, protocol=protocol, device_id=1)
        assert done.result.ok, done.result.error + done.log
        assert done.figures().failed == 0
        assert done.figures().requests > 10
        seen = served.seen()
    assert seen["devices"] == [1]
    assert seen["regions"] == [], "the server lets go of them"
    assert list(Path("/dev/shm").glob(f"stand_in_device_{done.lines[0].pid}_*")) == []


@pytest.mark.parametrize(
    ("vendor", "variables", "words"),
    [
        ("cuda", {"STAND_IN_DEVICES": "0"}, "there is no device 0 here (NVIDIA sees 0)"),
        ("hip", {"STAND_IN_DEVICES": "0"}, "there is no device 0 here (AMD sees 0)"),
        ("hip", {"STAND_IN_FULL": "1"}, "hipMalloc failed (2 out of memory)"),
    ],
)
def test_what_is_missing_is_one_sentence_with_the_way_out(
    tmp_path: Path,
    libraries: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    vendor: str,
    variables: dict[str, str],
    words: str,
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries[vendor]))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with running.server(tmp_path, service_ms=2) as served:
        done = level(tmp_path, served.ready, vendor)
    said = done.log + "".join(line.error for line in done.lines)
    assert words in said.replace("\n", " "), said
    assert "--shared-memory" in said
    assert not any(line.ok for line in done.lines if line.kind == "result")
