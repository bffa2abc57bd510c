"""A run of strangers is shown as far as it can be: what may not be read is named, and no more."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.rundir.paths import RunDir
from profharness.trace.model import Problem
from profharness.understand.load_run import load_run
from tests.run_files import run_of

TRACE = "artifacts/torch/n0/0/trace.json.gz"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of(tmp_path_factory.mktemp("r") / "run", ranks=1, kernels=4, lend=False).root


@pytest.fixture
def run(recorded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recorded, tmp_path / "run"))


def problems(root: Path) -> list[Problem]:
    return [one for one in load_run(root).trace.problems if one.severity != "info"]


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link_out(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def deep(path: Path) -> None:
    path.write_bytes(b'{"n":' + b"[" * 100_000)


OWN = (
    "points/bare/b4/trials.csv",
    "artifacts/steps/n0/0/steps-100.jsonl",
    "telemetry/n0.samples.bin",
    TRACE,
)


@pytest.mark.parametrize("damage", [pipe, link_out, deep], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", OWN)
def test_one_file_loses_itself_alone(run: Path, name: str, damage: Callable[[Path], None]) -> None:
    before = {source.path for source in load_run(run).trace.sources}
    damage(run / name)
    (told,) = [one for one in problems(run) if one.source == name]
    assert told.count == 1
    after = {source.path for source in load_run(run).trace.sources}
    assert before - after <= {name}


def test_a_record_that_names_a_file_outside_is_refused(run: Path, tmp_path: Path) -> None:
    shutil.copy(run / TRACE, tmp_path / "other.json.gz")
    manifest = json.loads((run / "manifest.json").read_text())
    for number, stated in enumerate(("../other.json.gz", str(tmp_path / "other.json.gz"))):
        manifest["artifacts"][number]["path"] = stated
    (run / "manifest.json").write_text(json.dumps(manifest))
    refused = [one for one in problems(run) if "outside of the run directory" in one.message]
    assert len(refused) == 2
    assert not any("other" in source.path for source in load_run(run).trace.sources)


def test_a_file_that_is_listed_often_counts_once(run: Path) -> None:
    kernels = len(load_run(run).trace.kernels)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["artifacts"] += [{**manifest["artifacts"][0], "path": f"./{TRACE}"}] * 5000
    assert manifest["artifacts"][0]["path"] == TRACE
    (run / "manifest.json").write_text(json.dumps(manifest))
    (told,) = [one for one in problems(run) if "listed more than once" in one.message]
    assert told.count == 5000
    assert len(load_run(run).trace.kernels) == kernels


def test_a_workloads_link_out_of_the_run_is_named_and_the_report_made(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    shutil.copy(run / TRACE, tmp_path / "data" / "trace.json.gz")
    (run / "artifacts" / "torch" / "n9").symlink_to("../../../data")
    (run / "points" / "bare" / "more").symlink_to("/tmp")
    (run / "loop").symlink_to(".")
    assert run_cli(["report", str(run)]) == 0
    assert (run / "report.html").stat().st_size > 10_000
    assert run_cli(["metrics", str(run)]) == 0
    assert "itself failed" not in capsys.readouterr().err


def test_a_telemetry_folder_elsewhere_is_not_written_into(run: Path, tmp_path: Path) -> None:
    shutil.move(run / "telemetry", tmp_path / "elsewhere")
    (run / "telemetry").symlink_to("../elsewhere")
    before = sorted(path.name for path in (tmp_path / "elsewhere").iterdir())
    assert run_cli(["report", str(run)]) == 0
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == before


@pytest.mark.parametrize("command", ["validate", "view"])
def test_a_merged_trace_elsewhere_is_not_shown(
    run: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "private").write_bytes(b"x")
    (run / "merged.pftrace").symlink_to("../private")
    assert run_cli([command, str(run)]) == 4
    assert "leads out of the run directory" in capsys.readouterr().err


def test_hosts_are_no_patterns_of_files(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["passes"][1]["cut"] = "steps=0:2"
    for artifact in manifest["artifacts"]:
        artifact["host"] = "/../../.."
    (run / "manifest.json").write_text(json.dumps(manifest))
    load_run(run)


def test_a_step_range_that_could_take_for_ever_is_not_used(run: Path) -> None:
    run_dir = RunDir.open(run)
    manifest = json.loads(run_dir.manifest_path.read_text())
    manifest["step_range"] = "(a|aa)+$"
    run_dir.manifest_path.write_text(json.dumps(manifest))
    assert run_cli(["metrics", str(run)]) == 0


def test_a_run_nobody_may_write_into_is_reported_elsewhere(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    may, there = os.access, sorted(run.rglob("*"))

    def as_for_another_user(path: Path, mode: int) -> bool:
        return not (mode & os.W_OK and Path(path).is_relative_to(run)) and may(path, mode)

    monkeypatch.setattr(os, "access", as_for_another_user)
    assert run_cli(["report", str(run), "-o", str(tmp_path / "out.html")]) == 0
    assert (tmp_path / "out.html").stat().st_size > 10_000
    assert "merged.pftrace" not in capsys.readouterr().out
    assert run_cli(["report", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert run_cli(["report", str(run)]) == 2
    assert "name a place for the report with -o" in capsys.readouterr().err
    assert sorted(run.rglob("*")) == there
