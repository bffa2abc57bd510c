"""Ranks in containers of a real Apptainer, started by a real Slurm on two nodes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from profharness.rundir.manifest import decode
from tests import real_apptainer
from tests.slurm.cluster import Cluster
from tests.slurm.test_two_nodes import done, start

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]

PROGRAM = """
import json, os
words = ("APPTAINER_CONTAINER", "ROCR_VISIBLE_DEVICES", "MIOPEN_USER_DB_PATH", "PYTHONNOUSERSITE")
told = {"rank": os.environ["SLURM_PROCID"], **{word: os.environ.get(word) for word in words}}
os.write(1, (json.dumps(told) + "\\n").encode())
"""


def _counted(folder: Path, program: Path) -> Path:
    """A folder for PATH whose apptainer notes each start, with its node, and is the real one."""
    folder.mkdir()
    shim = folder / "apptainer"
    shim.write_text(
        f'#!/bin/sh\necho "$(hostname) $*" | tr "\\n" " " >> {folder}/starts.$$\n'
        f'exec "{program}" "$@"\n'
    )
    shim.chmod(0o755)
    return folder


def test_four_ranks_on_two_nodes(cluster: Cluster, tmp_path: Path) -> None:
    """One probe per node, one container per rank; what hides devices inside is known of each."""
    program = real_apptainer.require()
    image = real_apptainer.build(program, tmp_path)
    real_apptainer.started(program, "exec", "--bind", real_apptainer.BIND, image, "true")
    programs = _counted(tmp_path / "programs", program)
    variables = cluster.variables
    line = (
        *("env", f"PATH={programs}:{variables['PATH']}", sys.executable, "-m", "profharness"),
        *("run", "--launcher", "slurm", "--ranks", "4", "--nodes", "2", "--telemetry", "off"),
        *("--container", str(image), "--container-bind", real_apptainer.BIND),
        *("--container-caches", str(tmp_path / "caches")),
        *("--container-init", "export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID"),
        *("--", "python3", "-c", PROGRAM),
    )
    status, _, err = done(start(cluster, tmp_path, line))
    assert status == 0, err
    (run,) = (tmp_path / "traces").glob("slurm-*-python3")
    manifest = decode((run / "manifest.json").read_bytes(), "manifest")
    assert (manifest.ranks, manifest.state) == (4, "done")
    assert {one.host for one in manifest.rank_outcomes} == {"n1", "n2"}
    log = next((tmp_path / "traces/slurm").glob("*.log")).read_text()
    told = [json.loads(row) for row in log.splitlines() if row.startswith('{"rank"')]
    assert sorted(int(row["rank"]) for row in told) == [0, 1, 2, 3]
    masks = {int(row["rank"]): row["ROCR_VISIBLE_DEVICES"] for row in told}
    assert len(set(masks.values())) > 1  # Slurm may put three ranks on one node
    assert {row["MIOPEN_USER_DB_PATH"] for row in told} == {str(tmp_path / "caches")}
    assert {row["PYTHONNOUSERSITE"] for row in told} == {"1"}  # the definition's
    assert {Path(row["APPTAINER_CONTAINER"]).name for row in told} == {image.name}
    starts = [path.read_text() for path in programs.glob("starts.*")]
    probes = sorted(row.split()[0] for row in starts if "probe.py" in row)
    assert probes == ["n1", "n2"]
    assert len(starts) == 4 + 2
    assert {process.rank: process.masks for process in manifest.processes} == {
        rank: {"ROCR_VISIBLE_DEVICES": mask} for rank, mask in masks.items()
    }
