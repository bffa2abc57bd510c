"""The command under py-spy: its output, signals and exit status are its own, whatever py-spy does.

The real py-spy where the kernel lets it look into another process, and a stand-in where what it
says is the point.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from profharness.launchers.wrappers import wrappers_dir
from profharness.readers.py_spy import reader

WRAPPER = wrappers_dir() / "py_spy.py"
PY_SPY = shutil.which("py-spy", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
WORDS = ("record", "--subprocesses", "--threads", "--idle", "--format", "chrometrace")
NAP = "import time; time.sleep(0.6)"

# what the stand-in finds among its words
HEAD = """#!{python}
import sys, time
words = sys.argv[1:]
out, pid = words[words.index("--output") + 1], words[words.index("--pid") + 1]
"""


def start(folder: Path, py_spy: str, *command: str) -> subprocess.Popen[str]:
    words = [sys.executable, str(WRAPPER), str(folder), py_spy, *WORDS, "--rate", "100"]
    return subprocess.Popen(
        [*words, "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(folder: Path, py_spy: str, *command: str) -> tuple[int, str, str]:
    process = start(folder, py_spy, *command)
    out, err = process.communicate("IN", timeout=60)
    return process.returncode, out, err


def stand_in(tmp_path: Path, body: str) -> str:
    path = tmp_path / "py-spy"
    path.write_text(HEAD.format(python=sys.executable) + body)
    path.chmod(0o755)
    return str(path)


@cache
def why_not() -> str:
    """Why py-spy cannot be tried here; empty where it can."""
    if PY_SPY is None:
        return "py-spy is not installed"
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(20)"]) as sleeper:
        time.sleep(0.2)
        done = subprocess.run(
            [PY_SPY, "dump", "--pid", str(sleeper.pid)], capture_output=True, text=True, check=False
        )
        sleeper.kill()
    return "" if done.returncode == 0 else f"py-spy cannot look here: {done.stderr.strip()[:200]}"


def real() -> str:
    if why := why_not():
        pytest.skip(why)
    assert PY_SPY is not None
    return PY_SPY


CODES = [
    ("sys.exit(7)", 7),
    ("os.kill(os.getpid(), 11)", -11),
    ("os.kill(os.getpid(), 9)", -9),
    ("raise ValueError", 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "status"), CODES)
def test_the_command_ends_as_it_would_without(tmp_path: Path, code: str, status: int) -> None:
    words = f"import os, sys, time; print('out' + sys.stdin.read(), flush=True); {NAP}; {code}"
    ended, out, err = run(tmp_path / "spy", real(), sys.executable, "-c", words)
    assert (ended, out) == (status, "outIN\n")
    assert "py-spy" not in err
    (path,) = (tmp_path / "spy").glob("py-spy-*[0-9].json")
    trace = reader.read(path)
    (source,) = trace.sources
    assert source.bound_ns is not None
    assert source.bound_ns < 500_000_000
    assert int(trace.marks.dur_ns.max()) > 200_000_000


@pytest.mark.slow
def test_children_and_the_shell_around_are_sampled(tmp_path: Path) -> None:
    child = f"{sys.executable} -c '{NAP}'"
    code = f"import subprocess, time; subprocess.run([{sys.executable!r}, '-c', '{NAP}'])"
    words = f'{sys.executable} -c "{code}"; sleep 0.3; {child}'
    status, _, err = run(tmp_path / "spy", real(), "sh", "-c", words)
    assert status == 0
    (path,) = (tmp_path / "spy").glob("py-spy-*[0-9].json")
    assert len(set(reader.read(path).marks.pid.tolist())) == 2
    assert "a further Python process was started, which is not sampled" in err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_group_ends_the_command_and_keeps_the_samples(
    tmp_path: Path, number: signal.Signals
) -> None:
    words = "import time; print('up', flush=True); time.sleep(30)"
    process = start(tmp_path / "spy", real(), sys.executable, "-c", words)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(0.7)  # for some samples
    os.killpg(process.pid, number)
    assert process.wait(30) == -number
    process.communicate()
    (path,) = (tmp_path / "spy").glob("py-spy-*[0-9].json")
    assert reader.read(path).sources[0].pid == int(path.stem.rpartition("-")[2])


def test_a_command_that_is_not_there_or_has_no_python(tmp_path: Path) -> None:
    status, _, err = run(tmp_path / "a", "py-spy", "no-such-command")
    assert (status, "No such file" in err) == (127, True)
    status, _, err = run(tmp_path / "b", "py-spy", "sh", "-c", "exit 3")
    assert (status, "no Python process ran" in err) == (3, True)


FAILURES = [
    (
        "print('Error: Failed to suspend process', file=sys.stderr); sys.exit(1)",
        "Failed to suspend",
    ),
    ("sys.exit(1)", "it ended without a word"),
    ("import os; os.kill(os.getpid(), 11)", "it ended without a word"),
]


@pytest.mark.parametrize(("body", "says"), FAILURES)
def test_where_it_fails_the_command_runs_on(tmp_path: Path, body: str, says: str) -> None:
    words = f"{NAP}; print('done')"
    py_spy = stand_in(tmp_path, body)
    status, out, err = run(tmp_path / "spy", py_spy, sys.executable, "-c", words)
    assert (status, out) == (0, "done\n")
    assert "profharness: py-spy: it recorded nothing: " in err
    assert says in err


def test_a_program_that_is_missing_loses_nothing(tmp_path: Path) -> None:
    status, out, err = run(tmp_path / "a", str(tmp_path / "none"), sys.executable, "-c", "print(1)")
    assert (status, out) == (0, "1\n")
    assert "recorded nothing" in err


def test_what_is_noted_brackets_the_start(tmp_path: Path) -> None:
    body = """
print("py-spy> Sampling process 250 times a second. Press Control-C to exit.", flush=True)
time.sleep(0.1)
open(out, "w").write("[]")
print(f"py-spy> Wrote chrome trace to '{out}'. Samples: 42 Errors: 3")
"""
    before = time.monotonic_ns()
    status, _, _ = run(tmp_path / "spy", stand_in(tmp_path, body), sys.executable, "-c", NAP)
    (path,) = (tmp_path / "spy").glob("*.profharness.json")
    noted = json.loads(path.read_text())
    assert status == 0
    assert (noted["rate"], noted["samples"], noted["errors"]) == (250, 42, 3)
    assert before < noted["before_ns"] <= noted["after_ns"] < noted["wrote_ns"]


@pytest.mark.slow
def test_one_that_goes_on_is_told_to_write(tmp_path: Path) -> None:
    body = """
import signal
def end(*_):
    open(out, "w").write("[]")
    print(f"py-spy> Wrote chrome trace to '{out}'. Samples: 1 Errors: 0", flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, end)
while True:
    time.sleep(0.05)
"""
    status, _, _ = run(tmp_path / "spy", stand_in(tmp_path, body), sys.executable, "-c", "exit(4)")
    assert status == 4
    assert list((tmp_path / "spy").glob("*.profharness.json"))
