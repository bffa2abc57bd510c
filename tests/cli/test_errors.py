"""Wrong command lines, run as a user would: one clear sentence, the way out, the right exit code,
nothing written.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from profharness import cli
from profharness.cli.running.answers import near
from tests import started


def profharness(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return started.run(*words, cwd=cwd)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("rnu",), 2, "did you mean `profharness run`"),
        (("run", "resnet"), 2, "a command goes after --"),
        (("run", "--profile", "rocprof9"), 2, "known layers"),
        (("wrap", "rocprof9", "--", "true"), 2, "error: there is no layer 'rocprof9'"),
        (("run", "--backend", "tensorrt"), 2, "known backends"),
        (("run", "--batch-sizes", "0"), 2, "--batch-sizes"),
        (("run", "--batch-sizes", "64..4"), 2, "4..64"),
        (("run", "--trials", "many"), 2, "whole number"),
        (("run", "--model", "missing.onnx"), 2, "missing.onnx"),
        (("run", "--shape", "pf_points"), 2, "NAME:d1,d2"),
        (("run", "missing.toml"), 4, "missing.toml"),
        (("run", "--backend", "torch", "--profile", "onnxruntime"), 2, "--backend onnxruntime"),
        (("run", "particlenet", "--", "python", "x.py"), 2, "leave one out"),
        (("run", "particlenet", "--", "--foo"), 2, "takes no words after --"),
        (("run", "--capture", "30:10", "--", "true"), 2, "steps=30:10 holds no step"),
        (("run", "--capture", "bogus", "--", "true"), 2, "steps=10:30 (or 10:30)"),
        (("run", "--capture", "steps=30:10", "--", "true"), 2, "holds no step"),
        (("run", "--capture", "steps=1:3"), 2, "--profile-trials"),
        (("run", "--batch-sizes", "1", "--", "true"), 2, "--batch-sizes is for scans"),
        (("run", "--strict", "--", "true"), 2, "compare --fail-on"),
        (("run", "--bare"), 2, "a scan always has a bare pass"),
        (
            ("run", "--profile", "torch", "python", "train.py"),
            2,
            "a command goes after --: profharness run ... -- python train.py",
        ),
        (("run", "train.py"), 2, "profharness run -- python train.py"),
        (("run", "--launcher-arg=-N2", "--", "true"), 2, "goes with --launcher slurm"),
        (("run", "--order", "up"), 2, "--order: 'up' is not one of asc, desc, random"),
        (("saturation", "x.csv", "--jobs", "many"), 2, "--jobs: 'many' is not a whole number\n"),
        (
            ("serve", "particlenet", "--grpc-port", "99999"),
            2,
            "error: --grpc-port: 99999 is not in the range",
        ),
        (("calibrate", "--device", "gpu"), 2, "--device: there is no device 'gpu'"),
        (
            ("calibrate", "--device", "cuda:1", "--threads", "2"),
            2,
            "--threads: are of a CPU, not of cuda:1",
        ),
        (("run", "--warmup", "some"), 2, "--warmup: 'some' is not auto or a whole number"),
        (("hotspots", "x.json", "--by", "foo"), 2, "--by: 'foo' is not one of"),
        (("run", "--output", "/proc/profharness", "--", "echo", "ran"), 2, "--output"),
        (
            ("telemetry", "--seconds", "1", "-o", "/proc/profharness"),
            2,
            "name another place with -o",
        ),
        (("doctor", "--python", "/bin/ls"), 3, "name a Python"),
        (("validate", "."), 4, "not a run directory"),
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
    ],
)
def test_a_wrong_line_ends_with_a_sentence_and_a_code(
    tmp_path: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    done = profharness(*words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    assert says in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.rglob("*")) == []


def a_run(tmp_path: Path) -> Path:
    done = profharness(
        "run", "--telemetry", "off", "--quiet", "-o", "run", "--", "true", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    return tmp_path / "run"


def test_products_are_not_written_to_places_that_are_not_there(tmp_path: Path) -> None:
    root = a_run(tmp_path)
    for words in (
        ("merge", str(root), "-o", "absent/x.pftrace"),
        ("report", str(root), "-o", "absent/x.html"),
        ("merge", str(root), "-o", str(tmp_path), "--force"),
    ):
        done = profharness(*words, cwd=tmp_path)
        assert (done.returncode, "name another place with -o" in done.stderr) == (2, True), (
            done.stderr
        )
    assert not (tmp_path / "absent").exists()


def test_validate_takes_a_run(tmp_path: Path) -> None:
    root = a_run(tmp_path)
    done = profharness("validate", str(root), cwd=tmp_path)
    assert (done.returncode, "no faults" in done.stdout) == (0, True), done.stderr
    (root / "merged.pftrace").unlink()
    done = profharness("validate", str(root), cwd=tmp_path)
    assert (done.returncode, "profharness merge" in done.stderr) == (4, True)


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    """The command's status stands, and what could not be printed is said to be in the report."""
    command = (
        f"set -o pipefail; {sys.executable} -m profharness run --telemetry off -o run -- "
        f"{sys.executable} -c 'print(1, flush=True)' | (read line; exec 0<&-; sleep 0)"
    )
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"profharness: the answer is in {Path('run') / 'report.html'}\n"
    assert (tmp_path / "run" / "report.html").is_file()


def test_a_program_that_cannot_be_started_leaves_a_failed_run(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"\x7fELF nothing that could run")
    (tmp_path / "broken").chmod(0o755)
    done = profharness("run", "--telemetry", "off", "-o", "runs/r", "--", "./broken", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert profharness("ls", "runs", cwd=tmp_path).stdout.startswith("failed ")


def test_an_output_folder_that_exists_is_not_touched(tmp_path: Path) -> None:
    taken = tmp_path / "mine"
    taken.mkdir()
    (taken / "thesis.tex").write_text("precious")
    done = profharness(
        "run", "--output", str(taken), "--", sys.executable, "-c", "print('ran')", cwd=tmp_path
    )
    assert done.returncode == 2
    assert "exists" in done.stderr
    assert "ran" not in done.stdout
    assert [path.name for path in taken.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("number", "name", "says"),
    [
        (errno.ENOSPC, None, "error: No space left on device\n  make room, or name another place"),
        (
            errno.EACCES,
            "/data/x.json",
            "error: /data/x.json: Permission denied\n  look at its permissions",
        ),
        (errno.EBADF, None, "profharness itself failed: OSError"),
    ],
)
def test_what_the_system_refuses_is_no_fault_of_ours(
    number: int,
    name: str | None,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refused(_arguments: Sequence[str]) -> int:
        raise OSError(number, os.strerror(number), name)

    monkeypatch.setattr(cli, "_call", refused)
    assert cli.run_cli(["ls"]) == 1
    assert says in capsys.readouterr().err


def test_a_file_that_may_not_be_read_is_named_without_the_parsers_words() -> None:
    said = cli._plain("Invalid value for 'RUN|FILE...': Path '/tmp/a b.json' is not readable.")
    assert said == "/tmp/a b.json: permission denied"
    assert "permissions" in cli._hint("hotspots", said, cli.Rest((), given=False))


def test_ctrl_c_is_told(tmp_path: Path) -> None:
    """Also by a parser that makes a silent exit of it: a command that ends without a word looks as
    if it were done.
    """
    words = (
        "import sys\nfrom profharness import cli; from profharness.cli import "
        "doctor_checks as doctor\ndef stop(*_, **__): raise KeyboardInterrupt\n"
        "doctor.examine = stop\nsys.exit(cli.run_cli(['doctor']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_changes_no_exit_status(tmp_path: Path, closed: str) -> None:
    words = (sys.executable, "-m", "profharness", "run", "--telemetry", "off", "-o", "run", "--")
    command = ("sh", "-c", "exit 5")
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *words, *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert "could not be analysed" not in done.stderr
    assert (tmp_path / "run" / "report.html").exists()


def test_a_working_directory_that_was_removed_is_said_at_the_start_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert near(here / "run") == "run"
    here.rmdir()
    assert near(here / "run") == str(here / "run"), "what ran meanwhile has its answer"
    assert cli.run_cli(["run", "--telemetry", "off", "--", "true"]) == 2
    assert "the working directory was removed" in capsys.readouterr().err
