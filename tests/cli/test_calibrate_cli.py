"""The real calibration of this CPU, in a process of its own, and what is kept of it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from profharness.cli.calibrate import lines_of
from profharness.measure.calibration_power import PowerWatch
from profharness.node.ceilings import COPY_NAME, Calibration, decode, store, stored
from profharness.understand import report_run as understand
from profharness.units import format_share
from tests import started
from tests.processes import command_of


@pytest.mark.slow
def test_the_cpu_at_hand_is_measured_and_kept(tmp_path):
    pytest.importorskip("torch")
    environment = {**os.environ, "PROFHARNESS_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = started.run(
        "calibrate", "--device", "cpu", "--seconds", "0.05", "--json", env=environment
    )
    assert done.returncode == 0, done.stderr
    found = msgspec.json.decode(done.stdout, type=Calibration)
    assert stored(tmp_path) == (found,)
    assert (found.kind, found.compute_units) == ("cpu", 1)
    assert found.software["torch"]
    # one core does between one and a few hundred GFLOP/s, and moves between one and a few hundred
    # GB/s
    assert 1e8 < found.gemm_flops["fp32"] < 1e13
    assert found.gemm_flops["fp64"] < 1.5 * found.gemm_flops["fp32"]
    assert 1e8 < found.copy_bytes_per_s < 1e12
    assert 10 < found.launch_ns < 1e6
    assert found.round_trip_ns > 10
    assert found.gemm_flops["fp32"] == max(found.rounds["fp32"])
    assert found.copy_bytes_per_s == max(found.rounds["copy"])
    assert len(found.rounds["copy"]) == 3
    assert found.watched["other_cores"] >= 0


BUSY = "import time\nend = time.monotonic() + 120\nwhile time.monotonic() < end: pass\n"


@pytest.mark.slow
def test_beside_other_work_the_calibration_is_doubtful_and_keeps_sound_figures(tmp_path):
    """Real programs that take as many cores as there are: nothing of it is a ceiling."""
    pytest.importorskip("torch")
    environment = {**os.environ, "PROFHARNESS_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"}
    words = ("calibrate", "--device", "cpu", "--seconds", "0.05", "--json")
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        done = started.run(*words, env=environment)
        assert done.returncode == 0, done.stderr
        found = msgspec.json.decode(done.stdout, type=Calibration)
        assert {doubt.figure for doubt in found.doubts} == {*found.gemm_flops, "copy"}
        assert "while it was measured" in found.doubts[0].why
        (kept,) = stored(tmp_path)
        rates = {"fp32": 9e13, "bf16": 1e3}
        sound = msgspec.structs.replace(kept, doubts=(), watched={}, gemm_flops=rates)
        store(sound, tmp_path)
        started.run(*words, env=environment)
        (kept,) = stored(tmp_path)
        assert kept.believed("fp32") == 9e13
        assert kept.doubt("bf16"), "what a busy node exceeds is no ceiling"
    finally:
        for one in others:
            one.kill()
            one.wait()


def products(path: Path) -> None:
    """An ONNX model of four products with 1024 x 1024 matrices, which keep the size of what goes
    through them.
    """
    onnx = pytest.importorskip("onnx")
    width, names = 1024, ("x", "a", "b", "c", "y")
    weights = [
        onnx.numpy_helper.from_array(np.eye(width, dtype=np.float32)[::-1].copy(), f"w{number}")
        for number in range(4)
    ]
    nodes = [
        onnx.helper.make_node("MatMul", [names[number], f"w{number}"], [names[number + 1]])
        for number in range(4)
    ]
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", width])
        for name in ("x", "y")
    ]
    graph = onnx.helper.make_graph(nodes, "products", ends[:1], ends[1:], weights)
    onnx.save(
        onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
        ),
        path,
    )


@pytest.mark.slow
@pytest.mark.alone  # a calibration beside other work finds less than the scan reaches later
def test_a_scan_on_one_thread_is_set_against_the_calibration_of_one_thread(tmp_path):
    """Real processes from the calibration to the verdict: what is missing is said, then measured,
    then used.
    """
    pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    products(tmp_path / "products.onnx")
    environment = {**os.environ, "PROFHARNESS_CACHE": str(tmp_path / "cache")}
    environment.pop("OMP_NUM_THREADS", None)  # the threads are those asked for

    def profharness(*words: str) -> None:
        done = started.run(*words, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr

    def summary():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(
                "PROFHARNESS_CACHE", str(tmp_path / "elsewhere")
            )  # what the run keeps is enough
            return understand.summarise(understand.load([tmp_path / "run"]))

    profharness("calibrate", "--threads", "2", "--seconds", "0.05")
    profharness(
        "run",
        "--model",
        "products.onnx",
        "--backend",
        "onnxruntime",
        "--threads",
        "1",
        "--batch-sizes",
        "256",
        "--trials",
        "12",
        "--min-seconds",
        "1",
        "-o",
        "run",
    )
    lacking = summary().points[0].metrics
    for name in (
        "mfu",
        "flops_of_ceiling",
        "bandwidth_share",
        "ceiling_flops",
        "ceiling_bandwidth",
    ):
        assert lacking[name].value is None
        assert lacking[name].needs == (
            "a calibration of this CPU with 1 thread (there is one with 2): "
            "`profharness calibrate --threads 1`"
        )

    profharness("calibrate", "--threads", "1", "--seconds", "0.5")
    profharness("report", "run")
    kept = decode((tmp_path / "run" / COPY_NAME).read_bytes(), COPY_NAME)
    assert [one.compute_units for one in kept] == [2, 1]
    mine = kept[1]
    found = summary()
    point = found.points[0]
    figures = point.metrics
    told = [one for one in found.findings if one.id == "ceiling-not-believed"]
    if told or mine.doubts:
        # how fast and how busy this machine was at either time is not for a test to say; that no
        # figure stands on such a ceiling is
        assert told
        doubted = {one.figures["figure"] for one in told}
        assert (figures["mfu"].value is None) == ("fp32" in doubted)
        assert (figures["bandwidth_share"].value is None) == ("copy" in doubted)
        return
    assert figures["flops_per_item"].value == 4 * 2 * 1024**2
    assert figures["achieved_flops"].value == pytest.approx(point.throughput * 4 * 2 * 1024**2)
    mfu = figures["mfu"]
    assert (
        mfu.value
        == figures["flops_of_ceiling"].value
        == pytest.approx(figures["achieved_flops"].value / mine.gemm_flops["fp32"])
    )
    # nothing but products, by another library than the ceiling's: a good part of it
    assert 0.1 < mfu.low <= 1.2
    assert mfu.low <= mfu.value <= mfu.high
    assert mfu.note == "of calibrated GEMM, fp32"
    assert (figures["ceiling_flops"].value, figures["ceiling_flops"].source) == (
        mine.gemm_flops["fp32"],
        "calibrated GEMM, fp32",
    )
    assert (figures["ceiling_bandwidth"].value, figures["ceiling_bandwidth"].source) == (
        mine.copy_bytes_per_s,
        "calibrated copy",
    )
    moved = figures["bandwidth_share"]
    assert moved.value == pytest.approx(
        point.throughput * 1024 * 4 / mine.copy_bytes_per_s
    )  # a row of 1024 floats per item
    assert moved.note.startswith("of calibrated copy; at least")
    assert 0 < moved.value < 0.1
    assert point.verdict is not None
    assert f"of {len(os.sched_getaffinity(0))} allowed cores" in point.verdict.text
    if mfu.value >= 0.6:
        assert point.verdict.kind == "compute"
        assert point.verdict.evidence.startswith(
            f"{format_share(mfu.value)} of the measured GEMM; "
        )


@pytest.mark.slow
def test_power_at_rest_and_under_the_held_product(tmp_path):
    """The CPU packages of an emulated powercap tree: 50 W until the worker uses its core, 150 W
    while it does.
    """
    pytest.importorskip("torch")
    zone = tmp_path / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    for name, text in (
        ("name", "package-0"),
        ("max_energy_range_uj", "262143328850"),
        ("energy_uj", "0"),
    ):
        (zone / name).write_text(text + "\n")
    counter = os.open(zone / "energy_uj", os.O_WRONLY)
    environment = {
        **os.environ,
        "PROFHARNESS_CACHE": str(tmp_path / "cache"),
        "OMP_NUM_THREADS": "1",
        "PROFHARNESS_SYSFS": str(tmp_path / "sys"),
    }
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "profharness",
            "calibrate",
            "--device",
            "cpu",
            "--seconds",
            "0.05",
            "--json",
        ],
        env=environment,
        stdout=subprocess.PIPE,
    ) as process:
        joules, last = 0.0, time.monotonic()
        while process.poll() is None:
            time.sleep(0.005)
            now = time.monotonic()
            joules += (now - last) * (150 if measuring(process.pid) else 50)
            last = now
            os.pwrite(counter, f"{int(joules * 1e6):020d}\n".encode(), 0)
        found = msgspec.json.decode(process.stdout.read(), type=Calibration)
    os.close(counter)
    assert found.idle_power_w == pytest.approx(50, rel=0.02)
    assert found.gemm_power_w == pytest.approx(150, rel=0.02)
    assert found.power_scope.startswith("CPU packages of the node, ")
    assert "150 W   at rest 50 W" in "\n".join(lines_of(found))


def hidden_nvml(folder: Path) -> Path:
    """A place before all others in which NVIDIA's package is broken."""
    (folder / "pynvml.py").write_text("raise ImportError\n")
    return folder


def measuring(pid: int) -> bool:
    """Whether the harness has its worker running. A process that ends meanwhile is not running."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return any(b"calibrate_torch" in command_of(child) for child in children)
    return False


def test_without_a_source_of_power_the_calibration_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PROFHARNESS_SYSFS", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(hidden_nvml(tmp_path)))
    watch = PowerWatch()
    with watch:
        watch.rest()  # nothing to wait for
        assert watch.seconds(1.0) == 0.0
    found = watch.completed(Calibration(created="2026", kind="cpu", name="x"), None, ())
    assert found.gemm_power_w is None
    assert found.notes[0].startswith("power: ")


@pytest.mark.slow
def test_a_device_that_is_not_there_is_missing(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = started.run(
        "calibrate", "--device", "cuda:3", env={**os.environ, "PROFHARNESS_CACHE": str(tmp_path)}
    )
    assert done.returncode == 3
    assert done.stderr.startswith("error: --device cuda:3: torch ")
    assert "sees no GPU" in done.stderr
    assert "or use --device cpu" in done.stderr
    assert not (tmp_path / "calibration").exists()


def test_the_table_sets_figures_against_the_data_sheet():
    found = Calibration(
        created="2026",
        kind="cuda",
        name="NVIDIA H200",
        architecture="sm_90",
        compute_units=132,
        software={"torch": "2"},
        gemm_flops={"bf16": 700e12, "fp32": 50e12},
        copy_bytes_per_s=4.0e12,
        launch_ns=3000.0,
        round_trip_ns=9000.0,
        notes=("int8: no",),
    )
    text = "\n".join(lines_of(found))
    assert "132 compute units" in text
    assert f"{100 * 700 / 989.43:.1f} % of the data sheet" in text
    assert "83.3 % of the data sheet" in text
    assert "left out   int8: no" in text
    assert json.loads(msgspec.json.encode(found))["copy_bytes_per_s"] == 4.0e12
