"""`doctor` on nodes that the tests do not have: the probe's answer is given, all else is real."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from profharness import cli, layers
from profharness.cli import doctor_checks
from profharness.launchers.local import LocalLauncher
from tests import needs

NODE: dict[str, Any] = {
    "host": "n1",
    "rocm_version": "7.0.1",
    "packages": {"torch": "2.13.0+rocm7.0"},
    "devices": [
        {"index": 0, "kind": "rocm", "name": "AMD Instinct MI210", "memory_bytes": 64 << 30},
        {"index": 0, "kind": "cpu", "name": "EPYC"},
    ],
    "tools": {
        "rocprofv3": {"path": "/opt/rocm/bin/rocprofv3", "version": "1.0.0", "rocm": "7.0.1"}
    },
    "permissions": {
        "files": [
            {
                "path": "/dev/kfd",
                "error": "EACCES",
                "group": "render",
                "gid": 109,
                "mode": "0660",
                "vendor": "",
                "listed": False,
            },
            {
                "path": "/dev/dri/renderD128",
                "error": "",
                "group": "video",
                "gid": 44,
                "mode": "0666",
                "vendor": "0x1002",
                "listed": False,
            },
        ],
        "amdgpu": True,
        "hidden_devices": 0,
        "perf_event_paranoid": 4,
        "perfmon": False,
        "groups": ["users"],
        "user": 1000,
        "user_name": "ada",
    },
}
WHY = (
    "/dev/kfd is there, but this user may not open it: it belongs to the group render (mode "
    "0660), and this user is in users"
)
FIX = "`sudo usermod -aG render ada`, then log in again; on a cluster ask its administrators"


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalLauncher, "capture", lambda *_: json.dumps(NODE).encode())
    monkeypatch.setenv("COLUMNS", "400")


def doctor(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.run_cli(["doctor", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("node")
def test_doctor_says_what_is_closed_to_the_user(capsys: pytest.CaptureFixture[str]) -> None:
    lines = doctor(capsys).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("access"))
    assert lines[start : start + 5] == [
        f"access     kfd             closed   {WHY}",
        " " * 36 + FIX,
        "access     dri/renderD128  open",
        "access     perf_event      closed   perf_event_paranoid is 4",
        " " * 36 + "`sudo sysctl kernel.perf_event_paranoid=2`, or CAP_PERFMON",
    ]
    told = {line.split()[1]: line for line in lines if line.startswith("layer")}
    assert told["torch"] == f"layer      torch           ready    2.13.0+rocm7.0: {WHY}; {FIX}"
    assert (
        told["rocprofv3"]
        == f"layer      rocprofv3       ready    1.0.0: it is here, but {WHY}; {FIX}"
    )
    assert told["rocprof"].endswith(
        "missing  it comes with ROCm's rocprofiler package; here is ROCm 7.0.1; "
        "put ROCm's bin folder on the PATH, or use --profile torch"
    )


@pytest.mark.usefixtures("node")
def test_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(doctor(capsys, "--json"))
    assert {"devices", "layers", "telemetry", "clocks"} <= found.keys()
    assert found["access"] == [
        {"name": "/dev/kfd", "available": False, "why": WHY, "fix": FIX, "group": "render"},
        {"name": "/dev/dri/renderD128", "available": True, "why": "", "fix": "", "group": "video"},
        {
            "name": "perf_event",
            "available": False,
            "why": "perf_event_paranoid is 4",
            "fix": "`sudo sysctl kernel.perf_event_paranoid=2`, or CAP_PERFMON",
            "group": "",
        },
    ]


@pytest.mark.slow
def test_a_layer_is_tried_on_a_tiny_program() -> None:
    needs.packages("torch")
    (layer,) = (layer for layer in layers.members() if layer.name == "torch")
    tried = doctor_checks.tried(layer, sys.executable)
    assert re.fullmatch(r"works: 0 kernels and [1-9]\d* operators recorded", tried)


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_a_trial_that_fails_says_how_to_see_it(tmp_path: Path) -> None:
    (layer,) = (layer for layer in layers.members() if layer.name == "torch")
    broken = tmp_path / "python"
    broken.write_text(
        f'#!/bin/sh\ncase "$1" in */tiny_*) exit 3 ;; esac\nexec {sys.executable} "$@"\n'
    )
    broken.chmod(0o755)
    tried = doctor_checks.tried(layer, str(broken))
    assert tried.startswith("failed: the trial program exited 3; run it by hand: ")
    assert str(broken) in tried
