"""What will keep a profiler from recording is told before anything starts: in a plan, at the begin
of a run, and by `doctor`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from profharness import cli, layers
from profharness.cli import doctor_checks
from profharness.errors import Unavailable
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher
from profharness.measure.planning import _torch_of
from profharness.node import probe
from profharness.options.settings import from_mapping
from profharness.rundir.manifest import decode
from tests import started

ATTACHED = {"ROCP_TOOL_LIBRARIES": "/opt/rocm/lib/librocprofiler-sdk-tool.so"}
WARNING = (
    "warning: rocprofv3 is attached to every program that starts here (ROCP_TOOL_LIBRARIES names "
    "librocprofiler-sdk-tool.so): what it costs is in all times that are measured here"
)
SDK = "librocprofiler-sdk.so"
TORCH = "2.13.0+rocm7.2"
# a node whose torch has a copy of the profiler's library, and no device file
NODE: dict[str, Any] = {
    "host": "n1",
    "packages": {"torch": TORCH},
    "rocm_version": "7.2.0",
    "tools": {"rocprofv3": {"path": "/opt/rocm/bin/rocprofv3", "version": "", "rocm": "7.2.0"}},
    "profilers": {
        "torch": {"folder": "/v/torch", "sdk": f"/v/torch/lib/{SDK}", "roctracer": "", "hip": ""},
        "tool_sdk": f"/opt/rocm/lib/{SDK}",
    },
}


@pytest.mark.parametrize(
    ("command", "layer", "expected"),
    [
        (("python3.11", "train.py"), "torch", "yes"),
        (("python3.11", "train.py"), "rocprofv3", "maybe"),
        (("srun", "python", "train.py"), "torch", "maybe"),  # it may start on another node
        (("./train.sh",), "torch", "maybe"),
        (("./train.sh",), "rocprofv3", "no"),
    ],
)
def test_the_probed_torch_is_only_certain_where_the_command_names_its_python(
    command: tuple[str, ...], layer: str, expected: str
) -> None:
    request = from_mapping({"command": command, "profile": layer}, "the command line")
    assert _torch_of(request, None, layers.named((layer,))) == expected


def test_a_plan_says_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--dry-run", "--", "python", "train.py"]
    assert cli.run_cli(["run", "--profile", "torch", *command]) == 0
    assert "attached" not in capsys.readouterr().out
    for name, value in ATTACHED.items():
        monkeypatch.setenv(name, value)
    for words in (["run", "--profile", "torch"], ["wrap", "rocprofv3"]):
        assert cli.run_cli([*words, *command]) == 0
        lines = capsys.readouterr().out.rstrip().splitlines()
        assert lines[-2] == f"# {WARNING}"
        assert lines[-1].startswith("#   start profharness outside of rocprofv3 ")
    # a plan for another node is not about this one
    assert cli.run_cli(["run", "--for-node", "gfx90a", *command]) == 0
    assert "attached" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_says_it_first_and_keeps_it(tmp_path: Path) -> None:
    words = ("run", "--telemetry", "off", "-o")
    # without an interpreter of its own: the warning stands before what the command says
    done = started.run(
        *(*words, "told", "--", "sh", "-c", "echo begun >&2"),
        cwd=tmp_path,
        env={**os.environ, **ATTACHED},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0] == WARNING
    assert lines.index("begun") == 2
    manifest = decode((tmp_path / "told" / "manifest.json").read_bytes(), "manifest")
    (kept,) = manifest.findings
    assert (kept.id, kept.severity) == ("profiler-attached", "warning")
    assert f"warning: {kept.message}" == WARNING
    assert "profiler-attached" in (tmp_path / "told" / "summary.json").read_text()


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    def capture(_: LocalLauncher, command: Command, timeout_s: float) -> bytes:
        if "-c" in command.argv:
            assert command.argv[-1] == "import torch"
            raise Unavailable(f"timed out after {timeout_s} s", "run it by hand to see why")
        return json.dumps(NODE).encode()

    monkeypatch.setattr(LocalLauncher, "capture", capture)
    monkeypatch.setenv("COLUMNS", "400")


@pytest.mark.usefixtures("node")
def test_doctor_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_cli(["doctor"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line[11:16] == "clash"]
    assert lines[0].startswith("warning    clash           found    `import torch` hangs")
    assert "under rocprofv3 a program that imports torch loads rocprofiler-sdk twice" in lines[1]
    assert cli.run_cli(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["clashes"]
    assert [(one["id"], one["severity"]) for one in found] == [
        ("no-device-access", "warning"),
        ("mixed-rocm", "warning"),
    ]
    assert all(one["advice"] for one in found)


@pytest.mark.usefixtures("node")
def test_a_trial_does_not_wait_for_an_import_that_hangs() -> None:
    found = probe.parse(json.dumps(NODE).encode())
    (layer,) = (layer for layer in layers.members() if layer.name == "torch")
    state = doctor_checks._layer_state(layer, found, sys.executable, try_layers=True)
    assert state.tried.startswith("failed: `import torch` hangs on a node without /dev/kfd")
    assert state.tried.endswith("(it was given 60 s)")
