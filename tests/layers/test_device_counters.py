"""The layer that counts beside the workload: where it can be used, and with what it never shares."""

from __future__ import annotations

import pytest

from profharness.errors import UsageError
from profharness.layers import around, descriptions, named
from profharness.layers.contract import COMMAND
from profharness.layers.device_counters import ARCHITECTURES, COUNTS_HARDWARE, check_alone
from profharness.measure.schedule import OwnPasses, plan_command, plan_scan
from profharness.node.probe import Device, Environment, Permissions
from profharness.options.settings import COMMAND_LINE, from_mapping
from profharness.telemetry.sources.amd.counting.sets import SETS
from tests.layers.places import TRAIN, where

(LAYER,) = named(("device-counters",))


def node(*architectures: str, rocm: str = "7.0.1", perfmon: bool = True) -> Environment:
    return Environment(
        devices=tuple(
            Device(index, "rocm", architecture=one) for index, one in enumerate(architectures)
        ),
        rocm_version=rocm,
        permissions=Permissions(perfmon=perfmon),
    )


@pytest.mark.parametrize(
    ("found", "available", "said"),
    [
        (node("gfx942"), True, ""),
        (node("gfx90a", rocm="6.4.0"), True, ""),
        (node("gfx950", rocm=""), True, ""),
        (node("gfx1100", "gfx942"), True, ""),
        (node("gfx942", perfmon=False), True, "only the memory fabric is counted"),
        (node("gfx942", rocm="6.3.4"), False, "it needs ROCm 6.4 or newer, and here is ROCm 6.3.4"),
        (node("gfx1100"), False, "gfx1100 has no counters that count a whole device"),
        (node(), False, "no AMD device is seen"),
    ],
)
def test_where_it_can_be_used(found: Environment, available: bool, said: str) -> None:
    state = LAYER.probe(found)
    assert state.available == available
    assert said in state.why
    assert bool(state.why) == bool(said)


def test_it_leaves_the_command_as_it_is() -> None:
    assert around.wrap((LAYER,), TRAIN, where("7.0", "device-counters")) == TRAIN
    assert set(ARCHITECTURES) == {counters.arch for counters in SETS.values()}


def test_it_shares_with_tracers_and_never_with_who_counts() -> None:
    torch, tracer, compute = named(("torch", "rocprofv3", "rocprof-compute"))
    together = plan_command((torch, LAYER), bare=False, allowed=None, agreed=False)
    assert [plan.layer_names for plan in together.passes] == [("torch", "device-counters")]
    own = (OwnPasses(tracer, (("SQ_WAVES",),)),)
    apart = plan_command(
        (tracer, LAYER, compute), bare=False, allowed=3, agreed=False, own=own, dry=True
    )
    assert [plan.layer_names for plan in apart.passes] == [
        ("rocprofv3", "device-counters"),
        ("rocprof-compute",),
        ("rocprofv3",),
    ]
    assert apart.passes[2].counters
    scan = plan_scan((LAYER,), ("torch",))
    assert [plan.layer_names for plan in scan.passes] == [(), ("device-counters",)]


def test_where_one_execution_is_all_there_is_it_is_refused() -> None:
    compute = named(("rocprof-compute",))
    with pytest.raises(
        UsageError, match=r"cannot share one execution.*\(device-counters, rocprof-compute\)"
    ):
        plan_command((LAYER, *compute), bare=False, allowed=None, agreed=False)


def test_every_layer_that_programs_counters_claims_them() -> None:
    claiming = {about.name for about in descriptions() if COUNTS_HARDWARE in about.claims}
    assert claiming >= {"device-counters", "rocprof-compute"}
    assert COMMAND in LAYER.about.targets


@pytest.mark.parametrize(
    "word",
    [
        "rocprofv3:--pmc",
        "rocprofv3:--pc-sampling-method",
        "rocprofv3:--att",
        "rocprofv3:--att-target-cu=1",
        "rocprofv3:--spm-counters",
        "rocprof:-i",
        "rocprof:--input=counters.txt",
        "rocprof-sys:--gpu-events=SQ_WAVES",
        "rocprof-sys:-G",
    ],
)
def test_a_tools_own_arguments_may_not_count_beside_it(word: str) -> None:
    tool = word.partition(":")[0]
    with pytest.raises(UsageError, match="both would program the same registers"):
        check_alone((tool, "device-counters"), (word,))
    check_alone((tool,), (word,))


def test_a_tools_own_settings_may_not_either() -> None:
    counting = {"ROCPROFSYS_ROCM_EVENTS": "SQ_WAVES"}
    with pytest.raises(UsageError, match=r"^ROCPROFSYS_ROCM_EVENTS counts on the device"):
        check_alone(("rocprof-sys", "device-counters"), (), counting)
    check_alone(("rocprofv3", "device-counters"), (), counting)
    check_alone(("rocprof-sys",), (), counting)


@pytest.mark.parametrize("word", ["--log-level", "--attach-duration-msec", "-include", "--inputs"])
def test_other_arguments_of_a_tool_may(word: str) -> None:
    check_alone(("rocprofv3", "device-counters"), (f"rocprofv3:{word}",))


@pytest.mark.parametrize("hz", [0.0, 0.05, 10.5])
def test_a_rate_that_is_too_high_or_too_low(hz: float) -> None:
    with pytest.raises(UsageError, match=r"outside 0\.1 to 10"):
        from_mapping(
            {"command": ("x",), "profile": "device-counters", "device_counters_hz": hz},
            COMMAND_LINE,
        )
