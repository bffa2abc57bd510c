"""Wrong command lines, run as a user would: one clear sentence, the way out, the right exit code, nothing written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def profharness(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "profharness", *words], cwd=cwd, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)


@pytest.mark.parametrize(("words", "code", "says"), [
    (("rnu",), 2, "did you mean `profharness run`"),
    (("run", "resnet"), 2, "a command goes after --"),
    (("run", "--profile", "rocprof9"), 2, "known layers"),
    (("run", "--backend", "tensorrt"), 2, "known backends"),
    (("run", "--batch-sizes", "0"), 2, "--batch-sizes"),
    (("run", "--batch-sizes", "64..4"), 2, "4..64"),
    (("run", "--trials", "many"), 2, "run --help"),
    (("run", "--model", "missing.onnx"), 2, "missing.onnx"),
    (("run", "--shape", "pf_points"), 2, "NAME:d1,d2"),
    (("run", "missing.toml"), 4, "missing.toml"),
    (("run", "--backend", "torch", "--profile", "onnxruntime"), 2, "--backend onnxruntime"),
    (("run", "particlenet", "--", "python", "x.py"), 2, "leave one out"),
    (("run", "--hook", "exec", "--", "bash", "x.sh"), 2, "starts with python"),
    (("run", "--", "no-such-program-here"), 3, "no such program"),
    (("run", "--device", "gpu"), 2, "cuda"),
    (("hotspots", "missing.json"), 4, "missing.json"),
    (("metrics", "."), 4, "not a run directory"),
    (("report", "missing"), 4, "missing"),
    (("merge", "missing.json", "-o", "x.pftrace"), 4, "missing.json"),
    (("view", "missing.pftrace"), 4, "missing.pftrace"),
    (("validate", "missing.pftrace"), 4, "missing.pftrace"),
    (("saturation", "missing.csv"), 4, "missing.csv"),
    (("compare", "a", "b"), 4, "a"),
])
def test_a_wrong_line_ends_with_a_sentence_and_a_code(tmp_path: Path, words: tuple[str, ...], code: int, says: str) -> None:
    done = profharness(*words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    assert says in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.rglob("*")) == []


def test_an_output_folder_that_exists_is_not_touched(tmp_path: Path) -> None:
    taken = tmp_path / "mine"
    taken.mkdir()
    (taken / "thesis.tex").write_text("precious")
    done = profharness("run", "--output", str(taken), "--", sys.executable, "-c", "print('ran')", cwd=tmp_path)
    assert done.returncode == 2
    assert "exists" in done.stderr
    assert "ran" not in done.stdout
    assert [path.name for path in taken.iterdir()] == ["thesis.tex"]
