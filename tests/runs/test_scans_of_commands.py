"""Scans of a command, through real processes: a script with known step times."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir
from tests import started

SCRIPT = """
import os, sys, time
import profharness_mark
batch, workers = int(sys.argv[1]), int(sys.argv[2])
if (batch, workers) == (4, 1) and os.environ.get("BREAK") == "yes":
    sys.exit("cannot do this")
step_s = 0.004 + 0.001 * batch - 0.002 * workers
for number in range(9):
    time.sleep(step_s * (20 if number == 1 else 1))
    profharness_mark.step(items=batch)
profharness_mark.value("accuracy", 1 - batch / 10)
"""
OFF = ("--telemetry", "off")
ANY = "python3"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "toy.py"
    path.write_text(SCRIPT)
    return path


def scan(root: Path, *words: str, code: int = 0, env: dict[str, str] | None = None) -> str:
    ran = started.run("run", "-o", root, *OFF, *words, cwd=root.parent, env=env)
    assert ran.returncode == code, ran.stderr
    return ran.stdout


def manifest(root: Path) -> Manifest:
    return RunDir.open(root).read_manifest()


def test_a_grid_of_marked_steps(script: Path, tmp_path: Path) -> None:
    root = tmp_path / "run"
    axes = ("--scan", "batch=2,4", "--scan", "workers=0..1:1")
    words = ("--", ANY, str(script), "{batch}", "{workers}")
    said = json.loads(scan(root, *axes, "--require", "accuracy>=0.7", "--json", *words))
    points = {
        (point["parameters"]["batch"], point["parameters"]["workers"]): point
        for point in said["points"]
    }
    assert list(points) == [(2, 0), (2, 1), (4, 0), (4, 1)]
    for (batch, workers), point in points.items():
        true = batch / (0.004 + 0.001 * batch - 0.002 * workers)
        assert 0.1 * true < point["throughput"] <= true  # a sleep lasts no less than asked
        assert point["executions"] == 3
        assert point["values"] == pytest.approx({"accuracy": 1 - batch / 10})
        assert point["kept"] is (batch == 2)
        assert "verdict" in point
    assert said["axes"]["unit"] == "items/s"
    assert said["axes"]["best"] in {"batch2-workers0", "batch2-workers1"}
    assert {tuple(one["axes"]) for one in said["axes"]["effects"]} == {
        ("batch",),
        ("workers",),
        ("batch", "workers"),
    }
    records = manifest(root).points
    assert {record.repeat for record in records} == {0, 1, 2}
    assert all(record.execution and record.execution.dropped >= 2 for record in records)
    report = (root / "report.html").read_text()
    assert "What the axes are worth" in report
    assert "Throughput along batch" in report
    curves = json.loads(started.run("saturation", root, "--json").stdout)
    assert curves["series"][0]["levels"] in ([2.0, 4.0], [0.0, 1.0])
    assert said["axes"]["best"] in curves["series"][0]["points"]
    assert {one["axis"] for one in curves["series"]} == {"batch", "workers"}
    assert len(curves["series"]) == 4
    guess = started.run("saturation", root, "--at", "batch=4,workers=1")
    assert "predicted at batch 4, workers 1" in guess.stdout
    assert "Each point as the others predict it" in guess.stdout
    assert {one["point"] for one in said["axes"]["left_out"]} == {
        point["point"] for point in said["points"]
    }
    assert said["axes"]["expected"] == []
    assert "no axis depth" in started.run("saturation", root, "--at", "depth=4").stderr


def test_settings_that_were_not_measured_have_an_expected_rate(tmp_path: Path) -> None:
    """Of a Latin hypercube of a surface whose rates are known, and of which one setting fails."""
    root = tmp_path / "run"
    code = "import sys; n, m = {n}, {m}; n == 8 == m and sys.exit(1); print('rate', n * (m + 8))"
    axes = ("--scan", "n=1..8", "--scan", "m=1..8", "--design", "lhs:12", "--seed", "3")
    words = ("--rate-regex", r"rate (\d+)", "--json", "--", ANY, "-c", code)
    ran = started.run("run", "-o", root, *OFF, *axes, *words, cwd=tmp_path)
    said = json.loads(ran.stdout)["axes"]
    measured = {point["point"] for point in json.loads(ran.stdout)["points"]}
    assert len(measured) == 12
    assert said["settings_left"] == len(said["expected"]) == 4
    for one in said["expected"]:
        n, m = one["parameters"]["n"], one["parameters"]["m"]
        assert f"n{n}-m{m}" not in measured
        assert one["throughput"]["value"] == pytest.approx(n * (m + 8), rel=0.2)
    inside = sum(one["inside"] for one in said["left_out"])
    assert f"{inside} of {len(said['left_out'])} inside its 95 % interval" in " ".join(
        started.run("report", root, "--format", "md").stdout.split()
    )
    assert "Expected of settings that were not measured" in (root / "report.html").read_text()


def test_a_point_that_fails_costs_itself_and_can_be_tried_again(
    script: Path, tmp_path: Path
) -> None:
    root = tmp_path / "run"
    axes = ("--scan", "batch=2,4", "--scan", "workers=0,1", "--repeats", "2")
    words = ("--", ANY, str(script), "{batch}", "{workers}")
    said = json.loads(
        scan(root, *axes, "--json", *words, code=1, env={**os.environ, "BREAK": "yes"})
    )
    failed = [point for point in said["points"] if point.get("state") == "failed"]
    assert [point["parameters"] for point in failed] == [{"batch": 4, "workers": 1}]
    assert failed[0]["throughput"] is None
    assert "cannot do this" in failed[0]["error"]
    assert sum(point.get("executions", 0) for point in said["points"]) == 6
    states = [record.state for record in manifest(root).points]
    assert (states.count("ok"), states.count("failed"), states.count("skipped")) == (6, 1, 1)
    again = started.run("run", "--resume", "--retry-failed", "-o", root, "--json")
    assert again.returncode == 0, again.stderr
    assert [point["executions"] for point in json.loads(again.stdout)["points"]] == [2, 2, 2, 2]


def test_what_is_run_around_executions_and_their_order(tmp_path: Path) -> None:
    root, log = tmp_path / "run", tmp_path / "log"
    around = [
        word
        for option in ("setup", "prepare", "cleanup")
        for word in (f"--{option}", f"echo {option} {{n}} $X >> {log}")
    ]
    said = scan(
        root,
        *("--scan", "n=1,2", "--scan", "env:X=a", "--repeats", "2", "--warmup", "1"),
        *around,
        "--json",
        *("--", "/bin/sh", "-c", f"echo run {{n}} $X {{other}} ${{HOME:+}} >> {log}"),
    )
    lines = log.read_text().splitlines()
    for point in ("1", "2"):
        own = [line.split()[0] for line in lines if line.split()[1] == point]
        assert own == ["setup", "prepare", "run", "prepare", "run", "prepare", "run", "cleanup"]
    assert all(line.split()[2] == "a" for line in lines)
    assert all("{other}" in line for line in lines if line.startswith("run"))
    answer = json.loads(said)
    assert answer["axes"]["unit"] == "runs/s"
    assert answer["points"][0]["parameters"] == {"n": 1, "env:X": "a"}
    rounds = [(record.repeat, record.id) for record in manifest(root).points]
    assert sorted(rounds[:2]) != sorted(rounds[2:])
    assert [repeat for repeat, _ in rounds] == [0, 0, 1, 1]


@pytest.mark.slow
def test_rates_from_the_output_along_a_category_alone(tmp_path: Path) -> None:
    root = tmp_path / "run"
    shell = (
        'case {mode} in fast) r=300;; slow) r=100;; esac; for i in 1 2 3; do echo "$r img/s"; done'
    )
    said = scan(
        root,
        *("--scan", "mode=fast,slow", "--rate-regex", r"([\d.]+) img/s"),
        *("--", "/bin/sh", "-c", shell),
    )
    assert "mode" in said
    assert "Best is 300.0 units/s at mode fast" in said
    curves = json.loads(started.run("saturation", root, "--json").stdout)
    assert curves["series"] == []
    assert curves["effects"][0]["factor"]["value"] == pytest.approx(3)
    assert "Effect of mode" in (root / "report.html").read_text()


@pytest.mark.slow
def test_rates_of_two_kinds_are_not_compared(tmp_path: Path) -> None:
    code = "import profharness_mark as m\nfor _ in range({n} - 1):\n    m.step(items=1)\n"
    said = json.loads(
        scan(
            tmp_path / "run",
            *("--scan", "n=1,6", "--repeats", "1", "--json"),
            *("--", ANY, "-c", code),
            code=1,
        )
    )
    states = sorted(point.get("state", "ok") for point in said["points"])
    assert states == ["failed", "ok"]
    assert "cannot be compared" in json.dumps(said["findings"])


@pytest.mark.slow
def test_a_scan_that_was_interrupted_goes_on(script: Path, tmp_path: Path) -> None:
    """The run as a kill leaves it: some executions have no record, the pass none of its end."""
    root = tmp_path / "run"
    scan(
        root,
        *("--scan", "n=2,4", "--repeats", "2", "--json"),
        *("--", ANY, str(script), "{n}", "0"),
    )
    path = root / "manifest.json"
    document: dict[str, Any] = json.loads(path.read_text())
    kept = document["points"][:3]
    document["points"], document["state"] = kept, "interrupted"
    document["passes"][0]["state"] = "interrupted"
    path.write_text(json.dumps(document))
    shutil.rmtree(root / "points")
    again = started.run("run", "--resume", "-o", root, "--yes", "--json")
    assert again.returncode == 0, again.stderr
    records = manifest(root).points
    assert [record.start_monotonic_ns for record in records[:3]] == [
        point["start_monotonic_ns"] for point in kept
    ]
    assert len(records) == 4


def test_a_scan_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'command = ["/bin/sh", "-c", "sleep 0.0{n}"]\nrepeats = 1\ntelemetry = "off"\n'
        '[axes]\nn = "1..2:1"\n"env:X" = ["a", 1]\n'
    )
    ran = started.run("run", "mine.toml", "-o", "run", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    points = json.loads(ran.stdout)["points"]
    assert [point["parameters"] for point in points] == [
        {"n": n, "env:X": x} for n in (1, 2) for x in ("a", "1")
    ]


def test_a_dry_run_counts_the_executions_and_starts_none(tmp_path: Path) -> None:
    root = tmp_path / "run"
    words = ("--scan", "n=1..4", "--scan", "env:X=a,b", "--", "/bin/sh", "-c", "touch {n}")
    ran = started.run("run", "--dry-run", "-o", root, "--warmup", "1", *words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "executions      24" in ran.stdout
    assert "6 points (n 3 x X 2) x 3 repeats" in ran.stdout.replace("env:", "")
    assert "argv    /bin/sh -c 'touch 4'" in ran.stdout
    assert list(tmp_path.iterdir()) == []
    sampled = started.run("run", "--dry-run", "--design", "lhs:4", "-o", root, *words, cwd=tmp_path)
    assert "executions      12" in sampled.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--scan", "n=1,2", "--", "true"), "no {n}"),
        (("--scan", "n=1,2"), "--scan"),
        (("particlenet", "--scan", "n=1,2"), "--scan"),
        (("--repeats", "2", "--", "true"), "--scan"),
        (("--scan", "n=1,2", "--trials", "4", "--", "true", "{n}"), "--trials"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ran = started.run("run", *words, cwd=tmp_path)
    assert ran.returncode == 2
    assert said in ran.stderr


@pytest.mark.slow
def test_an_unmodified_script_of_a_package(tmp_path: Path) -> None:
    """charset-normalizer's own command, as the registry has it, over the size of its file."""
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site)]
    got = subprocess.run([*pip, "charset-normalizer"], capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(f"the registry gave no package: {got.stderr.strip()[-200:]}")
    line = "Ein Satz mit Umlauten: für, größer, Straße. "
    said = json.loads(
        scan(
            tmp_path / "run",
            *("--scan", "lines=100,20000", "--scan", "env:PYTHONHASHSEED=0,1"),
            *("--setup", f"yes '{line}' | head -n {{lines}} > {tmp_path}/{{lines}}.txt"),
            "--json",
            *("--", sys.executable, "-m", "charset_normalizer", f"{tmp_path}/{{lines}}.txt"),
            env={**os.environ, "PYTHONPATH": str(site)},
        )
    )
    assert [point.get("state", "ok") for point in said["points"]] == ["ok"] * 4
    assert said["axes"]["unit"] == "runs/s"
    rates = {point["parameters"]["lines"]: point["throughput"] for point in said["points"]}
    assert rates[100] > rates[20000]
    assert said["axes"]["axes"][1]["is_number"] is True


SURFACE = """
import sys
size, count, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if size == 64 and count == 8:
    sys.exit("out of memory")
rate = 1000 * size / (size + 16) * min(1, (count + 1) / 4) * {"a": 1, "b": 1.2, "c": 0.8}[kind]
print(f"rate {rate:.3f}")
"""


def test_a_search_finds_the_best_setting_beside_those_that_fail(tmp_path: Path) -> None:
    """Of 60 settings with 16 executions; it goes on where it was cut off."""
    (tmp_path / "surface.py").write_text(SURFACE)
    root = tmp_path / "run"
    axes = ("--scan", "n=8..64", "--scan", "m=0,1,2,4,8", "--scan", "k=a,b,c", "--search", "16")
    words = ("--", ANY, str(tmp_path / "surface.py"), "{n}", "{m}", "{k}")
    planned = scan(root, *axes, "--rate-regex", r"rate ([\d.]+)", "--dry-run", *words)
    assert "16 of 60 points (n 4 x m 5 x k 3), found by a search" in planned
    assert "executions      16\n" in planned
    ran = started.run(
        *("run", "-o", root, *OFF, *axes, "--rate-regex", r"rate ([\d.]+)", "--json", *words),
        cwd=tmp_path,
    )
    said = json.loads(ran.stdout)
    records = manifest(root).points
    assert len(records) == 16
    assert ran.returncode == (1 if any(one.state == "failed" for one in records) else 0)
    assert said["axes"]["best"] == "n64-m4-kb"
    best = next(one for one in said["points"] if one["point"] == "n64-m4-kb")
    assert best["executions"] > 1, "the winner is measured again"
    assert "run-incomplete" not in {one["id"] for one in said["findings"]}
