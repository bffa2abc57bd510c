"""The old cap comes back whatever ends a run: real processes on an emulated tree."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from profharness.rundir.paths import RunDir
from profharness.telemetry.caps import store
from profharness.telemetry.caps.records import OldCap, Saved
from tests import started
from tests.conftest import ROOT
from tests.measure.caps.emulated_caps import BEFORE_W, KEY, Node
from tests.processes import gone
from tests.telemetry.running import wait_for

OFF = ("--telemetry", "off")
HANGING = """
import ctypes, sys
from profharness.telemetry.caps.leaving import Leaving
from profharness.telemetry.keeper import Keeper
keeper = Keeper(int(sys.argv[1]), Leaving(sys.argv[2]).begin)
print(flush=True)
ctypes.CDLL(None).sleep(600)
"""


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@contextmanager
def scanning(node: Node, root: Path) -> Iterator[subprocess.Popen[str]]:
    """A scan whose first execution lasts, with the cap of 200 W set."""
    words = ("run", "-o", str(root), *OFF, "--scan", "power-cap=200", "--", "sleep", "600")
    with subprocess.Popen(
        [sys.executable, "-m", "profharness", *words],
        env=node.env,
        cwd=root.parent,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_for((root / "points/bare/power-cap200/stdout.log").exists, "the command")
            assert node.watts == 200
            assert node.file.exists()
            yield process
        finally:
            process.kill()
            process.wait()


def sampler_of(root: Path) -> int:
    (ready,) = (root / "telemetry").glob("*.ready.json")
    return int(json.loads(ready.read_text())["pid"])


def findings(root: Path) -> dict[str, str]:
    return {one.id: one.message for one in RunDir.open(root).read_manifest().findings}


def test_a_run_that_ends_well_sets_it_again(node: Node, tmp_path: Path) -> None:
    ran = started.run(*node.scan(tmp_path / "run", "200,560", *OFF, "--json"), env=node.env)
    assert ran.returncode == 0, ran.stderr
    assert node.watts == BEFORE_W
    assert not node.file.exists()
    rates = {
        one["parameters"]["power-cap"]: one["throughput"]
        for one in json.loads(ran.stdout)["points"]
    }
    assert rates[200] < 0.8 * rates[560]
    assert "power-cap-left" not in findings(tmp_path / "run")


def test_a_script_that_fails_does_too(node: Node, tmp_path: Path) -> None:
    words = ("-o", tmp_path / "run", *OFF, "--scan", "power-cap=200", "--", "false")
    assert started.run("run", *words, env=node.env).returncode == 1
    assert node.watts == BEFORE_W


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal(node: Node, tmp_path: Path, number: signal.Signals) -> None:
    with scanning(node, tmp_path / "run") as process:
        process.send_signal(number)
        process.wait(60)
        assert node.watts == BEFORE_W
        assert not node.file.exists()


def test_the_sampler_sets_it_when_the_harness_is_killed(node: Node, tmp_path: Path) -> None:
    with scanning(node, tmp_path / "run") as process:
        process.kill()
        wait_for(lambda: not node.file.exists(), "the sampler")
        assert node.watts == BEFORE_W
        wait_for(lambda: gone(sampler_of(tmp_path / "run")), "its end")


def test_a_sampler_that_hangs_sets_it_too(node: Node) -> None:
    """Its second thread does, while the first one never returns from a library."""
    with subprocess.Popen(["sleep", "600"]) as harness:
        node.set(200)
        write(node, saved(node, pid=harness.pid, start=store.start_of(harness.pid)))
        with subprocess.Popen(
            [sys.executable, "-c", HANGING, str(harness.pid), str(node.file)],
            stdout=subprocess.PIPE,
            env=node.env,
            cwd=ROOT,
        ) as hanging:
            assert hanging.stdout is not None
            hanging.stdout.readline()
            harness.kill()
            wait_for(lambda: not node.file.exists(), "the second thread")
            assert node.watts == BEFORE_W
            hanging.kill()


@contextmanager
def both_killed(node: Node, root: Path) -> Iterator[None]:
    """The harness and its sampler are killed at once: the cap of 200 W is left."""
    with scanning(node, root) as process:
        sampler = sampler_of(root)
        os.kill(process.pid, signal.SIGSTOP)  # it must not see its sampler die
        os.kill(sampler, signal.SIGKILL)
        process.kill()
        process.wait()
        wait_for(lambda: gone(sampler), "its end")
        assert node.watts == 200
        assert node.file.exists()
        yield


def test_the_next_run_sets_it_when_both_are_killed(node: Node, tmp_path: Path) -> None:
    with both_killed(node, tmp_path / "run"):
        words = ("run", "-o", tmp_path / "next", *OFF, "--", "true")
        ran = started.run(*words, env=node.env, cwd=tmp_path)
        assert ran.returncode == 0
        assert (
            f"set the power cap of {KEY} again to 560 W, which {tmp_path / 'run'} left"
            in " ".join(ran.stderr.split())
        )
        assert node.watts == BEFORE_W
        assert not node.file.exists()


def test_telemetry_alone_sets_it_too(node: Node, tmp_path: Path) -> None:
    node.set(200)
    write(node, saved(node))
    ran = started.run("telemetry", "-o", tmp_path / "samples", "--", "true", env=node.env)
    assert ran.returncode == 0, ran.stderr
    assert "again to 560 W, which /runs/one left" in " ".join(ran.stderr.split())
    assert node.watts == BEFORE_W


def test_doctor_names_it_and_sets_it_when_asked(node: Node, tmp_path: Path) -> None:
    with both_killed(node, tmp_path / "run"):
        said = json.loads(started.run("doctor", "--json", env=node.env).stdout)["power_caps"]
        assert said == [
            {
                "file": str(node.file),
                "state": "left",
                "run": str(tmp_path / "run"),
                "old_w": {KEY: 560.0},
                "ours": True,
            }
        ]
        assert node.watts == 200  # to look changes nothing
        text = started.run("doctor", env={**node.env, "COLUMNS": "500"}).stdout
        assert f"ended without setting power caps again: {KEY} had 560 W" in text
        assert "profharness doctor --restore-caps" in text
        asked = started.run("doctor", "--restore-caps", "--json", env=node.env)
        assert "again to 560 W" in asked.stderr
        assert json.loads(asked.stdout)["power_caps"] == []
        assert node.watts == BEFORE_W


def test_without_its_sampler_a_run_goes_no_further_and_sets_it_itself(
    node: Node, tmp_path: Path
) -> None:
    """The command kills the sampler of its own run; what comes after it is not executed."""
    kill = (
        "import glob, json, os, signal, sys\n"
        "for path in glob.glob(sys.argv[1] + '/telemetry/*.ready.json'):\n"
        "    os.kill(json.load(open(path))['pid'], signal.SIGKILL)\n"
    )
    root = tmp_path / "run"
    words = ("-o", root, *OFF, "--scan", "power-cap=200,300", "--repeats", "1", "--json", "--")
    ran = started.run("run", *words, "python3", "-c", kill, root, env=node.env, cwd=tmp_path)
    assert ran.returncode == 1
    measured, refused = sorted(one.get("error", "") for one in json.loads(ran.stdout)["points"])
    assert measured == ""
    assert "the sampler, which sets the old one again, has ended" in refused
    assert node.watts == BEFORE_W
    assert not node.file.exists()


def test_a_cap_of_somebody_else_is_left_alone(node: Node, tmp_path: Path) -> None:
    """The command changes it as somebody else would: its point fails, and the cap stays."""
    change = "import sys; open(sys.argv[1], 'w').write('450000000')"
    root = tmp_path / "run"
    words = ("-o", root, *OFF, "--scan", "power-cap=200", "--repeats", "1", "--json", "--")
    ran = started.run(
        "run", *words, "python3", "-c", change, node.cap_file, env=node.env, cwd=tmp_path
    )
    assert ran.returncode == 1
    (point,) = json.loads(ran.stdout)["points"]
    assert f"somebody else changed the power cap of {KEY} from 200 W to 450 W" in point["error"]
    assert node.watts == 450
    assert not node.file.exists()
    assert findings(root)["power-cap-left"] == (
        f"the old power cap was not set again: {KEY} had 560 W: somebody else has set 450 W"
    )


def saved(node: Node, **other: object) -> Saved:
    """What a run that has ended wrote down."""
    one = Saved(
        host="here",
        boot_id=store.boot_id(),
        pid=1,
        start=1,
        namespace=store.namespace(),
        run="/runs/one",
        record="",
        sysfs=str(node.tree.root),
        old=(OldCap("hwmon", KEY, 560_000_000),),
        planned_uw=(200_000_000,),
    )
    return one._replace(**other)


def write(node: Node, record: Saved) -> None:
    node.saved.mkdir(mode=0o755)
    store.write(str(node.file), record)


def test_what_was_written_before_a_restart_is_void(node: Node, tmp_path: Path) -> None:
    """The driver has its default again, and whatever is set now is somebody's will."""
    node.set(200)
    write(node, saved(node, boot_id="another"))
    assert "the restart of the node has undone" in started.run("doctor", env=node.env).stdout
    assert (
        started.run("run", "-o", tmp_path / "next", *OFF, "--", "true", env=node.env).returncode
        == 0
    )
    assert node.watts == 200
    assert not node.file.exists()


def test_caps_of_a_run_that_lives_are_its_own(node: Node, tmp_path: Path) -> None:
    """Nobody sets them again, and a second run is refused."""
    node.set(200)
    own = os.getpid()
    write(node, saved(node, pid=own, start=store.start_of(own)))
    doctor = json.loads(started.run("doctor", "--restore-caps", "--json", env=node.env).stdout)
    assert doctor["power_caps"][0]["state"] == "running"
    ran = started.run(*node.scan(tmp_path / "run", "200", *OFF), env=node.env)
    assert ran.returncode == 3
    assert f"process {own} has changed caps of this node (/runs/one)" in " ".join(
        ran.stderr.split()
    )
    assert node.watts == 200


def test_a_record_of_others_is_not_trusted(node: Node, tmp_path: Path) -> None:
    """Where anybody may write the folder, nothing is set by what stands in it."""
    node.set(200)
    write(node, saved(node))
    node.saved.chmod(0o777)
    ran = started.run("run", "-o", tmp_path / "next", *OFF, "--", "true", env=node.env)
    assert "is not a folder that this user alone may write" in " ".join(ran.stderr.split())
    assert node.watts == 200
    assert node.file.exists()


def test_refusals_change_nothing_and_make_no_run(node: Node, tmp_path: Path) -> None:
    for caps, code, words in (("99", 2, "99 W is outside"), ("700", 2, "from 100 W to 560 W")):
        ran = started.run(*node.scan(tmp_path / "run", caps), env=node.env)
        assert ran.returncode == code
        assert words in " ".join(ran.stderr.split())
    env = {**node.env, "PROFHARNESS_POWER_CAPS": "off"}
    ran = started.run(*node.scan(tmp_path / "run"), env=env)
    assert ran.returncode == 3
    assert "PROFHARNESS_POWER_CAPS=off forbids it" in ran.stderr
    assert node.watts == BEFORE_W
    assert not (tmp_path / "run").exists()
    assert not node.saved.exists()


def test_a_dry_run_looks_at_no_device(node: Node, tmp_path: Path) -> None:
    ran = started.run(*node.scan(tmp_path / "run", "1,2", "--dry-run"), env=node.env)
    assert ran.returncode == 0, ran.stderr
    assert "power-cap: 1, 2" in ran.stdout
