"""Which packages get a cap, and every refusal with its reason."""

from __future__ import annotations

import pytest

from profharness.errors import Unavailable, UsageError
from profharness.measure.caps.planning import Asked, plan_caps
from profharness.options.axes import check, require_used
from profharness.rundir.executions.axes import Axis
from profharness.telemetry.caps.records import Cap, Sharing

W = 1_000_000


def cap(key: str, *numbers: int, way: str = "hwmon", why_not: str = "", now: int = 560) -> Cap:
    devices = tuple(Sharing(number, f"{key}-{number}", "rocm") for number in numbers)
    return Cap(way, key, "AMD MI250X", now * W, 100 * W, 560 * W, devices, why_not)


def asked(*caps: Cap) -> Asked:
    return Asked((("hwmon", caps, ""),))


def test_all_packages_that_a_program_sees() -> None:
    plan = plan_caps(asked(cap("a", 0, 1), cap("b", 2, 3)), [300, 200], {})
    assert [one.key for one in plan.caps] == ["a", "b"]
    assert plan.planned_uw == (200 * W, 300 * W)
    assert plan.beside == ()


def test_masks_leave_packages_out_and_name_the_other_die() -> None:
    plan = plan_caps(asked(cap("a", 0, 1), cap("b", 2, 3)), [200], {"ROCR_VISIBLE_DEVICES": "3"})
    assert [one.key for one in plan.caps] == ["b"]
    assert plan.beside == ("device 2 (b-2)",)
    assert "it also holds for device 2 (b-2)" in str(plan)


def test_masks_that_hide_all_and_masks_that_do_not_tell() -> None:
    with pytest.raises(Unavailable, match="may see no device"):
        plan_caps(asked(cap("a", 0)), [200], {"ROCR_VISIBLE_DEVICES": "-1"})
    with pytest.raises(Unavailable, match="does not tell whose cap"):
        plan_caps(asked(cap("a", 0)), [200], {"ROCR_VISIBLE_DEVICES": "GPU-abc"})


def test_without_permission_every_way_says_why() -> None:
    found = Asked(
        (
            ("hwmon", (cap("a", 0, why_not="this user may not write power1_cap"),), ""),
            ("amdsmi", (cap("a", 0, way="amdsmi", why_not="root alone may set it"),), ""),
        )
    )
    with pytest.raises(Unavailable) as refused:
        plan_caps(found, [200], {})
    assert "this user may not write power1_cap; by amdsmi: root alone" in refused.value.message
    assert "as root" in refused.value.hint
    assert refused.value.exit_code == 3


def test_the_first_way_that_may_set_it_is_taken() -> None:
    found = Asked(
        (
            ("hwmon", (cap("a", 0, why_not="not writable"),), ""),
            ("amdsmi", (cap("a", 0, way="amdsmi"),), ""),
            ("nvml", (), "not installed"),
        )
    )
    assert [one.way for one in plan_caps(found, [200], {}).caps] == ["amdsmi"]


def test_a_permission_that_a_hidden_package_lacks_does_not_matter() -> None:
    found = asked(cap("a", 0), cap("b", 1, why_not="not writable"))
    plan = plan_caps(found, [200], {"ROCR_VISIBLE_DEVICES": "0"})
    assert [one.key for one in plan.caps] == ["a"]


def test_no_device_says_what_each_way_answered() -> None:
    found = Asked((("hwmon", (), "it has no device"), ("nvml", (), "not installed")))
    with pytest.raises(Unavailable, match=r"hwmon: it has no device; nvml: not installed"):
        plan_caps(found, [200], {})


@pytest.mark.parametrize("watts", [99, 561])
def test_caps_outside_of_what_the_driver_allows(watts: int) -> None:
    with pytest.raises(UsageError, match=f"{watts} W is outside") as refused:
        plan_caps(asked(cap("a", 0)), [200, watts], {})
    assert "from 100 W to 560 W" in refused.value.hint


def test_the_cap_that_is_set_now_is_always_allowed() -> None:
    assert plan_caps(asked(cap("a", 0, now=600)), [600], {}).planned_uw == (600 * W,)


@pytest.mark.parametrize("values", [("full", "200"), ("0", "200"), ("-5",)])
def test_values_that_are_no_watts(values: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="power-cap"):
        check(
            {"power-cap": values},
        )


def test_the_axis_needs_no_braces() -> None:
    require_used([Axis("power-cap", ("200",))], ["python", "train.py"])
    with pytest.raises(UsageError, match="nothing would vary"):
        require_used([Axis("cap", ("200",))], ["python", "train.py"])
