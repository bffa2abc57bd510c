"""The small programs around a workload: they end as it ended, note how, and stamp what MIOpen
says.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profharness.launchers.wrappers import wrappers_dir

STATUS = wrappers_dir() / "status.py"
STAMP = wrappers_dir() / "stamp.py"


def run(
    script: Path, folder: Path, *argv: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(script), str(folder), *(["--", *argv] if argv else [])]
    return subprocess.run(
        words,
        input="IN",
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def notes(folder: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("status-*.json"))]


@pytest.mark.parametrize("script", [STATUS, STAMP])
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("sys.exit(7)", 7),
        ("os.kill(os.getpid(), 11)", -11),
        ("os.kill(os.getpid(), 9)", -9),
        ("pass", 0),
        ("raise ValueError", 1),
    ],
)
def test_they_end_as_the_command_ended_and_leave_its_streams_alone(
    tmp_path: Path, script: Path, code: str, status: int
) -> None:
    words = (
        "import os, sys; sys.stdout.write('out' + sys.stdin.read()); sys.stdout.flush(); "
        f"sys.stderr.write('err'); sys.stderr.flush(); {code}"
    )
    done = run(script, tmp_path / "notes", sys.executable, "-c", words)
    assert (done.returncode, done.stdout) == (status, "outIN")
    assert done.stderr.startswith("err")
    if script == STATUS:
        (note,) = notes(tmp_path / "notes")
        assert (note["status"], note["by_signal"]) == (
            status if status >= 0 else 128 - status,
            status < 0,
        )
        # both are numbers
        assert note["end_monotonic_ns"] > note["start_monotonic_ns"]  # type: ignore[operator]  # ints


@pytest.mark.parametrize("script", [STATUS, STAMP])
def test_a_command_that_cannot_start(tmp_path: Path, script: Path) -> None:
    done = run(script, tmp_path, "no-such-program-here")
    assert done.returncode == 127
    assert "no-such-program-here" in done.stderr
    assert notes(tmp_path) == []


def test_the_command_may_come_in_a_variable(tmp_path: Path) -> None:
    argv = json.dumps(
        [
            sys.executable,
            "-c",
            "import os, sys; print('$HOME', 'PROFHARNESS_RECORDED_ARGV' in os.environ)",
        ]
    )
    done = run(STATUS, tmp_path, PROFHARNESS_RECORDED_ARGV=argv)
    assert done.stdout == "$HOME False\n"


def test_it_outlives_a_signal_to_the_group_and_notes_the_status(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(42)); "
        "print('ready', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, str(STATUS), str(tmp_path), "--", sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        process_group=0,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
    assert "status" not in notes(tmp_path)[0]
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(90) == 42
    assert notes(tmp_path)[0]["status"] == 42


def test_miopen_lines_are_stamped_as_they_arrive(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "for text in ('MIOpen(HIP): Info [a] one\\n', 'other\\n', 'cut in MIOpen(HIP): "
        "Info2 [b] ', 'two\\n', '12 MIOpen(HIP): Command [c] three'):\n"
        "    sys.stderr.write(text); sys.stderr.flush(); time.sleep(0.05)"
    )
    before = time.monotonic_ns()
    done = run(STAMP, tmp_path, sys.executable, "-c", code)
    after = time.monotonic_ns()
    assert done.stderr == (
        "MIOpen(HIP): Info [a] one\nother\ncut in MIOpen(HIP): Info2 [b] two\n"
        "12 MIOpen(HIP): Command [c] three"
    )
    (log,) = tmp_path.glob("miopen-*.log")
    stamps, texts = zip(
        *(line[1:].split(" ", 1) for line in log.read_text().splitlines()), strict=True
    )
    assert texts == (
        "MIOpen(HIP): Info [a] one",
        "MIOpen(HIP): Info2 [b] two",
        "12 MIOpen(HIP): Command [c] three",
    )
    times = [int(stamp) for stamp in stamps]
    assert before < times[0] < times[1] < times[2] < after
    assert times[1] - times[0] > 50_000_000


def test_without_miopen_there_is_no_log(tmp_path: Path) -> None:
    assert (
        run(
            STAMP, tmp_path, sys.executable, "-c", "import sys; sys.stderr.write('x' * 200000)"
        ).stderr
        == "x" * 200000
    )
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_takes_no_stamp_leaves_the_command_alone(tmp_path: Path) -> None:
    """Its stderr goes on, more than a pipe holds, and one line says what is missing."""
    code = (
        "import sys\n"
        "for _ in range(3000): sys.stderr.write('MIOpen(HIP): Command [x] ' + 'y' * 60 + '\\n')\n"
        "sys.exit(7)"
    )
    done = subprocess.run(
        [sys.executable, str(STAMP), str(tmp_path), "--", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
    )
    assert done.returncode == 7
    assert done.stderr.count("MIOpen(HIP)") == 3000
    assert done.stderr.count("profharness: cannot write") == 1
    assert "Traceback" not in done.stderr
    (log,) = tmp_path.glob("miopen-*.log")
    assert log.stat().st_size == 500


def test_a_folder_that_cannot_be_made_leaves_the_command_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(STAMP, tmp_path / "file" / "x", sys.executable, "-c", "print('out'); exit(3)")
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (3, "out\n", False)
