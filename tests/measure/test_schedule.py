from __future__ import annotations

from dataclasses import replace

import pytest

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import named
from profharness.layers.contract import (
    COMMAND,
    Availability,
    Description,
    Layer,
    Purpose,
    Where,
)
from profharness.measure.schedule import OwnPasses, plan_command, plan_scan
from profharness.node.probe import Environment
from profharness.rundir.layer_facts import LayerFacts, LeftFiles


class StandInLayer(Layer):
    """A layer with chosen claims, for the schedule only."""

    def __init__(self, name: str, claims: frozenset[str], *, perturbing: bool = False) -> None:
        self.about = Description(
            name=name,
            gives="",
            needs="",
            scope="prefix",
            claims=claims,
            targets=frozenset({"torch", COMMAND}),
            perturbing=perturbing,
            facts=LayerFacts(LeftFiles("execution", ())),
        )

    def probe(self, environment: Environment) -> Availability:
        return Availability(available=True)

    def prepare(self, command: Command, where: Where) -> Command:
        return command


TRACER = StandInLayer("tracer", frozenset({"hsa-tool"}))
OTHER_TRACER = StandInLayer("other", frozenset({"hsa-tool", "x"}))
LOGGER = StandInLayer("logger", frozenset({"stderr"}))


def test_a_scan_starts_bare_and_layers_share_a_pass_only_without_conflict() -> None:
    plan = plan_scan((TRACER, OTHER_TRACER, LOGGER), ("torch",))
    assert [(p.name, p.layer_names) for p in plan.passes] == [
        ("bare", ()),
        ("tracer+logger", ("tracer", "logger")),
        ("other", ("other",)),
    ]


def test_layers_of_different_backends_have_their_own_passes() -> None:
    plan = plan_scan(named(("torch", "onnxruntime")), ("torch", "onnxruntime"))
    assert [(p.name, p.targets) for p in plan.passes] == [
        ("bare", ("torch", "onnxruntime")),
        ("torch", ("torch",)),
        ("onnxruntime", ("onnxruntime",)),
    ]


def test_all_models_on_one_server_are_recorded_where_one_of_them_can_be() -> None:
    targets = ("torch@a", "onnxruntime@b", "sleep@c", "together")
    plan = plan_scan(named(("torch", "onnxruntime")), targets)
    assert [one.targets for one in plan.passes] == [
        targets,
        ("torch@a", "together"),
        ("onnxruntime@b", "together"),
    ]
    with pytest.raises(UsageError, match="nothing to attach to"):
        plan_scan(named(("torch",)), ("sleep@c", "sleep@d", "together"))


def test_a_layer_with_nothing_to_attach_to_is_a_usage_error() -> None:
    with pytest.raises(UsageError) as caught:
        plan_scan(named(("onnxruntime",)), ("torch",))
    assert "--backend onnxruntime" in caught.value.hint


def test_a_command_runs_once_unless_more_is_allowed() -> None:
    assert [p.name for p in plan_command((), bare=False, allowed=None, agreed=False).passes] == [
        "bare"
    ]
    assert [
        p.name
        for p in plan_command((TRACER, LOGGER), bare=False, allowed=None, agreed=False).passes
    ] == ["tracer+logger"]
    assert [
        p.name for p in plan_command((TRACER,), bare=True, allowed=None, agreed=False).passes
    ] == ["bare", "tracer"]
    with pytest.raises(UsageError) as caught:
        plan_command((TRACER, OTHER_TRACER), bare=False, allowed=None, agreed=False)
    assert "2 passes" in caught.value.message
    assert "--passes 2" in caught.value.hint
    dry = plan_command((TRACER, OTHER_TRACER), bare=False, allowed=None, agreed=False, dry=True)
    assert len(dry.passes) == 2
    assert dry.reasons[0].endswith(
        "they need 2 passes over the command; allow them with --passes 2 or --yes"
    )
    for allowed, agreed in ((2, False), (None, True)):
        assert (
            len(
                plan_command(
                    (TRACER, OTHER_TRACER), bare=False, allowed=allowed, agreed=agreed
                ).passes
            )
            == 2
        )


def test_an_unknown_or_repeated_layer_is_a_usage_error() -> None:
    for names in (("rocprof99",), ("torch", "torch")):
        with pytest.raises(UsageError):
            named(names)


def test_counters_get_passes_of_their_own_after_the_trace() -> None:
    counting = OwnPasses(TRACER, (("A", "B"), ("C",)))
    plan = plan_scan((TRACER,), ("torch",), (counting,))
    assert [(p.name, p.counters, p.perturbing) for p in plan.passes] == [
        ("bare", (), False),
        ("tracer", (), False),
        ("tracer-pmc1", ("A", "B"), True),
        ("tracer-pmc2", ("C",), True),
    ]
    assert "none of its times is used" in plan.reasons[-2]
    assert plan.reasons[-1].startswith("tracer-pmc1: if the tool refuses these counters together")
    told = replace(counting, assumed="planned for a device that is not here")
    assert plan_scan((TRACER,), ("torch",), (told,)).reasons[-1] == told.assumed
    assert (
        plan_command((TRACER,), bare=False, allowed=3, agreed=False, own=(told,)).reasons[-1]
        == told.assumed
    )
    with pytest.raises(UsageError, match="3 passes"):
        plan_command((TRACER,), bare=False, allowed=None, agreed=False, own=(counting,))
    assert (
        len(plan_command((TRACER,), bare=False, allowed=3, agreed=False, own=(counting,)).passes)
        == 3
    )


def test_a_perturbing_layer_runs_alone() -> None:
    loud = StandInLayer("loud", frozenset({"log"}), perturbing=True)
    plan = plan_command((TRACER, loud, LOGGER), bare=False, allowed=None, agreed=True)
    assert [p.layer_names for p in plan.passes] == [("tracer", "logger"), ("loud",)]
    assert [p.perturbing for p in plan.passes] == [False, True]


def test_tools_that_occupy_the_same_slot_never_share() -> None:
    names = ("torch", "rocprofv3", "rocprof", "rocprof-sys", "rocprof-compute")
    plan = plan_command(named(names), bare=False, allowed=None, agreed=True)
    assert [p.layer_names for p in plan.passes] == [(name,) for name in names]
    shared = plan_command(
        named(("onnxruntime", "rocprofv3")), bare=False, allowed=None, agreed=False
    )
    assert [p.layer_names for p in shared.passes] == [("onnxruntime", "rocprofv3")]


def test_a_purpose_has_a_pass_of_its_own_and_none_of_its_times_is_used() -> None:
    purpose = Purpose("looking", "look", "looks at everything", "looks", "saw nothing")
    counting = OwnPasses(TRACER, (("A",), ("B",)))
    plan = plan_command(
        (TRACER,),
        bare=False,
        allowed=4,
        agreed=False,
        own=(counting, OwnPasses(TRACER, purpose=purpose)),
    )
    assert [(p.name, p.counters, p.purpose, p.perturbing) for p in plan.passes] == [
        ("tracer", (), None, False),
        ("tracer-pmc1", ("A",), None, True),
        ("tracer-pmc2", ("B",), None, True),
        ("tracer-looking", (), purpose, True),
    ]
    assert (
        "tracer-looking: one pass over the command; looks at everything: "
        "none of its times is used" in plan.reasons
    )
    with pytest.raises(UsageError, match="2 passes"):
        plan_command(
            (TRACER,),
            bare=False,
            allowed=None,
            agreed=False,
            own=(OwnPasses(TRACER, purpose=purpose),),
        )


def test_groups_that_are_replayed_are_one_execution_and_the_plan_tells_what_they_cover() -> None:
    counting = OwnPasses(TRACER, (("A", "B"), ("B", "C")), replayed=True)
    plan = plan_scan((TRACER,), ("torch",), (counting,))
    (counted,) = (p for p in plan.passes if p.counters)
    assert (counted.name, counted.counters, counted.groups) == (
        "tracer-pmc1",
        ("A", "B", "C"),
        (("A", "B"), ("B", "C")),
    )
    assert any(
        "replays every kernel 2 times and counts A B, B C: each counter covers every kernel"
        in reason
        for reason in plan.reasons
    )
    alone = plan_scan((TRACER,), ("torch",), (replace(counting, groups=(("A", "B"),)),))
    assert [(p.counters, p.groups) for p in alone.passes if p.counters] == [(("A", "B"), ())]
