"""Telemetry of emulated hardware in whole runs: `profharness run`, from the option to the
summary.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import started
from tests.telemetry import emulated
from tests.telemetry.running import ROOT, wait_for


def run(folder: Path, sysfs: Path, *options: str, seconds: float = 2.6) -> dict[str, Any]:
    """The summary of a command that sleeps."""
    program = (sys.executable, "-c", f"import time; time.sleep({seconds})")
    started.run(
        *("run", "--quiet", "-o", str(folder), *options, "--", *program),
        cwd=ROOT,
        env={**os.environ, "PROFHARNESS_SYSFS": str(sysfs)},
    ).check_returncode()
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


@pytest.mark.slow
def test_power_and_idle_of_a_command(tmp_path: Path) -> None:
    still = emulated.State(
        power_w=0, energy_j=0.0, gpu=0, memory=0, stamp_ns=1
    )  # each read of it counts at its own time
    tree = emulated.mi250x(tmp_path / "sys", second=still)
    tree.process(99, 50000, 44)
    path = tree.root / f"devices/pci0000:c0/{emulated.FIRST}/gpu_metrics"
    truth = tmp_path / "truth"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.telemetry.animator", str(path), str(truth)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
    ) as animator:
        wait_for(truth.exists, "the animator")
        summary = run(tmp_path / "run", tree.root, "--idle-seconds", "1", "--telemetry-hz", "20")
        animator.communicate()
    metrics = summary["metrics"]
    # a square wave between 200 W and 400 W, at rest and at work alike
    assert metrics["power_w"]["value"] == pytest.approx(303, rel=0.1)
    assert metrics["power_w"]["low"] < metrics["power_w"]["value"] < metrics["power_w"]["high"]
    assert "1 of 2 active" in metrics["power_w"]["note"]
    assert metrics["power_idle"]["value"] == pytest.approx(303, rel=0.2)
    assert metrics["energy"]["value"] > 2.6 * 200
    assert (metrics["gpu_percent"]["value"], metrics["gpu_percent_1"]["value"]) == (100, 0)
    assert metrics["wave_fill"]["value"] == pytest.approx(0.4)
    assert {row["metric"] for row in summary["telemetry"]} >= {
        "power_w",
        "clock_gpu",
        "gpu_memory_used",
    }


@pytest.mark.slow
def test_a_source_asked_for_by_name_that_gives_nothing_is_a_finding(tmp_path: Path) -> None:
    summary = run(tmp_path / "run", tmp_path / "nowhere", "--telemetry", "amd", seconds=0.2)
    assert [
        one["message"].partition(" on ")[0]
        for one in summary["findings"]
        if one["id"] == "sampler-gaps"
    ] == ["--telemetry amd gives nothing"]


@pytest.mark.slow
def test_a_process_of_somebody_else_on_the_device_is_a_finding(tmp_path: Path) -> None:
    """The workload's own process and its child are on one die, and this one, which no root names,
    is beside them.
    """
    tree = emulated.mi250x(
        tmp_path / "sys",
        emulated.State(stamp_ns=1),
        emulated.State(power_w=0, energy_j=0.0, gpu=0, stamp_ns=1),
    )
    tree.process(os.getpid(), 50000, 22)
    code = (
        "import os, subprocess, sys, time\n"
        f"folder = {str(tmp_path / 'sys/devices/virtual/kfd/kfd/proc')!r}\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(2.4)'])\n"
        "for pid in (os.getpid(), child.pid):\n"
        "    os.makedirs(f'{folder}/{pid}/stats_50000')\n"
        "    for name, text in (('stats_50000/cu_occupancy', '11'), ('vram_50000', '4096')): "
        "open(f'{folder}/{pid}/{name}', 'w').write(text)\n"
        "child.wait()"
    )
    started.run(
        *("run", "--quiet", "-o", str(tmp_path / "run"), "--", sys.executable, "-c", code),
        cwd=ROOT,
        env={**os.environ, "PROFHARNESS_SYSFS": str(tree.root)},
    ).check_returncode()
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    (found,) = [one for one in summary["findings"] if one["id"] == "device-shared"]
    assert found["figures"]["other_processes"] == pytest.approx(1, abs=0.2)
    assert max(row["high"] for row in summary["telemetry"] if row["metric"] == "gpu_processes") == 3
    assert (
        "shared, not attributable to one; other processes used it too"
        in summary["metrics"]["power_w"]["note"]
    )
