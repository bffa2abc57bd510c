"""config.pbtxt: what is taken from it, what is passed over, and what is refused."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.errors import InputError
from profharness.serving import repository
from tests.conftest import shared_path

FULL = """
# a comment with [ brackets { and "quotes
name: "tagger"
platform: 'onnxruntime_onnx'
max_batch_size: 500
input [
  { name: "pf_points" data_type: TYPE_FP32 dims: [ 2, -1 ] },   # one
  { name: "words", data_type: TYPE_STRING; dims: 1 dims: 2 }
]
output < name: "soft" "max" data_type: TYPE_FP16 dims: [8] >
instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] }, { kind: KIND_CPU } ]
dynamic_batching { preferred_batch_size: [ 100, 200 ] max_queue_delay_microseconds: 300 }
parameters: { key: "execution_mode" value: { string_value: "step [ { }" } }
ensemble_scheduling { step [ { model_name: "a" input_map { key: "k" value: "v" } }, { model_name: "b" } ] }
model_warmup [ { name: "w" batch_size: 1 inputs { key: "x" value: { dims: [1] zero_data: true } } } ]
version_policy: { specific { versions: [1, 3] } }
a_field_of_the_future [ { x: 1 }, { y: [ 2, 3 ] } ]
"""


def test_a_full_configuration_is_read_and_the_rest_passed_over():
    found = repository.parse(FULL)
    assert (found.model.name, found.platform, found.model.max_batch_size) == (
        "tagger",
        "onnxruntime_onnx",
        500,
    )
    assert [(t.name, t.dtype, t.shape) for t in found.model.inputs] == [
        ("pf_points", "FP32", (2, -1)),
        ("words", "BYTES", (1, 2)),
    ]
    assert [(t.name, t.dtype, t.shape) for t in found.model.outputs] == [("softmax", "FP16", (8,))]
    assert found.model.instances == 2 * 2 + 1  # a count is for each GPU of its group
    assert (found.preferred, found.gpus, found.model.queue_delay_us) == ((100, 200), (0, 1), 300)


def test_defaults_are_the_servers_own():
    found = repository.parse('name: "m"')
    assert (found.model.max_batch_size, found.model.instances, found.model.queue_delay_us) == (
        0,
        1,
        None,
    )


@pytest.mark.parametrize(
    "text",
    [
        "name: ",
        "input [ { name: 1 } ]",
        "max_batch_size: many",
        "input { data_type: FLOAT }",
        'name: "m" }',
        "\x00",
    ],
)
def test_what_triton_would_refuse_is_refused_with_the_place(text: str):
    with pytest.raises(InputError, match=r"here\.pbtxt: not a Triton configuration"):
        repository.parse(text, "here.pbtxt")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('name: "m"\n' + "a {" * 5000, "nested too deeply"),
        ("# " + "a" * repository.LINE, "has a line of 16,386 characters"),
        ("#\n" * (repository.BYTES // 2 + 1), "has 262,146 bytes, more than the 256.0 KiB"),
    ],
    ids=["nested", "line", "size"],
)
def test_one_that_was_made_to_cost_much_is_refused(text: str, why: str, tmp_path: Path):
    path = tmp_path / "config.pbtxt"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        repository.read(path)
    assert why in refused.value.message
    assert len(refused.value.message) < 500 + len(str(path))


def test_what_is_refused_is_told_without_the_whole_line():
    with pytest.raises(InputError, match=r"1:10 : .* … .*Expected") as refused:
        repository.parse('name: "m"}' + "a" * 9000)
    assert len(refused.value.message) < 400


@given(st.text(alphabet="\"'\\a[]{}:# \n1", max_size=40))
def test_what_is_added_for_the_reader_is_the_same_as_with_backtracking(text: str):
    """But behind a string without an end, which is refused."""
    slow = re.compile(
        r"""\#[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|:\s*[\w.+-]+|(\w+)(\s*)\["""
    )
    expected = slow.sub(lambda found: f"{found[1]}:{found[2]}[" if found[1] else found[0], text)
    if (found := repository.with_colons(text)) != expected:
        with pytest.raises(InputError):
            repository.parse(text)
        with pytest.raises(InputError):
            repository.parse(expected)
        return
    assert found == expected


def test_strings_without_an_end_are_looked_through_once():
    start = time.process_time()
    repository.with_colons("\"\\'" * 100_000 + "a" * 300_000)
    assert time.process_time() - start < 5  # it took minutes


def test_a_model_without_a_configuration_has_none(tmp_path: Path):
    assert repository.find(tmp_path, "m") is None
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.pbtxt").write_text("max_batch_size: 4")
    found = repository.find(tmp_path, "m")
    assert found is not None
    assert (found.model.name, found.model.max_batch_size) == ("m", 4)  # the folder names it
    with pytest.raises(InputError, match="not readable"):
        repository.read(tmp_path / "absent")


@given(
    st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), st.text(max_size=12), max_size=5),
    st.integers(0, 2**31 - 1),
)
def test_any_text_in_unknown_strings_changes_nothing(values: dict[str, str], batch: int):
    quoted = {
        key: value.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("\n", "\\n")
        .replace("\r", "\\r")
        .replace("\x00", "")
        for key, value in values.items()
    }
    lines = [
        f'x_{key} [ "{value}", "{value}" ] y_{key} [ {{ z: "{value}" }} ]'
        for key, value in quoted.items()
    ]
    assert (
        repository.parse("\n".join([*lines, f"max_batch_size: {batch}"])).model.max_batch_size
        == batch
    )


@pytest.mark.parametrize(
    ("name", "batch", "first"),
    [
        ("particlenet_AK4", 500, ("pf_points", (2, -1))),
        ("particlenet_AK4_PT", 500, ("pf_points__0", (2, -1))),
        ("deepmet", 100, ("input", (4500, 8))),
        ("facile_all_v2", 160000, ("input", (47,))),
        ("deeptau_inner", 0, ("input_inner_egamma", (-1, 1, 1, 86))),
        ("deeptau_ensemble", 0, ("input_tau", (-1, 47))),
    ],
)
def test_configurations_in_use(
    shared: Path, name: str, batch: int, first: tuple[str, tuple[int, ...]]
):
    found = repository.find(shared_path("fixtures/models"), name)
    assert found is not None
    assert (
        found.model.max_batch_size,
        found.model.inputs[0].name,
        found.model.inputs[0].shape,
    ) == (batch, *first)
