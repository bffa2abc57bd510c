"""`profharness replay --pmc` on a node with a stand-in rocprofv3, and a stand-in for the workload's
Python that launches kernels.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.analysis.replay.calls import operator, recorded, relu, written
from tests.conftest import ROOT
from tests.fakes.stand_in_node import Node

WORKER = f"""\
#!{sys.executable}
import json, os, sys, time
if not any(word.endswith("replay_torch.py") for word in sys.argv):
    os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])
sys.path.insert(0, {str(ROOT)!r})
from tests.fakes import stand_in_hip as hip
plan = json.load(open(sys.argv[-1]))
out = open(plan["results"], "a")
def write(**line):
    out.write(json.dumps(line) + "\\n")
    out.flush()
def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
write(kind="hello", torch="9.9", device=plan["device"])
for call in plan["calls"]:
    write(kind="begin", id=call["id"])
    windows = []
    for _ in range(plan["count"]):
        hip.launch("fill")
        time.sleep(0.001)
        start = now()
        hip.launch("kernel_of_" + call["name"][6:])
        time.sleep(0.001)
        windows.append((start, now()))
    if plan["count"]:
        write(kind="result", id=call["id"], windows=windows)
    else:
        write(kind="result", id=call["id"], warm={{"ns": [9e3, 1e4]}}, profiled=[1e4], cold=[2e4])
"""


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path / "node", "7.0")
    python = node.folder / "python"
    python.write_text(WORKER)
    python.chmod(0o755)
    two = recorded([[64, 32], [32, 16]], ["float", "float"], ["", ""], [[32, 1], [16, 1]])
    events = []
    for number, name in enumerate(("aten::mm", "aten::bmm")):
        at, link = 100 * number, {"correlation": number + 1}
        launch = {"cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 1, "tid": 1}
        kernel = {"cat": "kernel", "name": f"k{number}", "pid": 0, "tid": 7}
        events += [
            operator(name, at, 10, **two),
            {"ph": "X", **launch, "ts": at + 5, "dur": 1, "args": link},
            {"ph": "X", **kernel, "ts": at + 20, "dur": 30, "args": {**link, "device": 0}},
        ]
    written(node.folder / "trace.json", *events)
    return node


@pytest.mark.slow
def test_each_call_gets_the_counters_of_its_own_kernels(node):
    words = ("trace.json", "--python", str(node.folder / "python"))
    counters = ("--pmc", "SQ_WAVES,GRBM_COUNT", "--pmc", "SQ_BUSY_CYCLES")
    done = node.profharness("replay", *words, *counters, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["on_device"]
    told = {
        row["name"]: [(one["kernel"], one["counter"], one["dispatches"]) for one in row["counters"]]
        for row in found["rows"]
    }
    assert told == {
        name: [
            (f"kernel_of_{name[6:]}", counter, 3)
            for counter in ("GRBM_COUNT", "SQ_WAVES", "SQ_BUSY_CYCLES")
        ]
        for name in ("aten::bmm", "aten::mm")
    }
    text = node.profharness("replay", *words, "--pmc", "SQ_WAVES").stdout
    assert "row 2, aten::bmm:" in text
    assert "kernel_of_bmm" in text
    assert "fill" not in text


def test_without_the_tool_nothing_is_timed(node):
    words = ("trace.json", "--python", str(node.folder / "python"), "--pmc", "SQ_WAVES")
    done = node.profharness("replay", *words, PATH="/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (3, "")
    assert "rocprofv3" in done.stderr


def test_operators_of_a_cpu_have_no_counters(node):
    written(node.folder / "cpu.json", relu(0, 1))
    done = node.profharness("replay", "cpu.json", "--pmc", "SQ_WAVES")
    assert (done.returncode, done.stdout) == (2, "")
    assert "ran on the CPU" in done.stderr
