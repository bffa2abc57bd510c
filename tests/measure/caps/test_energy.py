"""A whole scan on an emulated device that draws what its cap lets it: throughput, energy and what
the caps cost, in JSON, on the terminal and on the page.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import started
from tests.conftest import ROOT
from tests.measure.caps.capped_device import DRAW_W, power_w
from tests.measure.caps.emulated_caps import BEFORE_W, Node

CAPS = (150, 250, 400)
SCRIPT = """
import sys, time
import profharness_mark
from tests.measure.caps.capped_device import speed
cap = int(open(sys.argv[1]).read()) / 1e6
for _ in range(40):
    time.sleep(0.015 / speed(cap))
    profharness_mark.step(items=10)
"""


@pytest.mark.slow
def test_energy_and_cost_of_each_cap(tmp_path: Path) -> None:
    node, root = Node(tmp_path), tmp_path / "run"
    node.script.write_text(SCRIPT)
    env = {**node.env, "PYTHONPATH": str(ROOT)}
    table = node.cap_file.parent.parent.parent / "gpu_metrics"
    device = [sys.executable, "-m", "tests.measure.caps.capped_device", table, node.cap_file]
    with subprocess.Popen(device, stdin=subprocess.PIPE, cwd=ROOT) as capped:
        asked = node.scan(root, ",".join(map(str, CAPS)), "--telemetry-hz", "50", "--json")
        ran = started.run(*asked, env=env)
        capped.communicate()
    assert ran.returncode == 0, ran.stderr
    assert node.watts == BEFORE_W
    (curve,) = json.loads(ran.stdout)["axes"]["caps"]
    assert [point["cap_w"] for point in curve["points"]] == list(CAPS)
    for point in curve["points"]:
        # the clock of a busy machine slows the script, and not the power of the device
        watts = power_w(point["cap_w"])
        assert point["power_w"]["value"] == pytest.approx(watts, rel=0.03)
        joules = point["energy_per_item"]
        truth = watts / point["throughput"]["value"]
        assert joules["low"] <= truth <= joules["high"]
    assert curve["reference_w"] == DRAW_W
    assert 150 < curve["at_w"]["value"] < 400
    assert curve["least_energy_w"] == 150
    said = started.run("saturation", root, env=env).stdout
    assert "What power caps cost and save" in said
    # on a machine that others slow, what it saves may not be proven, and is not claimed then
    proven = curve["saves"]["low"] > 0
    saves = "and saves" if proven else "that it saves energy per item is not proven"
    _, _, sentence = said.partition("costs 5 % of the throughput at 400 W")
    assert sentence.lstrip("; ").startswith(saves)
    page = (root / "report.html").read_text()
    assert "What power caps cost and save" in page
    assert "Energy along the power cap" in page
