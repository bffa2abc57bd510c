"""`--container`: a stand-in for Apptainer around real workloads, and stand-in tools that are in the
image alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profharness.launchers.apptainer import Apptainer
from profharness.launchers.command import Command
from profharness.launchers.wrappers import wrappers_dir
from profharness.rundir.manifest import Manifest, decode
from profharness.understand import report_run as understand
from tests import started
from tests.fakes import stand_in_apptainer, stand_in_srun, stand_in_tools
from tests.fakes.stand_in_node import PROGRAM
from tests.variants import thorough

CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PROFHARNESS", "STAND_IN", "SLURM", "ROCM", "APPTAINER"))
}
TRAIN = """
import os, sys, torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
for _ in range(30):
    model(torch.randn(4, 8)).sum().backward(); optimizer.step()
print(os.environ["APPTAINER_CONTAINER"], os.environ["OF_THE_IMAGE"], os.environ["BEGUN"], os.getcwd(), os.environ["PYTHONPATH"].split(":")[2:])
raise SystemExit(5)
"""


class Host:
    """A host with Apptainer, and one image on it."""

    def __init__(self, folder: Path, environment: str = "", *, apptainer: bool = True) -> None:
        self.folder = folder
        self.programs = (
            stand_in_apptainer.install(folder / "programs") if apptainer else folder / "programs"
        )
        self.image = stand_in_apptainer.image(folder / "image.sif", environment)
        self.run_dir = folder / "run"

    def environment(self, **variables: str) -> dict[str, str]:
        return {
            **CLEAN,
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "PROFHARNESS_CACHE": str(self.folder / "cache"),
            **variables,
        }

    def profharness(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return started.run(*words, cwd=self.folder, env=self.environment(**variables), timeout=280)

    def run(
        self, *flags: str, command: tuple[str, ...], **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return self.profharness(
            "run",
            "--telemetry",
            "off",
            "-o",
            str(self.run_dir),
            "--container",
            str(self.image),
            *flags,
            "--",
            *command,
            **variables,
        )

    @property
    def manifest(self) -> Manifest:
        return decode((self.run_dir / "manifest.json").read_bytes(), "manifest")


def test_what_the_container_is_started_with() -> None:
    container = Apptainer(
        "i.sif",
        options=("--rocm", "--bind=/scratch"),
        folders=(Path("/w"), Path("/r"), Path("/w")),
        inherited="/host",
        cwd=Path("/here"),
    )
    plain = container.around(Command(("python", "a b"), {"X": "1", "PROFHARNESS_PASS": "torch"}))
    assert plain.argv == (
        "apptainer",
        "exec",
        "--rocm",
        "--bind=/scratch",
        "--bind",
        "/w",
        "--bind",
        "/r",
        "--pwd",
        "/here",
        "i.sif",
        "python",
        "a b",
    )
    assert plain.env == {"APPTAINERENV_X": "1", "APPTAINERENV_PROFHARNESS_PASS": "torch"}
    hooked = container.around(
        Command(("python",), {"PYTHONPATH": "/my hooks:/host", "GONE": None}, Path("/there"))
    )
    assert hooked.argv[-5:] == (
        "sh",
        "-c",
        "unset GONE\nexport PYTHONPATH='/my hooks'${PYTHONPATH:+:$PYTHONPATH}\nexec \"$@\"",
        "sh",
        "python",
    )
    assert (hooked.env, hooked.cwd, hooked.argv[7:9]) == ({}, Path("/there"), ("/r", "--pwd"))
    old = Apptainer("i.sif", "singularity", prelude="source a\nactivate b").around(
        Command(("python",), {"X": "1"})
    )
    assert old.env == {"SINGULARITYENV_X": "1"}
    assert old.argv[:5] == ("singularity", "exec", "i.sif", "bash", "-c")
    assert old.argv[5].startswith("{\nsource a\nactivate b\n} || {")


@pytest.mark.slow
def test_a_script_in_a_container_is_recorded_as_outside(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    host = Host(
        tmp_path,
        "PYTHONPATH=/of/the/image\nOF_THE_IMAGE=7\nPROFHARNESS_CAPTURE=all\nHIP_VISIBLE_DEVICES=1\n",
    )
    (tmp_path / "train.py").write_text(TRAIN)
    done = host.run(
        "--profile",
        "torch",
        "--container-init",
        "export BEGUN=yes ROCR_VISIBLE_DEVICES=2",
        "--quiet",
        command=("python", "train.py"),
        OMP_NUM_THREADS="1",
        ROCR_VISIBLE_DEVICES="3",
    )
    assert done.returncode == 5, done.stderr
    assert done.stdout == f"{host.image} 7 yes {tmp_path} ['/of/the/image']\n"
    loaded = understand.load([host.run_dir])
    trace = loaded.trace
    steps = trace.marks.take(trace.marks.kind == trace.strings.find("step"))
    assert len(steps) >= 20
    assert any("aten::addmm" in trace.strings[int(code)] for code in set(trace.ops.name.tolist()))
    manifest = host.manifest
    assert manifest.container == str(host.image)
    # as inside: by the image, and by the lines that go first, which win over the host's
    masks = {"HIP_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": "2"}
    assert masks.items() <= manifest.nodes[0].variables.items()
    assert [process.masks for process in manifest.processes] == [masks]
    assert [one for one in manifest.findings if one.severity == "error"] == []
    assert manifest.passes[0].argv[0][:2] == ("apptainer", "exec")
    probe, workload = stand_in_apptainer.calls(host.image)
    assert str(wrappers_dir().resolve()) in probe
    assert str(host.run_dir) not in probe, (
        "it is not there yet, and Apptainer refuses to bind what is not"
    )
    assert str(host.run_dir) in workload


@pytest.mark.slow
@pytest.mark.parametrize("release", ["7.0", *thorough("6.4")])
def test_a_tool_of_the_image(tmp_path: Path, release: str) -> None:
    """Container, exit recorder where there is one, tool, hooks: in this order."""
    host = Host(tmp_path)
    for tool in stand_in_tools.install(tmp_path, release).iterdir():
        (host.image / "bin" / tool.name).symlink_to(tool)
    dry = host.run(
        "--profile", "rocprofv3", "--hip-trace", "--dry-run", command=("python", str(PROGRAM))
    )
    assert dry.returncode == 0, dry.stderr
    line = next(line for line in dry.stdout.splitlines() if line.startswith("  argv "))
    order = [
        dry.stdout.index(word, dry.stdout.index(line))
        for word in ("apptainer exec", "image.sif", "PYTHONPATH=", "rocprofv3 ", str(PROGRAM))
    ]
    assert order == sorted(order)
    assert not host.run_dir.exists()
    done = host.run(
        "--profile",
        "rocprofv3",
        "--hip-trace",
        "--quiet",
        command=("python", str(PROGRAM), "--kernels", "6", "--exit", "4"),
    )
    assert done.returncode == 4, done.stderr
    assert len(understand.load([host.run_dir]).trace.kernels) == 6
    assert [one for one in host.manifest.findings if one.severity == "error"] == []


@pytest.mark.slow
def test_a_scan_in_a_container(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    host = Host(tmp_path)
    done = host.profharness(
        "run",
        "particlenet",
        "--batch-sizes",
        "1,2",
        "--trials",
        "3",
        "--min-seconds",
        "0",
        "--telemetry",
        "off",
        "--profile",
        "torch",
        "--container",
        str(host.image),
        "-o",
        "run",
        "--json",
        OMP_NUM_THREADS="1",
    )
    assert done.returncode == 0, done.stderr
    assert [point["batch_size"] for point in json.loads(done.stdout)["points"]] == [1, 2]
    assert all(argv[0] == "apptainer" for record in host.manifest.passes for argv in record.argv)
    assert len(stand_in_apptainer.calls(host.image)) == 3  # the probe and two workers


@pytest.mark.slow
def test_two_ranks_in_containers(tmp_path: Path) -> None:
    host = Host(tmp_path)
    done = host.run(
        "--ranks",
        "2",
        "--quiet",
        command=("python", "-c", "import os; os.write(1, os.environ['RANK'].encode())"),
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout) == ["0", "1"]
    assert host.manifest.ranks == 2


@pytest.mark.slow
def test_a_signal_ends_what_runs_in_the_container(tmp_path: Path) -> None:
    host = Host(tmp_path)
    words = [
        sys.executable,
        "-m",
        "profharness",
        "run",
        "--telemetry",
        "off",
        "-o",
        "run",
        "--container",
        str(host.image),
        "--",
        "python",
        "-c",
        (
            "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); "
            "time.sleep(300)"
        ),
    ]
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        env=host.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as harness:
        until = time.monotonic() + 60
        while (
            not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
            and time.monotonic() < until
        ):
            time.sleep(0.02)
        harness.send_signal(signal.SIGTERM)
        assert harness.wait(60) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert host.manifest.state == "interrupted"


def test_what_is_wrong_is_told_before_anything_is_written(tmp_path: Path) -> None:
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    host, without = Host(tmp_path / "with"), Host(tmp_path / "without", apptainer=False)
    cases = [
        (host, ("--container", "no.sif", "--", "true"), 2, "there is no image no.sif"),
        (host, ("--container-init", "true", "--", "true"), 2, "goes with --container"),
        (
            host,
            ("--container", str(host.image), "--container-init", "source nothing", "--", "true"),
            3,
            "probe.py failed in the container",
        ),
        (
            host,
            ("--container", str(host.image), "--python", "python9", "--", "true"),
            3,
            "executable file not found in $PATH",
        ),
        (
            host,
            ("--container", str(host.image), "--container-arg=--isolate-all", "--", "true"),
            3,
            "unknown flag: --isolate-all",
        ),
        (
            without,
            ("--container", str(without.image), "--", "true"),
            3,
            "there is no apptainer (or singularity) here",
        ),
    ]
    for where, words, status, said in cases:
        done = where.profharness("run", "-o", "run", *words)
        assert (done.returncode, said in done.stderr) == (status, True), done.stderr
        assert done.stderr.startswith("error: ")
        assert not where.run_dir.exists()


def test_a_dry_run_needs_neither_image_nor_apptainer(tmp_path: Path) -> None:
    host = Host(tmp_path, apptainer=False)
    done = host.profharness(
        "run",
        "--profile",
        "rocprofv3",
        "--container",
        "no.sif",
        "--dry-run",
        "--",
        "python",
        "train.py",
    )
    assert done.returncode == 0, done.stderr
    assert "apptainer exec" in done.stdout
    assert "no.sif" in done.stdout


def test_a_folder_that_cannot_be_bound(tmp_path: Path) -> None:
    host = Host(tmp_path)
    (tmp_path / "a:b").mkdir()
    done = started.run(
        "run",
        "--container",
        str(host.image),
        "--",
        "true",
        cwd=tmp_path / "a:b",
        env=host.environment(),
    )
    assert done.returncode == 2
    assert "cannot be bound" in done.stderr


@pytest.mark.slow
def test_slurm_starts_the_ranks_each_in_its_container(tmp_path: Path) -> None:
    host = Host(tmp_path)
    stand_in_srun.install(host.programs)
    words = (
        "run",
        "--telemetry",
        "off",
        "--launcher",
        "slurm",
        "--launcher-arg=--gpus-per-task=1",
        "--ranks",
        "3",
        "--container",
        str(host.image),
    )
    program = (
        "--",
        "python",
        "-c",
        (
            "import os, sys; os.write(1, os.environ['SLURM_PROCID'].encode()); "
            "sys.exit(4 if os.environ['SLURM_PROCID'] == '2' else 0)"
        ),
    )
    dry = host.profharness(*words, "--dry-run", *program, SLURM_JOB_ID="77")
    assert dry.returncode == 0, dry.stderr
    assert dry.stdout.startswith(
        f"launcher        srun --ntasks=3 --gpus-per-task=1 {sys.executable} -m profharness run "
    )
    assert "--launcher task --ranks 1 -- python" in dry.stdout.splitlines()[0]
    asked_for_the_plan = len(stand_in_apptainer.calls(host.image))
    done = host.profharness(
        *words,
        "--quiet",
        *program,
        PROFHARNESS_OUTPUT=str(tmp_path / "traces"),
        SLURM_JOB_ID="77",
    )
    assert done.returncode == 4, done.stderr
    assert sorted(done.stdout) == ["0", "1", "2"]
    (run,) = (tmp_path / "traces").iterdir()
    assert run.name == "slurm-77-3-python"
    manifest = decode((run / "manifest.json").read_bytes(), "manifest")
    assert (
        manifest.ranks,
        manifest.state,
        {one.rank: one.exit_status for one in manifest.rank_outcomes}.get(2),
    ) == (3, "done", 4)
    # each rank starts its workload in a container, and one of them the probe
    started = stand_in_apptainer.calls(host.image)[asked_for_the_plan:]
    assert [any(word.endswith("probe.py") for word in call) for call in started].count(True) == 1
    assert len(started) == 4


def test_slurm_where_it_cannot_be_had(tmp_path: Path) -> None:
    host = Host(tmp_path)
    absent = host.profharness("run", "--launcher", "slurm", "--", "true", PATH=str(host.programs))
    assert (absent.returncode, "there is no sbatch here" in absent.stderr) == (3, True)
    in_job = {"SLURM_JOB_ID": "7", "PATH": str(host.programs)}
    absent = host.profharness("run", "--launcher", "slurm", "--", "true", **in_job)
    assert (absent.returncode, "there is no srun here" in absent.stderr) == (3, True)
    stand_in_srun.install(host.programs)
    inside = host.profharness(
        "run",
        "--launcher",
        "slurm",
        "--",
        "true",
        SLURM_PROCID="0",
        SLURM_STEP_NUM_TASKS="2",
        SLURM_LOCALID="0",
        SLURM_JOB_ID="7",
        SLURM_STEP_ID="0",
    )
    assert (inside.returncode, "srun has started this already" in inside.stderr) == (2, True)
    wrong = host.profharness(
        "run", "--launcher", "slurm", "--ranks", "2", "--profile", "nothing", "--", "true"
    )
    assert wrong.returncode == 2
    assert wrong.stderr.count("error: ") == 1
