"""A command under the layer py-spy: the hottest line is named in every form, and py-spy's failure is
a finding.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests import started
from tests.wrappers.test_py_spy import HEAD, real

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("runs")]
PROGRAM = """
import subprocess, sys, time

def busy(seconds):
    until = time.time() + seconds
    while time.time() < until: sum(range(2000))

def main():
    busy(2 if len(sys.argv) > 1 else 0.5)
    time.sleep(0.2)

main()
if len(sys.argv) > 1:
    subprocess.run([sys.executable, __file__])
    sys.exit(9)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    real()
    folder = tmp_path_factory.mktemp("py-spy")
    (folder / "spin.py").write_text(PROGRAM)
    root = folder / "run"
    line = (
        "run",
        "--profile",
        "py-spy",
        "--telemetry",
        "off",
        "-o",
        str(root),
        "--",
        sys.executable,
    )
    done = started.run(*line, str(folder / "spin.py"), "twice", cwd=folder)
    assert done.returncode == 9, done.stderr
    assert "py-spy>" not in done.stdout + done.stderr
    return root


def test_the_answer_names_the_line(run: Path) -> None:
    done = started.run("report", str(run), "--json", cwd=run.parent)
    assert done.returncode == 0, done.stderr
    shown = started.run("report", str(run), "-o", str(run / "page.html"), cwd=run.parent).stdout
    text = " ".join(shown.split())
    assert "% of the samples of the main thread of process" in text
    assert "are in spin.py:7 busy." in text
    assert "py-spy ≤" in text
    page = (run / "page.html").read_text()
    assert "Python lines" in page
    assert "flame-samples" in page


def test_hotspots_by_line_and_function(run: Path) -> None:
    done = started.run("hotspots", str(run), "--json", cwd=run.parent)
    table = json.loads(done.stdout)
    assert (table["by"], table["pass"], table["rate_hz"]) == ("line", "py-spy", 100)
    assert len({thread["pid"] for thread in table["threads"]}) == 2
    for thread in table["threads"]:
        rows = [row for row in table["rows"] if row["pid"] == thread["pid"]]
        busy = sum(row["self_ns"] for row in rows if row["function"] == "busy")
        assert 0.2e9 < busy < 3e9
        assert sum(row["share"] for row in rows) == pytest.approx(1)
    done = started.run("hotspots", str(run), "--by", "function", "--format", "csv", cwd=run.parent)
    assert done.stdout.splitlines()[0].startswith("file,line,function,rank,pid,tid,self_ns")
    folded = started.run("hotspots", str(run), "--format", "folded", cwd=run.parent).stdout
    assert "busy" in folded


def test_a_merged_trace_and_a_loose_file_hold_the_frames(run: Path) -> None:
    (path,) = run.rglob("py-spy-*[0-9].json")
    loose = started.run("metrics", str(path), "--json", cwd=run.parent)
    assert json.loads(loose.stdout)["host_lines"]["rate_hz"] == 100
    merged = started.run("merge", str(run), "-o", str(run / "out.pftrace"), cwd=run.parent)
    assert merged.returncode == 0
    assert "host spans" in merged.stderr
    assert "0 host spans" not in merged.stderr


def test_its_failure_is_a_finding_and_not_the_commands(tmp_path: Path) -> None:
    py_spy = tmp_path / "bin" / "py-spy"
    py_spy.parent.mkdir()
    body = "print('Error: Failed to suspend process', file=sys.stderr); sys.exit(1)"
    says = "if '--version' in sys.argv: print('py-spy 0.4.3'); sys.exit(0)\n"
    py_spy.write_text(
        HEAD.format(python=sys.executable).replace("words =", says + "words =", 1) + body
    )
    py_spy.chmod(0o755)
    (tmp_path / "short.py").write_text("import time; time.sleep(0.5); print('done')")
    env = {**os.environ, "PATH": f"{py_spy.parent}:{os.environ['PATH']}"}
    line = ("run", "--profile", "py-spy", "--telemetry", "off", "-o", "out", "--", sys.executable)
    done = started.run(*line, "short.py", cwd=tmp_path, env=env)
    assert done.returncode == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    found = [item for item in manifest["findings"] if item["id"] == "profiler-failed"]
    assert any(
        "does not let it look into other processes" in item["message"]
        and "ptrace_scope" in item["advice"]
        for item in found
    )
