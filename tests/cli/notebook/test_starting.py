"""`profharness.run`: a child of the command line, its run, and its errors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import profharness

PYTHON = sys.executable


@pytest.mark.slow
def test_a_command_is_run_and_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code = "import sys; print('hello from it'); sys.exit(3)"
    run = profharness.run([PYTHON, "-c", code], output=tmp_path / "run", telemetry="off")
    assert run.path == tmp_path / "run"
    assert run.exit_status == 3
    assert run.manifest.kind == "command"
    told = capsys.readouterr()
    assert "hello from it" in told.err
    assert not told.out
    assert len(run.points) == 0


@pytest.mark.slow
def test_what_the_command_line_refuses_is_raised(tmp_path: Path, capsys):
    with pytest.raises(profharness.UsageError, match="no scan 'partcilenet'") as told:
        profharness.run("partcilenet", output=tmp_path / "run", quiet=True)
    assert "known scans: particlenet" in told.value.hint
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("")
    with pytest.raises(profharness.UsageError, match="taken"):
        profharness.run([PYTHON, "-c", ""], output=tmp_path / "taken", quiet=True)
    assert capsys.readouterr() == ("", "")


def test_a_wrong_option_is_told_before_anything_starts(monkeypatch):
    monkeypatch.setattr("subprocess.Popen", None)
    with pytest.raises(profharness.UsageError, match="no option 'profil'") as told:
        profharness.run("particlenet", profil="torch")
    assert "'profile'" in told.value.hint
    with pytest.raises(profharness.UsageError, match="empty list"):
        profharness.run([])
