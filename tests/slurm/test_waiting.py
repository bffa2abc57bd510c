"""Waiting for a job, with stand-ins for Slurm's clients that answer as 22.05 does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profharness.errors import InputError, Unavailable
from profharness.measure.batch import scheduler, waiting
from profharness.measure.batch.waiting import Watch
from profharness.rundir.jobs.records import JobEnd, Submitted, end_of_run, find

ENDED_BY_ITSELF = '{"job":"7","cause":"","exit_status":3,"nodes":"n1"}'


def stand_ins(folder: Path, monkeypatch: pytest.MonkeyPatch, **bodies: str) -> Path:
    """The programs that these lines of shell make, alone on PATH; each call is noted."""
    folder.mkdir()
    calls = folder / "calls"
    calls.touch()
    for name, body in bodies.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {name} >>{calls}\n{body}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return calls


def submitted(folder: Path) -> Submitted:
    (folder / "slurm").mkdir(parents=True)
    job = Submitted(job="7", run=str(folder / "slurm-7-x"), log=str(folder / "slurm/7.log"))
    (folder / "slurm/7.json").write_text(json.dumps({"job": "7", "run": job.run, "log": job.log}))
    return job


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LATE_S", 0.3)
    monkeypatch.setattr(waiting, "LOOK_S", (0.01, 0.02))


def test_the_scheduler_is_asked_rarely_and_the_files_tell_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submitted(tmp_path)
    script = f"echo '{ENDED_BY_ITSELF}' >{tmp_path}/slurm/7.end"
    calls = stand_ins(
        tmp_path / "bin",
        monkeypatch,
        squeue=f"(sleep 0.5; {script}) >&- 2>&- &\necho 'PENDING|Priority|'",
    )
    said: list[str] = []
    assert Watch(job, said.append).wait() == JobEnd(job="7", exit_status=3, nodes="n1")
    assert (said, calls.read_text()) == (["job 7 waits (Priority)"], "squeue\n")


@pytest.mark.parametrize(
    ("state", "facts", "cause", "status"),
    [
        (
            "NODE_FAIL|None|n[1-2]",
            "JobState=NODE_FAIL ExitCode=0:0 NodeList=n[1-2]",
            "node-lost",
            1,
        ),
        ("TIMEOUT|None|n1", "JobState=TIMEOUT ExitCode=0:15 NodeList=n1", "time-limit", 143),
        ("CANCELLED|None|", "JobState=CANCELLED ExitCode=0:15 NodeList=(null)", "cancelled", 143),
        ("FAILED|NonZeroExitCode|n1", "JobState=FAILED ExitCode=5:0 NodeList=n1", "", 5),
        ("COMPLETED|None|n1", "JobState=COMPLETED ExitCode=0:0 NodeList=n1", "", 0),
        ("OUT_OF_MEMORY|None|n1", "JobState=OUT_OF_MEMORY ExitCode=0:125 NodeList=n1", "", 253),
    ],
)
def test_a_job_that_left_no_word_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, facts: str, cause: str, status: int
) -> None:
    """And what the scheduler says is left where the report looks."""
    job = submitted(tmp_path)
    Path(job.run).mkdir()
    stand_ins(
        tmp_path / "bin",
        monkeypatch,
        squeue=f"echo '{state}'",
        scontrol=f"echo 'JobId=7 {facts}'",
        sinfo="echo n2; echo n2",
    )
    end = Watch(job, lambda _line: None).wait()
    assert (end.cause, end.exit_status) == (cause, status)
    assert end.lost == ("n2" if cause == "node-lost" else "")
    assert end_of_run(Path(job.run)) == end == Watch(job, lambda _line: None).ended()


def test_a_job_that_is_forgotten_and_left_no_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some minutes no client knows it. What its run says counts, else that it failed."""
    job = submitted(tmp_path)
    gone = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"
    stand_ins(tmp_path / "bin", monkeypatch, squeue=gone, scontrol=gone)
    end = Watch(job, lambda _line: None).wait()
    assert (end.cause, end.exit_status) == ("", 1)
    (tmp_path / "slurm/7.end").unlink()
    Path(job.run).mkdir()
    (Path(job.run) / "job.json").write_text('{"job":"7","cause":"cancelled","exit_status":143}')
    end = Watch(job, lambda _line: None).wait()
    assert (end.cause, end.exit_status) == ("cancelled", 143)


def test_a_controller_that_is_down_ends_no_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"
    stand_ins(tmp_path / "bin", monkeypatch, squeue=down)
    assert not scheduler.state("7").is_over
    monkeypatch.setenv("PATH", "/nonexistent")
    assert not scheduler.state("7").is_over


@pytest.mark.parametrize(
    ("printed", "number"), [("4711", "4711"), ("4711;lumi", "4711"), ("", ""), ("4711 x", "")]
)
def test_what_sbatch_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, number: str
) -> None:
    stand_ins(tmp_path / "bin", monkeypatch, sbatch=f"cat >/dev/null; echo '{printed}'")
    if number:
        assert scheduler.submit("#!/bin/bash\n") == number
        return
    with pytest.raises(Unavailable):
        scheduler.submit("#!/bin/bash\n")


def test_what_sbatch_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1"
    stand_ins(tmp_path / "bin", monkeypatch, sbatch=f"cat >/dev/null; {refusal}")
    with pytest.raises(Unavailable, match="refused the job: invalid partition specified: x"):
        scheduler.submit("#!/bin/bash\n")


def test_a_job_is_found_by_number_and_by_run(tmp_path: Path) -> None:
    job = submitted(tmp_path)
    assert find("7", tmp_path).run == find(job.run, Path("/nowhere")).run == job.run
    for unknown in ("8", str(tmp_path / "other"), "traces/x"):
        with pytest.raises(InputError, match="no job is known"):
            find(unknown, tmp_path)
