"""Small files and runs that the tests of this folder report on."""

from __future__ import annotations

import contextlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from profharness.cli import run_cli

SAMPLES = Path(__file__).parents[2] / "samples"
SCAN = """\
device,batch_size,throughput,throughput_sem,latency_ms
A100,1,900,5,1.1
A100,4,2357,12,1.7
A100,16,8000,20,2
A100,64,16000,25,4
A100,256,24331,41,10.5
A100,1024,24435,38,41
T4,1,400,5,2.5
T4,4,1200,12,3.3
T4,16,3000,20,5.3
T4,64,5000,25,12.8
T4,256,5100,41,50
"""


def event(category: str, name: str, start_us: float, dur_us: float, **args: int) -> object:
    device = category in ("kernel", "gpu_memcpy")
    where = {"device": 0, "stream": 0} if device else {}
    tracks = (0, 0) if device else (7, 8)
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": tracks[0],
        "tid": tracks[1],
        "ts": start_us,
        "dur": dur_us,
        "args": {**args, **where},
    }


def kineto_text(scale: float = 1.0) -> str:
    """A trace of two kernels, a copy and their calls; the kernels take `scale` times as long."""
    events = [
        event("cpu_op", "aten::linear", 10.0, 20.0),
        event("cuda_runtime", "hipLaunchKernel", 14.0, 2.0, correlation=1),
        event("kernel", "void gemm_kernel<float, 128>(float*)", 20.0, 30.5 * scale, correlation=1),
        event("cuda_runtime", "hipLaunchKernel", 24.0, 2.0, correlation=2),
        event("kernel", "void add_kernel<float>(float*)", 220.0, 10.25 * scale, correlation=2),
        event("cuda_runtime", "hipMemcpyAsync", 27.0, 2.0, correlation=3),
        event("gpu_memcpy", "Memcpy DtoH", 280.0, 5.0, correlation=3, bytes=4),
    ]
    devices = [{"id": 0, "name": "AMD Instinct <MI250X>", "numSms": 110}]
    return json.dumps({"schemaVersion": 1, "deviceProperties": devices, "traceEvents": events})


def run_cells(notebook: Path) -> dict[str, object]:
    """The names that a notebook's code leaves, run in the folder where it lies."""
    pytest.importorskip("matplotlib").use("agg")
    cells = json.loads(notebook.read_text())["cells"]
    names: dict[str, object] = {}
    with contextlib.chdir(notebook.parent):
        for cell in cells:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
    return names


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, empty."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def kineto(tmp_path: Path) -> Path:
    path = tmp_path / "small.pt.trace.json"
    path.write_text(kineto_text())
    return path


@pytest.fixture
def slower(tmp_path: Path) -> Path:
    """The same trace, its kernels twice as long."""
    path = tmp_path / "slower.pt.trace.json"
    path.write_text(kineto_text(2.0))
    return path


@pytest.fixture
def scan_csv(tmp_path: Path) -> Path:
    path = tmp_path / "scan.csv"
    path.write_text(SCAN)
    return path


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Path]:
    """A run directory that an earlier version left, unpacked, by its name."""

    def unpacked(name: str, to: str = "run") -> Path:
        with tarfile.open(SAMPLES / f"{name}.tar.xz") as archive:
            archive.extractall(tmp_path / to, filter="data")
        (manifest,) = (tmp_path / to).rglob("manifest.json")
        return manifest.parent

    return unpacked


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints; it must end well."""

    def of(*words: str | Path) -> str:
        assert run_cli([str(word) for word in words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return of
