"""`profharness validate` as a user runs it: what it prints and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.readers.perfetto.test_check import sample, stray_begin


def test_validate_prints_what_it_holds_and_its_faults(tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    path.write_bytes(sample().SerializeToString())
    fine = subprocess.run(
        [sys.executable, "-m", "profharness", "validate", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert fine.returncode == 0
    assert "2 GPU events, 2 slices" in fine.stdout
    assert "no faults" in fine.stdout
    broken = sample()
    stray_begin(broken)
    path.write_bytes(broken.SerializeToString())
    found = subprocess.run(
        [sys.executable, "-m", "profharness", "validate", "--json", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1
    assert [fault["rule"] for fault in json.loads(found.stdout)["faults"]] == ["begin-without-end"]
    path.write_text("{}")
    assert (
        subprocess.run(
            [sys.executable, "-m", "profharness", "validate", str(path)],
            capture_output=True,
            check=False,
        ).returncode
        == 4
    )
