from __future__ import annotations

import os
from pathlib import Path

import pytest

from profharness.rundir import spill


def test_only_a_working_directory_that_will_not_do_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    assert spill.folder(run, tmp_path) is None
    assert spill.folder(run, Path("/")) == run / "control" / "spill"
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    assert spill.folder(run, tmp_path) == run / "control" / "spill"
