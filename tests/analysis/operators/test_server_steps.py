"""Lengths from the annotations of a server's steps, against the lengths of made-up batches."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.operators.engine import own_engine
from profharness.analysis.operators.records import Given, Lengths, ServerStep, Work
from profharness.analysis.operators.rows import row_work
from profharness.analysis.operators.server_steps import step_of
from tests.trace.graphs.graph_files import Recording, Run

sequences = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60)), max_size=6)
Batch = list[tuple[int, int]]
HEADS, KV_HEADS, DEPTH = 8, 2, 16


def sums_of(batch: Batch) -> str:
    """Of (new tokens, tokens that the cache holds already)."""
    lengths = [(new, new + old) for new, old in batch]
    return (
        f"(sq{sum(q for q, _ in lengths)}sk{sum(k for _, k in lengths)}"
        f"sqsq{sum(q * q for q, _ in lengths)}sqsk{sum(q * k for q, k in lengths)})"
    )


def annotation(context: Batch, generation: Batch) -> str:
    tokens = sum(new for new, _ in context + generation)
    return (
        f"execute_{tokens}_context_{len(context)}{sums_of(context)}"
        f"_generation_{len(generation)}{sums_of(generation)}"
    )


def pairs_of(batch: Batch) -> int:
    """Each new token meets all tokens before it and itself."""
    return sum(old + place for new, old in batch for place in range(1, new + 1))


def attention(rows: int) -> Run:
    dims = [[rows, HEADS, DEPTH], *[[rows, KV_HEADS, DEPTH]] * 2, [rows, HEADS, DEPTH]]
    return Run("vllm::unified_attention_with_output", ["attention"], dims)


@given(sequences, sequences)
def test_pairs_of_a_step_are_those_of_its_sequences(context: Batch, generation: Batch) -> None:
    step = step_of(annotation(context, generation))
    assert step is not None
    both = context + generation
    lengths = step.of_rows(sum(new for new, _ in both) + 3)  # padded
    assert lengths is not None
    assert lengths.causal == pairs_of(both)
    assert lengths.keys == sum(new + old for new, old in both)
    assert (step.context.causal, step.generation.causal) == (
        pairs_of(context), pairs_of(generation),
    )  # fmt: skip


def test_a_call_works_on_the_whole_step_or_on_the_part_with_as_many_rows() -> None:
    context, generation = Lengths(8, 10, 64, 80), Lengths(3, 30, 3, 30)
    step = ServerStep(context, generation)
    assert step.of_rows(11) == step.of_rows(16) == Lengths(11, 40, 67, 110)
    assert (step.of_rows(8), step.of_rows(3)) == (context, generation)
    assert step.of_rows(5) is None
    assert ServerStep(context, context).of_rows(8) is None


@pytest.mark.parametrize(
    "text",
    [
        "ProfilerStep#3",
        "execute_context_9(8155)_generation_37(37)",
        "execute_32_context_0(sq0sk0sqsq0sqsk0)",
        "execute_8_context_1(sq8sk4sqsq64sqsk32)_generation_0(sq0sk0sqsq0sqsk0)",
        "execute_8_context_1(sq8sk8sqsq64sqsk8)_generation_0(sq0sk0sqsq0sqsk0)",
    ],
)
def test_other_annotations_and_impossible_sums_say_nothing(text: str) -> None:
    assert step_of(text) is None


def test_the_innermost_annotation_around_an_operator_counts(tmp_path: Path) -> None:
    recording = Recording()
    begin = recording.now
    steps: list[tuple[Batch, Batch]] = [
        ([(5, 0)], [(1, 9)]), ([(2, 7)], []), ([], [(1, 20), (1, 2)]),
    ]  # fmt: skip
    for context, generation in steps:
        start = recording.now
        for _ in range(2):
            recording.run(attention(8))
        recording.mark(annotation(context, generation), start + 1, recording.now + 1)
    recording.mark("forward", begin, recording.now)
    recording.mark(annotation([(6, 6)], []), begin, recording.now + 1)
    recording.run(attention(8), tid=9)
    trace = recording.read(tmp_path / "a.json")
    work = row_work(trace)
    pairs = [pairs_of(context + generation) for context, generation in steps for _ in range(2)]
    assert work.flops[:6].tolist() == [4 * HEADS * DEPTH * count for count in pairs]
    assert np.isnan(work.flops[6])
    assert [work.reasons[code] for code in work.reason if code >= 0] == ["lengths unknown"]
    full = [
        sum(new * (new + old) for new, old in context + generation)
        for context, generation in steps
        for _ in range(2)
    ]
    assert work.flops_full[:6].tolist() == [4 * HEADS * DEPTH * count for count in full]
    keys = [sum(new + old for new, old in both) for both in (a + b for a, b in steps)]
    rows = 2 * 8 * HEADS * DEPTH * 4
    assert work.low_bytes[:6:2].tolist() == [rows + 2 * k * KV_HEADS * DEPTH * 4 for k in keys]


def test_an_operator_that_starts_where_a_step_ends_belongs_to_the_next(tmp_path: Path) -> None:
    recording = Recording()
    begin = recording.now
    recording.run(attention(8))
    border = recording.now + 10
    recording.run(attention(8))
    recording.mark(annotation([(8, 0)], []), begin, border)
    assert [event["ts"] for event in recording.events if event["cat"] == "cpu_op"][1] == border
    flops = row_work(recording.read(tmp_path / "a.json")).flops
    assert flops[0] == 4 * HEADS * DEPTH * pairs_of([(8, 0)])
    assert np.isnan(flops[1])


def paged(batch: Batch, *, causal: bool, window: tuple[int, int]) -> Work:
    """flash_attn with a paged cache, in a step that generates for this batch."""
    new, longest = sum(q for q, _ in batch), max(q + old for q, old in batch)
    dims = [[new, HEADS, DEPTH], *[[512, 16, KV_HEADS, DEPTH]] * 2, *[[len(batch) + 1]] * 2]
    types = ["c10::BFloat16"] * 3 + ["int"] * 2 + ["Scalar"] * 11
    values = [1, longest, 0.0, 0.1, causal, *window]
    texts = (dims + [[]] * 11, types, [""] * 5 + [str(value) for value in values] + [""] * 4)
    step = step_of(annotation([], batch))
    assert step is not None
    name = "flash_attn::_flash_attn_varlen_forward"
    return own_engine().work(name, *map(json.dumps, texts), given=Given(step=step))


def test_sums_of_a_step_do_not_tell_what_a_sliding_window_leaves() -> None:
    batch = [(1, 8191)] * 8
    without = paged(batch, causal=True, window=(-1, -1))
    assert without.flops == 4 * HEADS * DEPTH * 8 * 8192
    assert without.low_bytes == 2 * (2 * 8 * HEADS * DEPTH + 2 * 8 * 8192 * KV_HEADS * DEPTH)
    for causal, window in ((True, (511, 0)), (False, (511, 0)), (False, (-1, 3))):
        within = paged(batch, causal=causal, window=window)
        assert (within.flops, within.low_bytes) == (None, None)
        assert within.reason == "lengths unknown"


def test_a_window_without_keys_ahead_is_a_causal_mask() -> None:
    batch = [(3, 20), (2, 0)]
    for causal, window in ((True, (-1, -1)), (True, (-1, 0)), (False, (-1, 0)), (True, (-1, 3))):
        assert paged(batch, causal=causal, window=window).flops == (
            4 * HEADS * DEPTH * pairs_of(batch)
        )
    every = sum(new * (new + old) for new, old in batch)
    without = paged(batch, causal=False, window=(-1, -1))
    assert without.flops == 4 * HEADS * DEPTH * every
