"""Scans of a command of which each execution is several ranks, through real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from profharness.rundir.executions import script_marks
from profharness.rundir.paths import RunDir
from tests import started
from tests.processes import gone

OFF = ("--telemetry", "off")
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
}
SCRIPT = """
import os, sys, time
import profharness_mark
rank, world, batch = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(sys.argv[1])
assert os.environ["LOCAL_RANK"] == str(rank) and os.environ["MASTER_PORT"]
if (rank, world, batch) == (1, 2, 8) and os.environ.get("BREAK") == "yes":
    sys.exit("rank 1 cannot do this")
for number in range(12):
    time.sleep(0.01)
    profharness_mark.step(items=batch)
profharness_mark.value("world", world)
"""
STUCK = """
import os, pathlib, sys, time
part = pathlib.Path(sys.argv[1], "part" + os.environ["RANK"])
part.write_text(str(os.getpid()))
part.rename(part.with_name("pid" + os.environ["RANK"]))
time.sleep(600)
"""


@pytest.fixture
def script(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "train.py").write_text(SCRIPT)
    return ("python3", str(tmp_path / "train.py"))


def scan(
    root: Path, *words: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return started.run("run", "-o", root, *OFF, "--json", *words, cwd=root.parent, env=env or PLAIN)


def test_an_axis_says_how_many_ranks_each_execution_is(
    script: tuple[str, str], tmp_path: Path
) -> None:
    """The rate is that of all ranks together, and each has what torch.distributed reads."""
    root = tmp_path / "run"
    axes = ("--scan", "ranks=1,2,4", "--scan", "batch=4,8", "--repeats", "2")
    ran = scan(root, *axes, "--", *script, "{batch}")
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    rates = {}
    for point in said["points"]:
        ranks, batch = point["parameters"]["ranks"], point["parameters"]["batch"]
        true = ranks * batch / 0.01
        assert 0.1 * true < point["throughput"] <= true  # a sleep lasts no less than asked
        assert point["values"] == {"world": ranks}
        rates[ranks, batch] = point["throughput"]
    assert len(rates) == 6
    assert rates[4, 8] > 1.5 * rates[1, 8]
    (worth,) = (one for one in said["axes"]["effects"] if one["axes"] == ["ranks"])
    assert worth["best"]["ranks"] > worth["worst"]["ranks"]
    marked = script_marks.read_steps(script_marks.files(root))
    assert len(marked) == 2 * 2 * (1 + 2 + 4)
    steps = {
        (record.parameters["ranks"], record.execution.steps)
        for record in RunDir.open(root).read_manifest().points
        if record.execution is not None
    }
    assert steps == {(1, 12), (2, 24), (4, 48)}


def test_as_many_ranks_at_each_point_of_which_one_fails(
    script: tuple[str, str], tmp_path: Path
) -> None:
    """It costs its point, whose message is that of the rank; what failed can be tried again."""
    root = tmp_path / "run"
    words = ("--ranks", "2", "--scan", "batch=4,8", "--repeats", "1", "--", *script, "{batch}")
    ran = scan(root, *words, env={**PLAIN, "BREAK": "yes"})
    assert ran.returncode == 1
    points = {one["parameters"]["batch"]: one for one in json.loads(ran.stdout)["points"]}
    assert points[8]["state"] == "failed"
    assert "rank 1 cannot do this" in points[8]["error"]
    assert points[4]["throughput"] > 0
    again = started.run("run", "--resume", "--retry-failed", "-o", root, "--json", env=PLAIN)
    assert again.returncode == 0, again.stderr
    values = [one["values"] for one in json.loads(again.stdout)["points"]]
    assert values == [{"world": 2}] * 2


def test_a_command_that_starts_its_ranks_itself_has_the_axis_for_itself(tmp_path: Path) -> None:
    root = tmp_path / "run"
    code = "import os, sys; sys.exit('WORLD_SIZE' in os.environ or sys.argv[1] not in '12')"
    ran = scan(
        root, "--scan", "ranks=1,2", "--repeats", "1", "--", "python3", "-c", code, "{ranks}"
    )
    assert ran.returncode == 0, ran.stderr
    assert {one["parameters"]["ranks"] for one in json.loads(ran.stdout)["points"]} == {1, 2}


def test_no_rank_outlives_a_scan_that_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    words = ("--scan", "ranks=3", "--", "python3", str(tmp_path / "stuck.py"), str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-m", "profharness", "run", "-o", str(tmp_path / "run"), *OFF, *words],
        cwd=tmp_path,
        env=PLAIN,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: len(list(tmp_path.glob("pid*"))) == 3)
        pids = [path.read_text() for path in tmp_path.glob("pid*")]
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        until(lambda: all(map(gone, pids)))
    finally:
        process.kill()
        process.wait()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--scan", "ranks=0,2"), "0 is no number of ranks"),
        (("--scan", "ranks=two"), "two is no number of ranks"),
        (("--scan", "ranks=1,2", "--ranks", "2"), "leave --ranks out"),
        (("--scan", "env:X=1,2", "--ranks", "2", "--trace-ranks", "0"), "around all ranks"),
        (("--scan", "ranks=1,2", "--launcher", "slurm"), "in a job of your own"),
        (("--scan", "ranks=1,2", "--container", "x.sif"), "mpirun -n {ranks}"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ran = started.run("run", *words, "--", "true", cwd=tmp_path)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_layer_stands_around_all_ranks_of_an_execution(tmp_path: Path) -> None:
    """Two ranks of torch.distributed, whose traces both are there."""
    pytest.importorskip("torch")
    (tmp_path / "ddp.py").write_text(
        "import sys, torch, torch.distributed as dist, profharness_mark\n"
        "dist.init_process_group('gloo')\n"
        "for _ in range(8):\n"
        "    dist.all_reduce(torch.ones(64))\n"
        "    profharness_mark.step(items=int(sys.argv[1]))\n"
        "dist.destroy_process_group()\n"
    )
    ran = scan(
        tmp_path / "run",
        *("--scan", "batch=4", "--ranks", "2", "--repeats", "1", "--profile", "torch"),
        *("--", sys.executable, str(tmp_path / "ddp.py"), "{batch}"),
        env={**PLAIN, "OMP_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    traces = tmp_path / "run" / "artifacts" / "torch"
    assert {path.parent.name for path in traces.glob("*/*/trace-*.json.gz")} == {"0", "1"}
