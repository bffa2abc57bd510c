"""What a killed process left outside of a run is found by its name, and by nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from profharness.launchers.wrappers import wrappers_dir

MADE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from profharness_workloads.shared import leftovers
os.mkdir(os.path.join(sys.argv[2], leftovers.marked("serve") + "folder"))
open(os.path.join(sys.argv[2], leftovers.marked("in", "_") + "0"), "w").close()
kept = os.path.join(sys.argv[2], leftovers.marked("serve") + "failed")
os.mkdir(kept)
open(os.path.join(kept, leftovers.KEPT), "w").close()
print(leftovers.sweep(sys.argv[2]), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]  of a module off the path
    monkeypatch.syspath_prepend(str(wrappers_dir()))
    from profharness_workloads.shared import leftovers

    return leftovers


def test_only_what_a_killed_process_of_ours_left_is_swept(  # type: ignore[no-untyped-def]  its fixture
    tmp_path: Path, sweep, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [sys.executable, "-S", "-c", MADE, str(wrappers_dir()), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-9, "[]\n"), done.stderr  # its own while it ran
    made = {path.name for path in tmp_path.iterdir()}
    assert len(made) == 3
    live = tmp_path / (sweep.marked("in", "_") + "0")
    own, start = os.getpid(), sweep._start(os.getpid())
    others = [
        tmp_path / f"profharness_in_p{own}n{sweep._namespace() + 1}s1_0",  # of another container
        tmp_path / "profharness-tests-4194303.lock",
        tmp_path / "somebody-p4194303n1s1-else",
    ]
    again = tmp_path / f"profharness_in_p{own}n{sweep._namespace()}s{int(start) + 1}_0"
    for path in (live, again, *others):
        path.touch()
    removed = sweep.sweep(str(tmp_path))
    (kept,) = [name for name in made if name.endswith("failed")]
    assert {Path(path).name for path in removed} == {*made, again.name} - {kept}
    assert {path.name for path in tmp_path.iterdir()} == {kept, live.name} | {
        path.name for path in others
    }
    said = capfd.readouterr().err
    assert said.startswith("profharness: removed what a killed process left: ")
    assert again.name in said


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path, sweep) -> None:  # type: ignore[no-untyped-def]  its fixture
    assert sweep.sweep(str(tmp_path / "none")) == []
