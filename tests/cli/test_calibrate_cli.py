"""The real calibration of this CPU, in a process of its own, and what is kept of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import msgspec
import pytest

from profharness.calibration import Calibration, stored
from profharness.cli.calibrate import lines_of


@pytest.mark.slow
def test_the_cpu_at_hand_is_measured_and_kept(tmp_path):
    pytest.importorskip("torch")
    environment = {**os.environ, "PROFHARNESS_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", "profharness", "calibrate", "--device", "cpu", "--seconds", "0.05", "--json"],
                          env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = msgspec.json.decode(done.stdout, type=Calibration)
    assert stored(tmp_path) == (found,)
    assert (found.kind, found.compute_units) == ("cpu", 1)
    assert found.software["torch"]
    # one core does between one and a few hundred GFLOP/s, and moves between one and a few hundred GB/s
    assert 1e8 < found.gemm_flops["fp32"] < 1e13
    assert found.gemm_flops["fp64"] < 1.5 * found.gemm_flops["fp32"]
    assert 1e8 < found.copy_bytes_per_s < 1e12
    assert 10 < found.launch_ns < 1e6
    assert found.round_trip_ns > 10


def test_a_device_that_is_not_there_is_missing(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = subprocess.run([sys.executable, "-m", "profharness", "calibrate", "--device", "cuda:3"],
                          env={**os.environ, "PROFHARNESS_CACHE": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "sees no GPU" in done.stderr
    assert not (tmp_path / "calibration").exists()


def test_the_table_sets_figures_against_the_data_sheet():
    found = Calibration(created="2026", kind="cuda", name="NVIDIA H200", architecture="sm_90", compute_units=132, software={"torch": "2"},
                        gemm_flops={"bf16": 700e12, "fp32": 50e12}, copy_bytes_per_s=4.0e12, launch_ns=3000.0, round_trip_ns=9000.0, notes=("int8: no",))
    text = "\n".join(lines_of(found))
    assert "132 compute units" in text
    assert f"{100 * 700 / 989.43:.1f} % of the data sheet" in text
    assert "83.3 % of the data sheet" in text
    assert "left out   int8: no" in text
    assert json.loads(msgspec.json.encode(found))["copy_bytes_per_s"] == 4.0e12
