"""Each benchmark runs to its end with hardly anything to measure: they are used rarely, and would
rot unseen.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import CHROMIUM
from tests.conftest import ROOT
from tests.variants import but_for

BENCHMARKS = ROOT / "benchmarks"
PROGRAMS = {path.stem for path in BENCHMARKS.glob("*.py")} - {"description"}
PERF_ANALYZER = ROOT / ".tools" / "perf-analyzer" / "perf_analyzer"

# what each is told so that it has next to nothing to do, and what it prints then
TINY = {
    "compare_pairs": (("--drifts", "0.01", "--ratios", "1", "--pairs", "2"), "each  1.0 %"),
    "damaged_inputs": (("--files", "4"), "ours"),
    "live_page": (("--rounds", "2", "--steps", "3", "--step-ms", "5"), "with / without"),
    "one_large_file": (
        ("--kernels", "100", "--repeats", "1", "--commands", "hotspots"),
        "busy loops",
    ),
    "read_rocprof": (("--kernels", "100", "--repeats", "1"), "rocpd: "),
    "sampler_cost": (("--seconds", "2"), "shell"),
    "search_settings": (("--surfaces", "2"), "within 5 %"),
    "step_detection": (
        ("--levels", "10", "--errors", "0.05", "--ratios", "1.3", "--seeds", "2"),
        "5.0 %",
    ),
    "vit_in_plain_layers": (("--steps", "2", "--batch", "1"), "s per step"),
    "write_perfetto": (("--kernels", "100", "--samples", "100"), '"kernels": 100'),
}


def start(name: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{name}.py"), *map(str, words)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def in_place(
    monkeypatch: pytest.MonkeyPatch, name: str, folder: Path, *words: str
) -> tuple[object, Path]:
    """A benchmark that always keeps its figures, run here with another root for them; what it
    returns, and where they are.
    """
    monkeypatch.syspath_prepend(BENCHMARKS)
    spec = importlib.util.spec_from_file_location(f"tiny_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    results = folder / "benchmarks" / "results"
    if hasattr(module, "RESULTS"):
        monkeypatch.setattr(module, "RESULTS", results)
    # programs are still found where they are
    for entry in ROOT.iterdir():
        if entry.name != "benchmarks":
            (folder / entry.name).symlink_to(entry)
    results.mkdir(parents=True)
    for entry in BENCHMARKS.glob("*.py"):
        (folder / "benchmarks" / entry.name).symlink_to(entry)
    monkeypatch.setattr(module, "ROOT", folder)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *words])
    return module.main(), results


def test_every_benchmark_is_here() -> None:
    elsewhere = {
        *("bare_overhead", "compare_answers", "count_steps", "load_generator", "make_kineto"),
        *("fleet_held_out", "fleet_size", "many_ranks", "page_load", "read_kineto", "scale"),
        *("scan_cifar", "scan_intervals", "search_served", "serve_again"),
    }
    assert {*TINY, *elsewhere} == PROGRAMS


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", but_for(TINY, ("step_detection", "vit_in_plain_layers", "write_perfetto").__contains__)
)
def test_it_measures_and_prints(name: str) -> None:
    words, said = TINY[name]
    done = start(name, *words)
    # 1 where the figures miss the goal, which they do with so little to read
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert said in done.stdout


@pytest.mark.slow
def test_a_generated_trace_is_read_by_all_who_are_there(tmp_path: Path) -> None:
    trace, truth = tmp_path / "trace.json", tmp_path / "truth.json"
    done = start("make_kineto", "--kernels", "100", "-o", trace, "--truth", truth)
    assert done.returncode == 0, done.stderr
    assert json.loads(trace.read_text())["traceEvents"]
    assert truth.stat().st_size > 0
    done = start("read_kineto", trace, "--repeats", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MiB" in done.stdout


@pytest.mark.thorough
def test_the_cost_of_the_bare_pass() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("torch")
    done = start(
        "bare_overhead",
        *("--backend", "onnxruntime", "--batch", "1"),
        *("--trials", "1", "--rounds", "2", "--starts", "2"),
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: not within one per cent
    assert "bare pass / plain script" in done.stdout


@pytest.mark.slow
def test_the_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, results = in_place(
        monkeypatch, "scale", tmp_path, "--sizes", "100", "--repeats", "1", "--no-hta"
    )
    (kept,) = results.glob("scale-*.json")
    (trace,) = json.loads(kept.read_text())["traces"]
    assert trace["kernels"] == 100
    assert trace["costs"]


@pytest.mark.slow
def test_many_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, results = in_place(
        monkeypatch,
        "many_ranks",
        tmp_path,
        *("--ranks", "2,4", "--kernels", "40", "--rounds", "1"),
    )
    assert status in (0, 1)
    (kept,) = results.glob("many-ranks-*.json")
    found = json.loads(kept.read_text())["ranks"]
    assert {count: sorted(costs) for count, costs in found.items()} == {
        count: ["merge", "metrics", "report"] for count in ("2", "4")
    }


@pytest.mark.thorough
def test_the_load_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("pytriton") is None:
        pytest.skip("needs nvidia-pytriton (the triton extra)")
    if not PERF_ANALYZER.exists():
        pytest.skip("needs perf_analyzer (make perf-analyzer)")
    status, results = in_place(
        monkeypatch,
        "load_generator",
        tmp_path,
        *("--models", "sleep:1ms", "--concurrency", "1", "--protocols", "grpc"),
        *("--libraries", "h2", "--rounds", "1", "--seconds", "0.2", "--lead", "0.2"),
    )
    assert isinstance(status, int)
    (kept,) = results.glob("load-generator-*.json")
    clients = [one["client"] for one in json.loads(kept.read_text())["levels"]]
    assert clients == ["ours", *(["h2"] if importlib.util.find_spec("h2") else [])]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (or chrome) on the PATH")
def test_the_load_of_the_page(tmp_path: Path) -> None:
    kept = tmp_path / "load.json"
    done = start("page_load", "--rounds", "1", "-o", kept)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: above the goal
    assert "Traceback" not in done.stderr, done.stderr
    assert json.loads(kept.read_text())


def _kept_elsewhere(
    monkeypatch: pytest.MonkeyPatch, name: str, folder: Path, *words: str
) -> dict[str, object]:
    """What a benchmark keeps by `description.keep`, run here with another folder for it."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setattr(importlib.import_module("description"), "RESULTS", folder)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *words])
    importlib.import_module(name).main()
    (kept,) = folder.glob("*.json")
    told: dict[str, object] = json.loads(kept.read_text())
    return told


@pytest.mark.thorough
def test_the_size_of_a_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = _kept_elsewhere(monkeypatch, "fleet_size", tmp_path, "--requests", "20000")
    assert told["requests"] == 20000
    assert told["devices"]
    assert told["published"]


@pytest.mark.thorough
def test_the_forecasts_of_a_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("pytriton") is None:
        pytest.skip("needs nvidia-pytriton (the triton extra)")
    told = _kept_elsewhere(monkeypatch, "fleet_held_out", tmp_path, "--seconds", "1")
    assert isinstance(told["levels"], list)
    assert len(told["levels"]) == 12


@pytest.mark.thorough
def test_the_scan_of_a_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for needed in ("torch", "transformers"):
        pytest.importorskip(needed)
    words = ("--batch", "2,4", "--workers", "0,1", "--repeats", "1", "--steps", "2")
    told = _kept_elsewhere(monkeypatch, "scan_cifar", tmp_path, *words)
    assert isinstance(told["points"], list)
    assert {one["point"] for one in told["points"]} == {
        f"batch{batch}-workers{workers}" for batch in (2, 4) for workers in (0, 1)
    }
    assert told["curves"]
