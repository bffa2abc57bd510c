"""Backward operators and their forward ones, by the rule of autograd and on recorded files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.operators.gradients import forward_of, recomputed
from profharness.readers.kineto import reader
from profharness.trace.columns.table import NULL
from profharness.trace.model import Ops, Strings

RESNET = "fixtures/kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz"
ENGINE = "autograd::engine::evaluate_function: "


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(-1, 3), st.integers(-1, 2)),
        min_size=1,
        max_size=30,
    )
)
def test_the_last_of_a_number_that_began_before_made_the_node(
    rows: list[tuple[int, int, int]],
) -> None:
    """Each row is (start, number, forward thread); all run one after the other in threads of their
    own.
    """
    start, sequence, forward_tid = (
        np.array(column, np.int64) for column in zip(*rows, strict=True)
    )
    ops = Ops.build(
        len(rows),
        start_ns=start,
        dur_ns=np.ones(len(rows), np.int64),
        tid=np.arange(len(rows)),
        pid=7,
        source=0,
        sequence=sequence,
        forward_tid=forward_tid,
    )
    made = forward_of(ops)
    for row, (began, number, thread) in enumerate(rows):
        candidates = [
            (other_start, other)
            for other, (other_start, other_number, other_thread) in enumerate(rows)
            if other_number == number and other_thread <= 0 and other_start < began
        ]
        if number < 0 or thread <= 0 or not candidates:
            assert made[row] == NULL
        else:
            assert start[made[row]] == max(candidates)[0]
            assert (sequence[made[row]], forward_tid[made[row]] <= 0) == (number, True)


def test_every_backward_node_of_a_training_finds_the_operator_that_made_it(shared: Path) -> None:
    trace = reader.read(shared / RESNET)
    ops, made = trace.ops, forward_of(trace.ops)
    nodes = np.flatnonzero((ops.sequence >= 0) & (ops.forward_tid > 0))
    assert (len(nodes), int((made[nodes] != NULL).sum())) == (426, 426)
    pairs = {
        (trace.strings[int(ops.name[row])], trace.strings[int(ops.name[made[row]])])
        for row in nodes.tolist()
    }
    assert {
        (name.removeprefix(ENGINE), forward)
        for name, forward in pairs
        if "Convolution" in name or "BatchNorm" in name
    } == {
        ("ConvolutionBackward0", "aten::convolution"),
        ("NativeBatchNormBackward0", "aten::native_batch_norm"),
    }
    inner = [
        row
        for row in range(len(ops))
        if trace.strings[int(ops.name[row])] == "aten::convolution_backward"
    ]
    assert {trace.strings[int(ops.name[row])] for row in made[inner].tolist()} == {
        "aten::convolution"
    }


def test_what_checkpointing_runs_again_is_known(shared: Path) -> None:
    trace = reader.read(shared / RESNET)
    again = recomputed(trace.ops, trace.strings)
    convolutions = trace.ops.name == trace.strings.find("aten::miopen_convolution")
    assert (int(convolutions.sum()), int((convolutions & again).sum())) == (117, 57)
    backward = trace.ops.name == trace.strings.find("aten::convolution_backward")
    assert not (backward & again).any()


@pytest.mark.parametrize("columns", [{}, {"sequence": [4, 4]}])
def test_a_forward_pass_alone_has_neither(columns: dict[str, list[int]]) -> None:
    strings = Strings()
    ops = Ops.build(
        2,
        start_ns=np.array([0, 1]),
        dur_ns=np.array([9, 2]),
        name=strings.code("aten::mm"),
        pid=1,
        tid=1,
        source=0,
        **{name: np.array(values) for name, values in columns.items()},
    )
    assert forward_of(ops).tolist() == [NULL, NULL]
    assert recomputed(ops, strings).tolist() == [False, False]
