"""`profharness serve`: what it asks of the server, what it prints, and a real one from start to
Ctrl-C.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import msgspec
import pytest

from profharness.cli.serve import lines_of
from profharness.errors import UsageError
from profharness.serving.ready import Model, Ready, Tensor
from profharness.workers.standing_server import Offer
from tests.processes import below
from tests.wrappers.triton import short_home, slowest_end_s


def test_models_are_named_and_their_backends_follow_from_the_files(tmp_path: Path):
    (tmp_path / "m.onnx").touch()
    (tmp_path / "m.pt").touch()
    offer = Offer(
        models=("particlenet", f"tagger={tmp_path}/m.onnx", f"{tmp_path}/m.pt", "slow=sleep:5ms"),
        instances=2,
        token="t",
    )
    said = offer.settings(tmp_path)
    assert said["models"] == [
        {"model": "particlenet", "backend": "torch"},
        {"name": "tagger", "model": f"{tmp_path}/m.onnx", "backend": "onnxruntime"},
        {"model": f"{tmp_path}/m.pt", "backend": "torch"},
        {"name": "slow", "model": "sleep:5ms", "backend": "torch"},
    ]
    assert (said["instances"], said["token"], said["records"], said["host"], said["grpc_port"]) == (
        2,
        "t",
        False,
        "127.0.0.1",
        0,
    )
    assert (
        Offer(models=("particlenet",), backend="onnxruntime").settings(tmp_path)["backend"]
        == "onnxruntime"
    )


@pytest.mark.parametrize(
    ("models", "shapes", "words"),
    [
        (("absent.onnx",), {}, "no model or file"),
        (("{here}",), {}, "not a model of a known kind"),
        (("particlenet", "sleep:1ms"), {"x": (1,)}, "--shape"),
    ],
)
def test_what_cannot_be_served(
    tmp_path: Path, models: tuple[str, ...], shapes: dict[str, tuple[int, ...]], words: str
):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UsageError, match=words):
        Offer(
            models=tuple(model.format(here=tmp_path / "notes.txt") for model in models),
            shapes=shapes,
        ).settings(tmp_path)


READY = Ready(
    v=1,
    host="node7",
    grpc="127.0.0.1:8001",
    http="127.0.0.1:8000",
    metrics="http://127.0.0.1:8002/metrics",
    models=(
        Model(
            "jets",
            max_batch_size=64,
            instances=2,
            backend="torch",
            device="cuda:0",
            inputs=(Tensor("x", "FP32", (2, -1)),),
            outputs=(Tensor("y", "FP32", ()),),
        ),
    ),
)


def test_it_says_what_is_served_and_how_to_measure_it():
    text = "\n".join(lines_of(READY))
    assert "serving jets (torch on cuda:0, 2 instances, batches up to 64)" in text
    assert "x FP32 [batch, 2, any]" in text
    assert "y FP32 [batch]" in text
    assert "profharness run --url grpc://127.0.0.1:8001 --model jets --concurrency 1,2,4,8" in text
    assert f"kill {os.getpid()}" in text
    assert "token" not in text
    assert "--ca" not in text


def test_an_opened_server_is_named_as_others_call_it():
    opened = msgspec.structs.replace(
        READY,
        opened=True,
        tls=True,
        token="se cret",
        fallback="no GPU: served from the CPU instead",
    )
    text = "\n".join(lines_of(opened))
    assert "gRPC     node7:8001  (TLS)" in text
    assert "HTTP     127.0.0.1:8000" in text
    assert (
        "PROFHARNESS_TOKEN='se cret' profharness run --url grpcs://node7:8001 --model jets" in text
    )
    assert "add --ca FILE where a private authority signed the certificate" in text
    assert "note     no GPU" in text
    assert "http://node7:8002/metrics" in "\n".join(
        lines_of(msgspec.structs.replace(opened, tls=False))
    )


def started(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    env = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PROFHARNESS_")},
        "OMP_NUM_THREADS": "1",
        "PYTRITON_HOME": str(short_home()),
        "TMPDIR": str(tmp_path),
        "PYTHONUNBUFFERED": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "profharness", "serve", *words],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.xdist_group("triton-server")
@pytest.mark.skipif(importlib.util.find_spec("pytriton") is None, reason="needs the extra triton")
def test_a_server_from_start_to_ctrl_c(tmp_path: Path):
    begun = time.monotonic()
    process = started(tmp_path, "nap=sleep:1ms", "--instances", "2")
    assert process.stdout is not None
    lines = []
    while not (lines and lines[-1].startswith("end it")):
        line = process.stdout.readline()
        assert line, process.communicate()
        lines.append(line)
    longest_s = slowest_end_s(time.monotonic() - begun)
    http = next(line.split()[1] for line in lines if line.startswith("HTTP"))
    processes = below(process.pid)
    with urllib.request.urlopen(f"http://{http}/v2/models/nap/config", timeout=60) as answer:
        assert json.load(answer)["instance_group"][0]["count"] == 2
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert time.monotonic() - begun < longest_s
    assert (process.returncode, err.strip()) == (
        0,
        "profharness: ending the server; clients get no further answers",
    )
    assert [one for one in processes if one.runs] == []
    assert list(tmp_path.glob("profharness-serve-*")) == []


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pytriton") is None, reason="needs the extra triton")
def test_a_refusal_is_one_sentence_with_its_exit_code(tmp_path: Path):
    process = started(tmp_path, "sleep:soon")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    assert err.startswith("error: 'sleep:soon' is not of the form sleep:TIME\n")


def test_a_repository_is_asked_for_by_its_folder(tmp_path: Path):
    said = Offer(models=("sleep:5ms",), ragged=True, repository=str(tmp_path / "new")).settings(
        tmp_path
    )
    assert (said["ragged"], said["repository"]) == ("triton", str(tmp_path / "new"))
    alone = Offer(models=("sleep:5ms",), repository=str(tmp_path / "new")).settings(tmp_path)
    assert alone["ragged"] == "repository"
    plain = Offer(models=("sleep:5ms",)).settings(tmp_path)
    assert (plain["ragged"], plain["repository"]) == ("none", "")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"repository": "new", "models": ("m.graphdef",)}, "--repository: Triton runs models"),
        ({"ragged": True, "repository": "."}, "is not empty"),
        ({"ragged": True, "models": ("m.graphdef",)}, "models of torch and onnxruntime"),
    ],
)
def test_a_repository_that_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, object], words: str
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.graphdef").touch()
    offer = msgspec.convert({"models": ("sleep:5ms",), **more}, Offer)
    with pytest.raises(UsageError, match=words):
        offer.settings(tmp_path)


@pytest.mark.slow
@pytest.mark.xdist_group("triton-server")
@pytest.mark.skipif(importlib.util.find_spec("pytriton") is None, reason="needs the extra triton")
def test_triton_itself_serves_from_a_repository_that_stays(tmp_path: Path):
    kept = tmp_path / "kept"
    process = started(tmp_path, "nap=sleep:5ms", "--ragged", "--repository", str(kept))
    assert process.stdout is not None
    lines = []
    while not (lines and lines[-1].startswith("end it")):
        line = process.stdout.readline()
        assert line, process.communicate()
        lines.append(line)
    assert any(line.startswith(f"models   {kept}") for line in lines)
    http = next(line.split()[1] for line in lines if line.startswith("HTTP"))
    with urllib.request.urlopen(f"http://{http}/v2/models/nap/config", timeout=60) as answer:
        (tensor,) = json.load(answer)["input"]
    assert (tensor["dims"], tensor["allow_ragged_batch"]) == ([-1], True)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert (kept / "nap" / "1" / "model.py").is_file()
    assert (tmp_path / "kept-for-other-backends" / "tensorrt" / "nap" / "config.pbtxt").is_file()
