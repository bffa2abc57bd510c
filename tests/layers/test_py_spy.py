"""The py-spy layer's command line, its refusals, and what shares a pass with it."""

from __future__ import annotations

import pytest

from profharness.errors import UsageError
from profharness.layers import around, named
from profharness.layers.options import TracerOptions
from profharness.measure.schedule import plan_command
from profharness.node.probe import Environment, Tool
from tests.layers.places import TRAIN, planned, where, words

HERE = Environment(host="node1", tools={"py-spy": Tool(path="/venv/bin/py-spy", version="0.4.3")})
FOLDER = "/run/artifacts/py-spy/node1/0/py-spy"


def line(*arguments: str) -> str:
    options = TracerOptions(tool_args={"py-spy": arguments} if arguments else {})
    return words(planned("", "py-spy", options, environment=HERE))


def test_the_command_line() -> None:
    assert line() == (
        f"python /wrappers/py_spy.py {FOLDER} /venv/bin/py-spy record --subprocesses --threads "
        "--idle --format chrometrace --rate 100 -- python train.py --epochs 1"
    )


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--native", "--rate 100 --native --"),
        ("--rate=500", "chrometrace --rate=500 --"),
        ("-r20", "chrometrace -r20 --"),
    ],
)
def test_arguments_are_passed_on(argument: str, expected: str) -> None:
    assert expected in line(argument)


@pytest.mark.parametrize("argument", ["-o", "--format=raw", "--pid", "--help"])
def test_what_profharness_sets_itself_is_refused(argument: str) -> None:
    with pytest.raises(UsageError, match="profharness sets that itself"):
        line(argument)


def test_where_it_is_missing_the_way_out_is_said_and_a_dry_run_plans_it() -> None:
    (layer,) = named(("py-spy",))
    missing = layer.probe(Environment())
    assert not missing.available
    assert "pip install py-spy" in missing.why
    assert " py-spy record " in words(planned("", "py-spy", environment=Environment()))
    assert layer.probe(HERE).version == "0.4.3"


def test_beside_other_layers_it_has_a_pass_of_its_own() -> None:
    chosen = named(("torch", "py-spy", "rocprofv3"))
    passes = plan_command(chosen, bare=False, allowed=3, agreed=False).passes
    assert [plan.name for plan in passes] == ["torch", "py-spy", "rocprofv3"]


def test_a_capture_window_is_cut_on_reading() -> None:
    layers = named(("py-spy",))
    assert around.extras(layers, TRAIN, where("", "py-spy")).cut == ""
    window = around.extras(layers, TRAIN, where("", "py-spy", capture="steps=3:6"))
    assert window.cut == "steps=3:6"
    assert "records the whole execution" in window.notes[0]
