"""What is said of a target, and which corpora there are; `make fuzz` runs the targets."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fuzz.__main__ import told
from tests.fuzz.targets import TARGETS, write_corpora

SAID = """#2\tINITED cov: 9
#64\tpulse
 === Uncaught Python exception: ===
ValueError: no
Traceback (most recent call last):
  File "/x/profharness/readers/a.py", line 7, in f
  File "/usr/lib/json.py", line 9, in g
Test unit written to /keep/crash-1
"""


def test_a_target_is_told_with_its_inputs_and_the_fault_of_the_last() -> None:
    assert told("kineto", 0, "#2\tINITED\n#640\tDONE\n").split() == ["kineto", "640", "inputs"]
    lines = told("kineto", 77, SAID).splitlines()
    assert lines[0].split() == ["kineto", "64", "inputs"]
    assert [line.strip() for line in lines[1:]] == [
        "wrong: ValueError: no",
        'at profharness/readers/a.py", line 7',
        "input: /keep/crash-1",
    ]


def test_targets_have_seeds_of_their_formats(tmp_path: Path) -> None:
    """Two thirds of the formats have some that the tests write themselves."""
    corpora = write_corpora(tmp_path / "made")
    assert {"rocprofv3-json", "rocprofv3-csv", "perfetto", "onnxruntime"} <= set(corpora)
    assert set(corpora) <= {target.name for target in TARGETS}
    for folder in corpora.values():
        assert any(path.stat().st_size for path in folder.iterdir())
        assert (folder.parent / "kind").read_text()


# what a reader would do that answers one input with a fault of ours
PLANTED = """
import sys
from tests.fuzz import target
def planted(path):
    if b"evil" in path.read_bytes():
        raise KeyError("planted")
target.answer = planted
target.main()
"""


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="needs atheris")
def test_an_input_that_is_answered_wrongly_is_kept(tmp_path: Path) -> None:
    for name in ("work", "corpus", "keep"):
        (tmp_path / name).mkdir()
    (tmp_path / "corpus/one").write_bytes(b'{"evi": 1}')
    (tmp_path / "corpus/two").write_bytes(b'{"evil": 1}')
    words = ["x.json", "json", str(tmp_path / "work"), str(tmp_path / "corpus")]
    more = ["-max_total_time=20", f"-artifact_prefix={tmp_path}/keep/"]
    done = subprocess.run(
        [sys.executable, "-c", PLANTED, *words, *more],
        check=False,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 77, done.stdout
    assert "wrong: KeyError: 'planted'" in told("x", done.returncode, done.stdout)
    (kept,) = (tmp_path / "keep").iterdir()
    assert b"evil" in kept.read_bytes()
