"""`profharness validate` as a user runs it: what it prints and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from tests import started
from tests.readers.perfetto.test_check import sample, stray_begin


def test_validate_prints_what_it_holds_and_its_faults(tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    path.write_bytes(sample().SerializeToString())
    fine = started.run("validate", str(path))
    assert fine.returncode == 0
    assert "2 GPU events, 2 slices" in fine.stdout
    assert "no faults" in fine.stdout
    broken = sample()
    stray_begin(broken)
    path.write_bytes(broken.SerializeToString())
    found = started.run("validate", "--json", str(path))
    assert found.returncode == 1
    assert [fault["rule"] for fault in json.loads(found.stdout)["faults"]] == ["begin-without-end"]
    path.write_text("{}")
    assert started.run("validate", str(path)).returncode == 4
