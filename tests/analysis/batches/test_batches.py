"""Batches of a server by kind, on written-out traces and on recorded ones."""

from __future__ import annotations

import json
import re

import pytest

from profharness.analysis.batches.figures import batches
from profharness.analysis.batches.marks import STEP_RANGES, batch_of
from profharness.analysis.batches.records import Batches
from profharness.cli import run_cli
from profharness.trace.model import Trace
from tests.analysis.scene import Scene


def execute(read: int, continued: int, tokens: int = 0) -> str:
    sums = f"sq{tokens}sk{tokens}sqsq{tokens}sqsk{tokens}"
    return (
        f"execute_{tokens + continued}_context_{read}({sums})"
        f"_generation_{continued}(sq{continued}sk99sqsq{continued}sqsk99)"
    )


def trace(*marks: tuple[str, int]) -> Trace:
    """Batches of 100 ns; the device works on each for so long, from 50 ns after its begin."""
    scene = Scene()
    for place, (name, length) in enumerate(marks):
        start = 100 * place
        scene.mark("range", start, start + 90, name)
        if length:
            scene.kernel(start + 50, start + 50 + length, scene.launch(start + 10, start + 20))
    return scene.build()


def found(*marks: tuple[str, int]) -> Batches:
    told = batches(trace(*marks))
    assert told is not None
    return told


def test_kinds_have_their_tokens_and_the_work_launched_inside():
    told = found(
        (execute(2, 0, 64), 80), (execute(0, 8), 30), (execute(0, 8), 20), (execute(1, 7, 9), 10)
    )
    rows = {row.kind: row for row in told.rows}
    assert list(rows) == ["prefill", "decode", "mixed"]
    decode = rows["decode"]
    assert (decode.batches, decode.sequences, decode.host_ns) == (2, 8.0, 180)
    assert (decode.prefill_tokens, decode.decode_tokens) == (0, 16)
    assert (decode.device_ns, decode.busy_ns) == (50, 50)
    assert (rows["prefill"].prefill_tokens, rows["prefill"].device_ns) == (64, 80)
    assert (rows["mixed"].prefill_tokens, rows["mixed"].decode_tokens) == (9, 7)


def test_work_side_by_side_is_busy_once():
    scene = Scene()
    scene.mark("range", 0, 100, execute(0, 4))
    for stream in (0, 1):
        scene.kernel(50, 80, scene.launch(10 + stream, 11 + stream), stream=stream)
    told = batches(scene.build())
    assert told is not None
    assert (told.rows[0].device_ns, told.rows[0].busy_ns) == (60, 30)


def test_the_steady_state_is_the_longest_row_of_full_batches():
    full, small = (execute(0, 10), 5), (execute(0, 3), 5)
    steady = found(full, small, full, full, full, small).steady
    assert steady is not None
    assert (steady.first, steady.end, steady.tokens, steady.span_ns) == (2, 5, 30, 290)
    assert found((execute(1, 0, 5), 5)).steady is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (execute(3, 0, 5), "prefill"),
        (execute(0, 3), "decode"),
        (execute(3, 4, 5), "mixed"),
        ("execute_context_0(0)_generation_8(8)", "decode"),
        ("step[DECODE bs=32]", "decode"),
        ("step[EXTEND bs=2 toks=90]", "prefill"),
        ("step[MIXED bs=2]", "mixed"),
    ],
)
def test_each_kind_has_an_expression_that_fits_its_marks_alone(name, kind):
    told = batch_of(name)
    assert told is not None
    assert told.kind == kind
    fits = [other for other, one in STEP_RANGES[told.family].items() if re.fullmatch(one, name)]
    assert fits == [kind]


@pytest.mark.parametrize(
    "name",
    [
        "execute_0_context_0(sq0sk0sqsq0sqsk0)_generation_0(sq0sk0sqsq0sqsk0)",
        "execute_diffusion_1_256x256",
        "step[IDLE bs=0]",
        "step[DECODE bs=0]",
        f"step[DECODE bs={'9' * 40}]",
        "ProfilerStep#3",
    ],
)
def test_other_marks_are_no_batches(name):
    assert batch_of(name) is None
    assert batches(trace((name, 5))) is None


def test_recorded_servers(shared, capsys):
    folder = shared / "fixtures" / "kineto"
    rows = {}
    for name in ("mi300x_vllm_piecewise_graphs", "mi300x_sglang_qwen3-8b_decode_hipgraph"):
        assert run_cli(["metrics", str(folder / f"{name}.json.gz"), "--json"]) == 0
        (rows[name],) = json.loads(capsys.readouterr().out)["batches"]["rows"]
    mixed, decode = rows.values()
    assert (mixed["kind"], mixed["batches"], mixed["sequences"]) == ("mixed", 1, 46)
    assert (mixed["prefill_tokens"], mixed["decode_tokens"]) == (8155, 37)
    assert (decode["kind"], decode["sequences"], decode["decode_tokens"]) == ("decode", 32, 32)
    assert 0 < mixed["busy_ns"] <= mixed["device_ns"]
