"""Options of a served scan as axes."""

from __future__ import annotations

import pytest

from profharness.cli import Rest
from profharness.cli.run import build_request
from profharness.errors import UsageError
from profharness.options import setting_axes
from profharness.options.axes import gather
from profharness.options.request import Request
from profharness.options.setting_axes import SETTINGS, varied

NO_REST = Rest((), given=False)


def request(*scan: str, **flags: object) -> Request:
    return build_request("particlenet", {"via": "triton", "axes": gather(scan), **flags}, NO_REST)


def test_every_setting_is_an_option_of_a_run() -> None:
    fields = set(Request.__struct_fields__)
    assert {one.field for one in SETTINGS.values()} <= fields


def test_values_change_the_request_and_leave_the_axes_out() -> None:
    asked = request("instances=1,2", "queue-delay-us=0,1000", "shape:points=2x16,2x32", "batch=1,8")
    texts = {"instances": "2", "queue-delay-us": "1000", "shape:points": "2x32", "batch": "8"}
    made = varied(asked, texts)
    assert (made.instances, made.queue_delay_us, made.batch_sizes) == (2, 1000, (8,))
    assert made.shape == {"points": (2, 32)}
    assert made.axes == {}
    assert asked.instances == 1


@pytest.mark.parametrize(
    ("axis", "text", "field", "value"),
    [
        ("backend", "onnxruntime", "backend", ("onnxruntime",)),
        ("provider", "cpu", "provider", ("cpu",)),
        ("torchscript", "on", "torchscript", True),
        ("autocast", "bf16", "autocast", "bf16"),
        ("threads", "2", "threads", 2),
    ],
)
def test_each_value_has_the_type_of_its_option(
    axis: str, text: str, field: str, value: object
) -> None:
    assert getattr(varied(request("instances=1,2"), {axis: text}), field) == value


@pytest.mark.parametrize(
    ("scan", "says"),
    [
        ("instnces=1,2", "has no setting of that name"),
        ("queue-delay=1,2", "has no setting of that name"),
        ("instances=0,1", "--instances"),
        ("instances=one,two", "is no value of --instances"),
        ("autocast=bf17,off", "is no value"),
        ("shape:points=2x0,2x4", "is no shape"),
        ("concurrency=0,1", "at least one client"),
    ],
)
def test_a_wrong_axis_is_refused_by_name(scan: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        request(scan)
    assert caught.value.hint


def test_a_setting_belongs_to_its_kind_of_scan() -> None:
    with pytest.raises(UsageError, match="setting of a served scan") as caught:
        build_request("particlenet", {"axes": gather(["instances=1,2"])}, NO_REST)
    assert "--via triton" in caught.value.hint
    with pytest.raises(UsageError, match="setting of a direct scan"):
        request("compile=off,on")
    direct = ["compile=off,on", "shape:points=2x16,2x32", "batch=1,8", "autocast=off,bf16"]
    assert build_request("particlenet", {"axes": gather(direct)}, NO_REST).axes


def test_an_option_beside_its_axis_is_refused() -> None:
    with pytest.raises(UsageError, match="both say the same"):
        request("instances=1,2", instances=4)
    with pytest.raises(UsageError, match="closed loop"):
        request("concurrency=1,2", rate="10")


def test_the_server_of_another_has_no_settings_to_scan() -> None:
    with pytest.raises(UsageError, match="starts itself"):
        request("instances=1,2", url="localhost:8001")
    assert request("concurrency=1,2", url="localhost:8001").axes


def test_the_saturation_scan_has_no_axes() -> None:
    with pytest.raises(UsageError, match="by itself"):
        build_request("saturation", {"axes": gather(["instances=1,2"])}, NO_REST)


def test_warm_start_is_for_a_search() -> None:
    with pytest.raises(UsageError, match="for a search"):
        request("instances=1,2", warm_start=("traces/x",))


def test_only_loads_share_a_server() -> None:
    assert {axis for axis, one in SETTINGS.items() if one.place == "load"} == {
        "batch",
        "concurrency",
    }
    assert setting_axes.setting_of("shape:x").place == "client"
