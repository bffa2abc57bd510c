"""Configurations with batch_input beside a repository, read by Triton's own messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from profharness.serving import other_backends, repository
from profharness.serving.ready import VERSION, Model, Ready, Tensor, encode

MODEL = Model(
    "tagger",
    max_batch_size=16,
    instances=2,
    inputs=(Tensor("pf_x", "FP32", (2, -1)), Tensor("fixed", "FP32", (3,))),
    outputs=(Tensor("y", "FP32", (8,)),),
    queue_delay_us=300,
)


def parsed(text: str) -> Any:
    pb2 = pytest.importorskip("tritonclient.grpc.model_config_pb2", reason="needs tritonclient")
    from google.protobuf import text_format

    return text_format.Parse(text, pb2.ModelConfig())


@pytest.mark.parametrize("backend", ["onnxruntime", "tensorrt"])
def test_a_backend_that_takes_batch_input_is_told_where_each_request_ends(backend: str) -> None:
    text = other_backends.config_of(MODEL, backend)
    assert f"backend {backend}. The model's file must take pf_x flat" in text
    message = parsed(text)
    assert (message.backend, message.max_batch_size) == (backend, 16)
    assert [(one.name, one.allow_ragged_batch) for one in message.input] == [
        ("pf_x", True),
        ("fixed", False),
    ]
    assert [
        (one.Kind.Name(one.kind), *one.target_name, *one.source_input)
        for one in message.batch_input
    ] == [
        ("BATCH_ACCUMULATED_ELEMENT_COUNT", "pf_x_ends", "pf_x"),
        ("BATCH_ITEM_SHAPE", "pf_x_shape", "pf_x"),
    ]
    assert message.dynamic_batching.max_queue_delay_microseconds == 300
    assert message.instance_group[0].count == 2


def test_they_lie_beside_the_repository_and_never_in_it(tmp_path: Path) -> None:
    ready = Ready(VERSION, models=(MODEL,), repository=str(tmp_path / "torch@triton"))
    (tmp_path / "server-ready.json").write_bytes(encode(ready))
    files = other_backends.write_for(tmp_path / "server-ready.json")
    assert [str(path.relative_to(tmp_path)) for path in files] == [
        "torch@triton-for-other-backends/onnxruntime/tagger/config.pbtxt",
        "torch@triton-for-other-backends/tensorrt/tagger/config.pbtxt",
    ]
    assert repository.read(files[0]).model.inputs == MODEL.inputs
    assert not (tmp_path / "torch@triton").exists()


def test_without_a_repository_nothing_is_written(tmp_path: Path) -> None:
    plain = msgspec.structs.replace(Ready(VERSION, models=(MODEL,)))
    assert other_backends.write_beside(plain) == ()
    assert other_backends.write_for(tmp_path / "absent.json") == ()
