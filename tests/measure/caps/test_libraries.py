"""Scans of power caps by the vendors' packages, of which stand-ins are on the path."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import started
from tests.conftest import ROOT
from tests.measure.caps.emulated_caps import Node
from tests.telemetry.running import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the packages let root alone set a cap")
OFF = ("--telemetry", "off")
SAY = "import sys; print('cap', open(sys.argv[1]).read())"


def environment(node: Node, limit: Path, **more: str) -> dict[str, str]:
    """A node whose driver has no file for the cap, with both packages."""
    fakes = ROOT / "tests" / "fakes"
    path = (str(fakes / "stand_in_pynvml"), str(fakes / "stand_in_amdsmi"))
    return {
        **node.env,
        "PYTHONPATH": os.pathsep.join(path),
        "STAND_IN_NVML_LIMIT": str(limit),
        "STAND_IN_AMDSMI_CAP": str(limit),
        **more,
    }


@pytest.fixture
def node(tmp_path: Path) -> Node:
    one = Node(tmp_path)
    one.cap_file.unlink()
    return one


@pytest.fixture
def limit(tmp_path: Path) -> Path:
    path = tmp_path / "limit"
    path.write_text("560000000")
    return path


def said(root: Path, cap: int) -> str:
    return (root / f"points/bare/power-cap{cap}/stdout.log").read_text().strip()


def test_amdsmi_where_the_driver_has_no_file(node: Node, limit: Path, tmp_path: Path) -> None:
    env = environment(node, limit, STAND_IN_NVML="driver")
    words = ("-o", tmp_path / "run", *OFF, "--scan", "power-cap=200,300", "--repeats", "1", "--")
    ran = started.run("run", *words, "python3", "-c", SAY, limit, env=env, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "AMD GPU by amdsmi, now 560 W" in " ".join(ran.stderr.split())
    assert said(tmp_path / "run", 200) == "cap 200000000"
    assert said(tmp_path / "run", 300) == "cap 300000000"
    assert limit.read_text() == "560000000"
    assert not node.file.exists()


def test_nvml(node: Node, limit: Path, tmp_path: Path) -> None:
    limit.write_text("700000")
    env = environment(node, limit, STAND_IN_AMDSMI="library")
    words = ("-o", tmp_path / "run", *OFF, "--scan", "power-cap=350", "--repeats", "1", "--")
    ran = started.run("run", *words, "python3", "-c", SAY, limit, env=env, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "NVIDIA H100 80GB HBM3 by nvml, now 700 W" in " ".join(ran.stderr.split())
    assert said(tmp_path / "run", 350) == "cap 350000"
    assert limit.read_text() == "700000"


def test_nvml_sets_it_again_after_a_kill(node: Node, limit: Path, tmp_path: Path) -> None:
    limit.write_text("700000")
    words = ("run", "-o", tmp_path / "run", *OFF, "--scan", "power-cap=350", "--", "sleep", "600")
    with subprocess.Popen(
        [sys.executable, "-m", "profharness", *map(str, words)],
        env={**environment(node, limit, STAND_IN_AMDSMI="library")},
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_for((tmp_path / "run/points/bare/power-cap350/stdout.log").exists, "the command")
            assert limit.read_text() == "350000"
        finally:
            process.send_signal(signal.SIGKILL)
    wait_for(lambda: not node.file.exists(), "the sampler")
    assert limit.read_text() == "700000"


def test_a_library_that_forbids_it_is_the_reason(node: Node, limit: Path, tmp_path: Path) -> None:
    """Root may be refused too, in a virtual machine: the points fail by the library's word."""
    limit.write_text("700000")
    env = environment(node, limit, STAND_IN_AMDSMI="library", STAND_IN_NVML="permission")
    words = ("-o", tmp_path / "run", *OFF, "--scan", "power-cap=350", "--json", "--", "true")
    ran = started.run("run", *words, env=env, cwd=tmp_path)
    assert ran.returncode == 1
    (point,) = json.loads(ran.stdout)["points"]
    assert point["error"] == "the power cap of 350 W was not set: Insufficient Permissions"
    assert limit.read_text() == "700000"
    assert not node.file.exists()


def test_a_node_without_any_says_what_each_way_answered(
    node: Node, limit: Path, tmp_path: Path
) -> None:
    env = environment(node, limit, STAND_IN_AMDSMI="secondary", STAND_IN_NVML="driver")
    words = ("-o", tmp_path / "run", "--scan", "power-cap=350", "--", "true")
    ran = started.run("run", *words, env=env, cwd=tmp_path)
    assert ran.returncode == 3
    text = " ".join(ran.stderr.split())
    assert "hwmon: it has no device with a power cap" in text
    assert "amdsmi: it has no device with a power cap" in text
    assert "nvml: NVML Shared Library Not Found" in text
    assert not (tmp_path / "run").exists()
