"""The training workloads: CIFAR-100's format, ranks, the scripts themselves, and both by name under
layers.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import pickle
import socket
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profharness.understand import report_run as understand
from tests import started

WORKLOADS = Path(__file__).resolve().parents[2] / "wrappers" / "profharness_workloads"
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PROFHARNESS_", "SLURM_", "OMPI_", "RANK", "WORLD_SIZE", "MASTER_"))
}
needs_training = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "transformers", "accelerate")),
    reason="needs torch, transformers and accelerate (the training extra)",
)


def module(name: str) -> Any:
    """A module of the workloads folder, loaded by path."""
    spec = importlib.util.spec_from_file_location(
        f"workload_{name}", WORKLOADS / "training" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


cifar100 = module("cifar100")
process_group = module("process_group")


TRAINING = ("torch", "torch._dynamo")  # what each script that trains imports before all else


def run(
    script: str, *words: str, cwd: Path, imported: Sequence[str] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    return started.finished(
        [sys.executable, str(WORKLOADS / "training" / script), *words],
        imported,
        cwd=cwd,
        timeout=280,
        env={**PLAIN, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **env},
    )


def small_archive(
    folder: Path, count: int = 20, record: Mapping[bytes, object] | None = None
) -> dict[bytes, object]:
    """The archive's layout with `count` images."""
    rng = np.random.default_rng(1)
    made = {
        b"data": rng.integers(0, 256, (count, 3072), dtype=np.uint8),
        b"fine_labels": rng.integers(0, 100, count).tolist(),
        b"coarse_labels": [0] * count,
    }
    made.update(record or {})
    data = pickle.dumps(made, protocol=2)
    with tarfile.open(folder / cifar100.ARCHIVE, "w:gz") as tar:
        info = tarfile.TarInfo("cifar-100-python/train")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return made


def test_the_archive_is_read_as_its_page_describes_it(tmp_path: Path) -> None:
    made = small_archive(tmp_path)
    images = cifar100.load(str(tmp_path), 7, 1)
    assert images.origin.endswith(cifar100.ARCHIVE)
    np.testing.assert_array_equal(images.pixels.reshape(20, -1), made[b"data"])
    assert images.labels.tolist() == made[b"fine_labels"]
    # row-major colour planes: the first 1024 bytes are the red of row 0 first
    np.testing.assert_array_equal(images.pixels[3, 0, 1], np.asarray(made[b"data"])[3, 32:64])


def test_an_unpacked_archive_is_read_too(tmp_path: Path) -> None:
    small_archive(tmp_path)
    with tarfile.open(tmp_path / cifar100.ARCHIVE) as tar:
        tar.extractall(tmp_path, filter="data")
    (tmp_path / cifar100.ARCHIVE).unlink()
    assert len(cifar100.load(str(tmp_path), 7, 1).labels) == 20


def test_without_data_it_is_synthetic_and_says_so(tmp_path: Path) -> None:
    images = cifar100.load(str(tmp_path), 64, 3)
    assert images.pixels.shape == (64, 3, 32, 32)
    assert "synthetic" in images.origin
    assert 0 <= images.labels.min() <= images.labels.max() < 100


class Harm:
    """A pickle that would run a program."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch harmed",)


@pytest.mark.parametrize(
    "record",
    [{b"data": Harm()}, {b"fine_labels": [1, 2]}],
    ids=["runs-a-program", "labels-missing"],
)
def test_a_damaged_archive_is_refused_and_runs_nothing(
    tmp_path: Path, record: dict[bytes, object]
) -> None:
    small_archive(tmp_path, record=record)
    done = run("train_cifar100.py", "--data-path", ".", cwd=tmp_path)
    assert done.returncode == 4
    assert "train-cifar100: " in done.stderr
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, (0, 1, 0, ())),
        (
            {
                "RANK": "3",
                "WORLD_SIZE": "8",
                "LOCAL_RANK": "1",
                "MASTER_ADDR": "a",
                "MASTER_PORT": "1",
            },
            (3, 8, 1, ()),
        ),
        (
            {"SLURM_PROCID": "5", "SLURM_NPROCS": "16", "SLURM_LOCALID": "5"},
            (5, 16, 5, ("MASTER_ADDR", "MASTER_PORT")),
        ),
        (
            {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "MASTER_PORT": "9"},
            (1, 2, 1, ("MASTER_ADDR",)),
        ),
    ],
)
def test_ranks_by_the_variables_of_each_launcher(
    environ: dict[str, str], expected: tuple[object, ...]
) -> None:
    assert tuple(process_group.find(environ)) == expected


@pytest.mark.parametrize(
    "words",
    [["--model", "alexnet"], ["--batch-size", "0"], ["--precision", "int4"], ["--workers", "-1"]],
)
def test_wrong_words_are_usage_errors(tmp_path: Path, words: list[str]) -> None:
    assert run("train_cifar100.py", *words, cwd=tmp_path).returncode == 2


def test_a_download_that_fails_says_what_to_do(tmp_path: Path) -> None:
    done = run(
        "train_cifar100.py",
        "--download-only",
        "--data-path",
        str(tmp_path),
        cwd=tmp_path,
        https_proxy="http://127.0.0.1:9",
    )
    assert done.returncode == 4
    assert "by hand" in done.stderr


@needs_training
@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "precision"),
    [
        ("swinv2", "bfloat16"),
        pytest.param("resnet", "float32", marks=pytest.mark.thorough),
        pytest.param("vit", "automixed", marks=pytest.mark.thorough),
    ],
)
def test_each_model_and_precision_trains(tmp_path: Path, model: str, precision: str) -> None:
    done = run(
        "train_cifar100.py",
        "--model",
        model,
        "--precision",
        precision,
        "--layers",
        "1",
        "--max-steps",
        "3",
        "--batch-size",
        "4",
        cwd=tmp_path,
        imported=TRAINING,
    )
    assert done.returncode == 0, done.stderr
    assert f"steps: 3 of batch 4 per rank, 1 rank(s), {model}, {precision}" in done.stdout


@needs_training
@pytest.mark.slow
def test_workers_load_the_same_batches(tmp_path: Path) -> None:
    """Its last line has the losses: they are those without workers, over two epochs."""
    small_archive(tmp_path, 12)
    words = ("--layers", "1", "--max-steps", "5", "--batch-size", "4", "--max-epochs", "2")
    said = [
        run(
            "train_cifar100.py",
            *("--data-path", ".", "--workers", workers, *words),
            cwd=tmp_path,
            imported=TRAINING,
            OMP_NUM_THREADS="1",
        ).stdout.splitlines()
        for workers in ("0", "2")
    ]
    assert said[0][1].startswith("steps: 5 of batch 4")
    assert said[0][-1].startswith("loss: ")
    assert said[1][-1] == said[0][-1]


@needs_training
@pytest.mark.slow
def test_two_ranks_share_the_data_and_stay_equal(tmp_path: Path) -> None:
    small_archive(tmp_path, 40)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    words = [
        sys.executable,
        str(WORKLOADS / "training" / "train_cifar100.py"),
        "--layers",
        "1",
        "--max-steps",
        "9",
        "--batch-size",
        "5",
        "--torch-profile",
        "--data-path",
        str(tmp_path),
    ]
    ranks = [
        started.python(
            words,
            TRAINING,
            cwd=tmp_path,
            env={
                **PLAIN,
                "OMP_NUM_THREADS": "1",
                "SLURM_PROCID": str(n),
                "SLURM_NPROCS": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
            },
        )
        for n in range(2)
    ]
    said = [rank.communicate(timeout=280) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], said
    assert "steps: 4 of batch 5 per rank, 2 rank(s)" in said[0][0]  # 40 images: 20 per rank
    assert said[1][0] == ""
    names = {
        event.get("name", "")
        for event in json.loads((tmp_path / "profile" / "trace-1.json").read_text())["traceEvents"]
    }
    assert any("allreduce" in name for name in names)


@needs_training
@pytest.mark.slow
def test_the_language_model_trains_where_the_hub_is_out_of_reach(tmp_path: Path) -> None:
    done = run(
        "finetune_gpt_neo.py",
        "--max-steps",
        "2",
        "--batch-size",
        "2",
        "--weights",
        "auto",
        cwd=tmp_path,
        imported=TRAINING,
        HF_ENDPOINT="http://127.0.0.1:9",
    )
    assert done.returncode == 0, done.stderr
    assert "cannot be had" in done.stderr
    assert "steps: 2 of batch 2" in done.stdout
    assert "perplexity: " in done.stdout
    assert (tmp_path / "train-output" / "gpt-imdb-model" / "model.safetensors").is_file()


@needs_training
@pytest.mark.slow
def test_the_hubs_weights_when_insisted_on(tmp_path: Path) -> None:
    done = run(
        "finetune_gpt_neo.py",
        "--weights",
        "hub",
        cwd=tmp_path,
        imported=TRAINING,
        HF_ENDPOINT="http://127.0.0.1:9",
        HF_HOME=str(tmp_path / "hf"),
    )
    assert done.returncode == 3
    assert "finetune-gpt-neo: " in done.stderr


@needs_training
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words", "ranks"),
    [
        (
            "train-cifar100",
            ["--model", "vit", "--layers", "1", "--max-steps", "6", "--batch-size", "4"],
            2,
        ),
        pytest.param(
            "finetune-gpt-neo",
            ["--weights", "random", "--train-only", "--max-steps", "6", "--batch-size", "2"],
            1,
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_by_name_under_a_layer(tmp_path: Path, name: str, words: list[str], ranks: int) -> None:
    """As a command of that name: its steps are found, and its operators lie inside them; two ranks
    add their gradients up.
    """
    several = ["--ranks", str(ranks)] if ranks > 1 else []
    done = started.run(
        "run",
        name,
        *several,
        "--profile",
        "torch",
        "--capture",
        "all",
        "--telemetry",
        "cpu",
        "-o",
        "run",
        "--",
        *words,
        cwd=tmp_path,
        env={**PLAIN, "OMP_NUM_THREADS": "1"},
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    loaded = understand.load([tmp_path / "run"])
    assert loaded.manifest is not None
    assert loaded.manifest.kind == "command"
    trace = loaded.trace
    steps = trace.marks.take(trace.marks.kind == trace.strings.find("step"))
    assert len(np.unique(steps.start_ns)) >= 5
    backward = [code for code, text in enumerate(trace.strings) if "AddmmBackward" in text]
    rows = trace.ops.take(np.isin(trace.ops.name, backward))
    assert len(rows) >= 6
    talk = understand.summarise(loaded).communication
    assert (talk is not None) == (ranks > 1)
    if talk is not None:
        gradients = [
            row for row in talk.collectives if row.kind == "all_reduce" and row.calls >= 2 * 5
        ]  # the first step's buckets differ
        assert {(row.ranks, row.group_size) for row in gradients} == {(2, 2)}
        assert all(
            row.bus_bandwidth == row.algorithm_bandwidth for row in gradients
        )  # 2 (n - 1) / n of two ranks
        assert [one.rank for one in talk.devices] == [0, 1]
        assert talk.skew is not None
        assert talk.skew.unmatched == 0
