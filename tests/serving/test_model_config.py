"""config.pbtxt as we write it, read by Triton's own messages and by our own reader."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.errors import UsageError
from profharness.serving import repository
from profharness.serving.model_config import BatchInput, ModelConfig, config_text
from profharness.serving.ready import Tensor

CONFIG = ModelConfig(
    name="tagger",
    backend="onnxruntime",
    inputs=(Tensor("x", "FP32", (2, -1)), Tensor("label", "BYTES", ())),
    outputs=(Tensor("y", "FP32", (8,)),),
    max_batch_size=64,
    instances=2,
    kind="gpu",
    gpus=(0, 3),
    queue_delay_us=500,
    preferred=(8, 64),
    ragged=True,
    batch_input=(BatchInput("BATCH_ACCUMULATED_ELEMENT_COUNT", "x_ends", "x"),),
    parameters={"cudnn_conv_algo_search": "1", "text": 'a "b"\n\\é'},
    file="best.onnx",
)


def parsed(text: str) -> Any:
    """The message that Triton's own definition makes of a text; unknown fields are refused."""
    pb2 = pytest.importorskip("tritonclient.grpc.model_config_pb2", reason="needs tritonclient")
    from google.protobuf import text_format

    return text_format.Parse(text, pb2.ModelConfig())


def test_triton_reads_every_field_that_was_written() -> None:
    message = parsed(config_text(CONFIG))
    assert (message.name, message.backend, message.max_batch_size) == ("tagger", "onnxruntime", 64)
    assert message.default_model_filename == "best.onnx"
    types = message.input[0].DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number
    assert [
        (one.name, types[one.data_type].name, list(one.dims), one.allow_ragged_batch)
        for one in message.input
    ] == [("x", "TYPE_FP32", [2, -1], True), ("label", "TYPE_STRING", [1], False)]
    assert [(one.name, list(one.dims)) for one in message.output] == [("y", [8])]
    (batch,) = message.batch_input
    assert batch.kind == batch.BATCH_ACCUMULATED_ELEMENT_COUNT
    assert list(batch.target_name) == ["x_ends"]
    assert list(batch.source_input) == ["x"]
    assert types[batch.data_type].name == "TYPE_INT32"
    (group,) = message.instance_group
    assert (group.count, group.kind, list(group.gpus)) == (2, group.KIND_GPU, [0, 3])
    assert message.dynamic_batching.max_queue_delay_microseconds == 500
    assert list(message.dynamic_batching.preferred_batch_size) == [8, 64]
    assert {key: value.string_value for key, value in message.parameters.items()} == dict(
        CONFIG.parameters
    )


def test_no_batching_and_the_usual_values() -> None:
    plain = ModelConfig(name="m", backend="python", queue_delay_us=None)
    text = config_text(plain)
    assert "max_batch_size: 0" in text, "Triton wants it written"
    message = parsed(text)
    assert not message.HasField("dynamic_batching")
    assert message.instance_group[0].kind == message.instance_group[0].KIND_AUTO
    zero = ModelConfig(name="m", backend="python", max_batch_size=4)
    assert parsed(config_text(zero)).HasField("dynamic_batching"), "delay 0 still batches"


@given(
    st.builds(
        ModelConfig,
        name=st.from_regex(r"[A-Za-z0-9._-]{1,9}", fullmatch=True),
        backend=st.sampled_from(["python", "onnxruntime"]),
        inputs=st.lists(
            st.builds(
                Tensor,
                st.text("xyz", min_size=1, max_size=3),
                st.sampled_from(["FP32", "INT64", "BYTES", "BOOL"]),
                st.lists(st.sampled_from([-1, 1, 7]), min_size=1, max_size=3).map(tuple),
            ),
            max_size=3,
            unique_by=lambda tensor: tensor.name,
        ).map(tuple),
        max_batch_size=st.integers(0, 1000),
        instances=st.integers(1, 9),
        queue_delay_us=st.integers(0, 10**6),
        parameters=st.dictionaries(
            st.text("ab", min_size=1), st.text(st.characters(exclude_categories=["Cs"])), max_size=2
        ),
    )
)
def test_what_is_written_is_what_our_reader_reads(config: ModelConfig) -> None:
    text = config_text(config)
    found = repository.parse(text).model
    assert (found.name, found.backend, found.max_batch_size, found.instances) == (
        config.name,
        config.backend,
        config.max_batch_size,
        config.instances,
    )
    assert found.inputs == config.inputs
    assert found.queue_delay_us == (config.queue_delay_us if config.max_batch_size else None)
    assert {key: value.string_value for key, value in parsed(text).parameters.items()} == dict(
        config.parameters
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "a/b"}, "cannot be named"),
        ({"instances": 0}, "no instance"),
        ({"max_batch_size": -1}, "negative"),
        ({"queue_delay_us": -1}, "negative"),
        ({"preferred": (65,)}, "between 1 and 64"),
        ({"kind": "cpu"}, "gpus are for kind gpu"),
        ({"inputs": (Tensor("x", "FP31", (-1,)),)}, "no type FP31"),
        ({"outputs": (Tensor("x", "FP32", (1,)),)}, "one name"),
        ({"queue_delay_us": None}, "dynamic batching"),
        ({"inputs": (Tensor("x", "FP32", (2, 3)),), "batch_input": ()}, "no input has a free"),
        ({"backend": "python"}, "never given what batch_input declares"),
        ({"batch_input": (BatchInput("BATCH_ITEM_SHAPE", "t", "z"),)}, "'s z is not ragged"),
        ({"batch_input": (BatchInput("BATCH_ITEM_SHAPE", "x", "x"),)}, "the name of an input"),
        ({"batch_input": (BatchInput("BATCH_OF", "t", "x"),)}, "no kind of batch_input BATCH_OF"),
    ],
)
def test_what_triton_would_refuse_or_pass_over(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        config_text(msgspec.structs.replace(CONFIG, **changed))
