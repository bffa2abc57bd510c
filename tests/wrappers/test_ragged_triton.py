"""Ragged batches by Triton itself: a real server with a repository that we wrote, and requests of
different lengths that meet in one batch.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.wrappers.control import until
from tests.wrappers.triton import Server, client, infer

if any(
    importlib.util.find_spec(name) is None
    for name in ("torch", "onnxruntime", "pytriton", "tritonclient")
):
    pytest.skip("needs the extras torch, onnx and triton", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("triton-server")]
LENGTHS = range(3, 10)
SCRIPT = '''
import sys, torch

class Masked(torch.nn.Module):
    """Mean over the particles that the mask lets through, of a hidden layer: padding is neutral."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.hidden = torch.nn.Conv1d(2, 16, 1)

    def forward(self, pf_x, pf_mask):
        seen = torch.tanh(self.hidden(pf_x)) * pf_mask
        return seen.sum(dim=2) / pf_mask.sum(dim=2)

class Mean(torch.nn.Module):
    """Without a mask padding would change it."""

    def forward(self, x):
        return x.mean(dim=2)

torch.jit.script(Masked().eval()).save(sys.argv[1])
torch.jit.script(Mean().eval()).save(sys.argv[2])
'''
CONFIG = """
max_batch_size: 16
input [ {inputs} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ {width} ] }} ]
"""
INPUT = '{{ name: "{}" data_type: TYPE_FP32 dims: [ {}, -1 ] }}'


def model_folder(root: Path, name: str, inputs: dict[str, int], width: int) -> Path:
    (root / name / "1").mkdir(parents=True)
    listed = ", ".join(INPUT.format(*one) for one in inputs.items())
    (root / name / "config.pbtxt").write_text(CONFIG.format(inputs=listed, width=width))
    return root / name / "1" / "model.pt"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("ragged")
    masked = model_folder(root, "masked", {"pf_x": 2, "pf_mask": 1}, 16)
    mean = model_folder(root, "mean", {"x": 2}, 2)
    (root / "make.py").write_text(SCRIPT)  # torch.jit.script reads the source from its file
    subprocess.run([sys.executable, root / "make.py", masked, mean], check=True)
    models = [
        {"name": "masked", "model": str(masked), "shapes": {"pf_x": [2, 9], "pf_mask": [1, 9]}},
        {"name": "mean", "model": str(mean), "shapes": {"x": [2, 9]}},
        {"name": "sleep", "model": "sleep:20ms", "shapes": {"x": [9]}, "instances": 2},
    ]
    made = Server(
        root / "served",
        {
            "models": models,
            "ragged": "triton",
            "repository": str(root / "repository"),
            "max_batch_size": 16,
            "queue_delay_us": 50_000,
            "threads": 1,
        },
    )
    yield made
    made.kill()


def inputs_of(model: str, length: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(length)
    if model == "sleep":
        return {"x": rng.standard_normal((1, length)).astype(np.float32)}
    x = rng.standard_normal((1, 2, length)).astype(np.float32)
    return {"x": x} if model == "mean" else {"pf_x": x, "pf_mask": np.ones((1, 1, length), "f4")}


def at_once(server: Server, model: str) -> list[np.ndarray]:
    """The answers to one request of each length, all sent at the same moment."""
    answers: list[Any] = [None] * len(LENGTHS)
    begin = threading.Barrier(len(LENGTHS))

    def ask(at: int) -> None:
        with client(server, "grpc") as own:
            begin.wait(30)
            answers[at] = infer(own, model, inputs_of(model, LENGTHS[at]), "y", sequence=at)

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(LENGTHS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def executions_of(own: Any, model: str, requests: int) -> int:
    """Triton's count of the model's executions, once it counts that many requests: it counts a
    batch behind its answers.
    """
    told: dict[str, Any] = {}

    def counted() -> bool:
        told.update(own.get_inference_statistics(model, as_json=True)["model_stats"][0])
        return int(told.get("inference_count", 0)) >= requests

    until(counted, None)
    return int(told.get("execution_count", 0))


@pytest.mark.parametrize("model", ["masked", "mean", "sleep"])
def test_requests_of_lengths_3_to_9_meet_in_one_batch(server: Server, model: str) -> None:
    """They wait 50 ms for each other; each is answered as it is alone."""
    from profharness_workloads.serving import executions_file

    folder = str(server.control.folder / "executions")
    follower = executions_file.Follower(folder, model)
    with client(server, "grpc") as own:
        begun = executions_of(own, model, 0)
        alone = [infer(own, model, inputs_of(model, n), "y") for n in LENGTHS]
        assert [one.shapes for one in follower.news()] == [1] * len(LENGTHS)
        before = executions_of(own, model, len(LENGTHS))
        together = at_once(server, model)
        after = executions_of(own, model, 2 * len(LENGTHS))
    for one, other in zip(alone, together, strict=True):
        assert np.allclose(one, other, atol=1e-6)
    executions = follower.news()
    assert (begun, before) == (0, len(LENGTHS))
    assert len(executions) == after - before, "the model's records and Triton's statistics agree"
    assert sorted(number for one in executions for number in one.sequences) == list(range(7))
    fullest = max(executions, key=lambda one: one.requests)
    assert (fullest.requests, fullest.shapes, fullest.shortest, fullest.longest) == (7, 7, 3, 9)
    assert fullest.calls == {"masked": 1, "mean": 7, "sleep": 1}[model]
    if model == "masked":
        values = sum(3 * n for n in LENGTHS)
        assert (fullest.given, fullest.run) == (values, 7 * 9 * 3)


def test_the_repository_stands_alone(server: Server) -> None:
    """It holds the model's file and code, and nothing in it names a place of this machine."""
    root = Path(server.ready["repository"])
    assert sorted(path.name for path in root.iterdir()) == ["masked", "mean", "sleep"]
    text = (root / "masked/config.pbtxt").read_text()
    assert text.count("allow_ragged_batch: true") == 2
    assert 'string_value: "pad"' in text
    assert 'string_value: "group"' in (root / "mean/config.pbtxt").read_text()
    assert {path.name for path in (root / "masked/1").iterdir() if path.is_file()} == {
        "model.py",
        "model.pt",
    }
    assert str(root) not in text


def test_a_level_says_how_full_its_executions_were(server: Server) -> None:
    server.window("open", "p1")
    at_once(server, "sleep")
    told = server.window("close", "p1")
    assert told["notes"]["ragged_longest"] == "9"
    assert told["notes"]["ragged_requests"] == "7"
    (file,) = server.control.run.rglob("executions-*.i64")
    rows = np.fromfile(file, "<i8").reshape(-1, 8)
    assert rows[rows[:, 1] > 0, 4].sum() >= 7
