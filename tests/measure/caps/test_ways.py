"""Reading and setting caps: an emulated tree, and stand-ins of the vendors' packages; and that
nothing else can be set here.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

from profharness.telemetry.caps import store, ways
from profharness.telemetry.caps.records import Cap
from profharness.telemetry.caps.ways import Amdsmi, ForbiddenHereError, Hwmon, Nvml, set_and_read
from tests.conftest import ROOT
from tests.measure.caps.emulated_caps import KEY, Node
from tests.telemetry.emulated import FIRST, SECOND, mi300x

W = 1_000_000
FAKES = ROOT / "tests" / "fakes"


def stand_in(name: str) -> ModuleType:
    """A copy of its own, which reads its environment anew."""
    folder = {"pynvml": "stand_in_pynvml", "amdsmi": "stand_in_amdsmi"}[name]
    spec = importlib.util.spec_from_file_location(name, FAKES / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_dies_share_the_cap_of_the_one_that_reports(tmp_path: Path) -> None:
    node = Node(tmp_path)
    (found,) = Hwmon(str(node.tree.root)).caps()
    assert found[:6] == ("hwmon", KEY, "AMD INSTINCT MI250X", 560 * W, 100 * W, 560 * W)
    assert [(one.number, one.identity) for one in found.devices] == [(0, FIRST), (1, SECOND)]
    assert found.why_not == ""


def test_partitions_share_the_cap_of_their_device(tmp_path: Path) -> None:
    mi300x(tmp_path, mode="CPX")
    (found,) = Hwmon(str(tmp_path)).caps()
    assert [one.number for one in found.devices] == list(range(8))
    assert len({one.identity for one in found.devices}) == 8


def test_a_cap_is_set_and_read_back(tmp_path: Path) -> None:
    node = Node(tmp_path)
    way = Hwmon(str(node.tree.root))
    set_and_read(way, KEY, 200 * W)
    assert node.watts == 200
    with pytest.raises(KeyError, match="no device"):
        way.write("0000:00:00.0", 200 * W)


def test_a_device_that_keeps_another_cap_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = Hwmon(str(Node(tmp_path).tree.root))
    monkeypatch.setattr(way, "write", lambda *_: None)
    with pytest.raises(OSError, match="keeps 560 W, not 200 W"):
        set_and_read(way, KEY, 200 * W)


def test_a_user_without_permission_is_told_so() -> None:
    """Asked by a process of another user where the tests have root, whom no mode stops."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        node = Node(Path(folder))
        node.cap_file.chmod(0o444)
        told, tells = os.pipe()
        child = os.fork()
        if not child:
            try:
                if os.geteuid() == 0:
                    os.setuid(65534)
                os.write(tells, Hwmon(str(node.tree.root)).caps()[0].why_not.encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        why_not = os.read(told, 4096).decode()
        os.close(told)
        os.close(tells)
        assert why_not == (
            f"this user may not write {node.tree.root}/bus/pci/devices/{FIRST}/hwmon/hwmon3/"
            "power1_cap"
        )


@pytest.fixture
def limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "limit"
    path.write_text("700000")
    monkeypatch.setenv("STAND_IN_NVML_LIMIT", str(path))
    return path


def test_nvml_has_milliwatts(limit: Path) -> None:
    way = Nvml(stand_in("pynvml"), is_root=True)
    (found,) = way.caps()
    assert (found.now_uw, found.low_uw, found.high_uw) == (700 * W, 200 * W, 700 * W)
    assert found.name == "NVIDIA H100 80GB HBM3"
    set_and_read(way, found.key, 300 * W)
    assert limit.read_text() == "300000"


def test_the_error_of_nvml_is_the_reason(limit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_NVML", "permission")
    way = Nvml(stand_in("pynvml"), is_root=True)
    with pytest.raises(Exception, match="Insufficient Permissions"):
        way.write(way.caps()[0].key, 300 * W)
    assert limit.read_text() == "700000"


@pytest.fixture
def cap_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cap"
    path.write_text("560000000")
    monkeypatch.setenv("STAND_IN_AMDSMI_CAP", str(path))
    return path


def test_amdsmi_has_microwatts_and_the_dies_of_the_tree(cap_file: Path, tmp_path: Path) -> None:
    way = Amdsmi(stand_in("amdsmi"), str(Node(tmp_path).tree.root), is_root=True)
    (found,) = way.caps()
    assert (found.key, found.now_uw, found.low_uw) == (KEY, 560 * W, 100 * W)
    assert [one.number for one in found.devices] == [0, 1]
    set_and_read(way, KEY, 200 * W)
    assert cap_file.read_text() == "200000000"


def test_a_die_without_a_cap_of_its_own_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_AMDSMI", "secondary")
    assert Amdsmi(stand_in("amdsmi"), str(tmp_path), is_root=True).caps() == ()


def test_a_vendors_package_wants_root(cap_file: Path, limit: Path, tmp_path: Path) -> None:
    found: list[Cap] = [
        *Nvml(stand_in("pynvml"), is_root=False).caps(),
        *Amdsmi(stand_in("amdsmi"), str(tmp_path), is_root=False).caps(),
    ]
    assert {one.why_not for one in found} == {"root alone may set it"}


class TestNothingElseCanBeSetHere:
    """What keeps every test from a real device: the switch that tests/conftest.py sets."""

    def test_the_switch_is_on(self) -> None:
        assert os.environ["PROFHARNESS_POWER_CAPS"] == "emulated"
        assert store.folder() == os.environ["PROFHARNESS_POWER_CAPS_DIR"]

    def test_not_below_sys(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        node = Node(tmp_path)
        way, opened = Hwmon(str(node.tree.root)), []
        monkeypatch.setattr(ways.os, "open", lambda *words: opened.append(words))
        monkeypatch.setattr(ways.os.path, "realpath", lambda _: "/sys/devices/power1_cap")
        with pytest.raises(ForbiddenHereError, match="emulated forbids"):
            way.write(KEY, 200 * W)
        assert not opened

    def test_not_by_a_real_library(self, limit: Path, cap_file: Path, tmp_path: Path) -> None:
        nvml, amdsmi = stand_in("pynvml"), stand_in("amdsmi")
        del nvml.STAND_IN, amdsmi.STAND_IN
        way = Nvml(nvml, is_root=True)
        with pytest.raises(ForbiddenHereError):
            way.write(way.caps()[0].key, 300 * W)
        with pytest.raises(ForbiddenHereError):
            Amdsmi(amdsmi, str(tmp_path), is_root=True).write(KEY, 300 * W)
        assert (limit.read_text(), cap_file.read_text()) == ("700000", "560000000")

    def test_off_forbids_all(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PROFHARNESS_POWER_CAPS", "off")
        node = Node(tmp_path)
        with pytest.raises(ForbiddenHereError):
            Hwmon(str(node.tree.root)).write(KEY, 200 * W)
        assert node.watts == 560
