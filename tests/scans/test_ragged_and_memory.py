"""Scans with ragged requests: a target for each way, and what is refused; memory that is shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.cli import Rest
from profharness.cli.run import build_request
from profharness.errors import UsageError
from profharness.measure.resume import _request_of
from profharness.node.probe import Environment
from profharness.rundir.levels import ragged_label
from profharness.rundir.manifest import ScanRecord
from profharness.scans import create
from profharness.scans.contract import Scan

NO_REST = Rest((), given=False)


def scan_of(**flags: object) -> Scan:
    return create(build_request(None, flags, NO_REST), Environment())


def test_each_way_is_a_target_with_a_server_of_its_own() -> None:
    scan = scan_of(via="triton", backend="torch,onnxruntime", ragged="padded,triton")
    assert scan.backends == (
        "torch@padded",
        "torch@triton",
        "onnxruntime@padded",
        "onnxruntime@triton",
    )
    for label, way in (("torch@padded", "padded"), ("onnxruntime@triton", "triton")):
        server = scan.server(label)
        assert server is not None
        assert server.worker is not None
        assert server.worker.settings["ragged"] == way
        assert server.worker.settings["repository"] == label
        assert scan.workload(label).settings["ragged"] == way


def test_of_one_way_names_stay_as_they_were() -> None:
    for way in ("none", "padded", "grouped", "triton"):
        scan = scan_of(via="triton", ragged=way)
        assert scan.backends == ("torch",)
        assert scan.workload("torch").settings["ragged"] == way
    assert scan_of(via="triton").workload("torch").settings["ragged"] == "none"
    away = scan_of(url="h:1", model="a,b", ragged="padded,grouped")
    assert away.backends == (
        "server@a.padded",
        "server@a.grouped",
        "server@b.padded",
        "server@b.grouped",
    )


def test_labels_keep_the_model_beside_the_way() -> None:
    assert ragged_label("torch", "triton", ("none", "triton")) == "torch@triton"
    assert ragged_label("torch@tagger", "triton", ("none", "triton")) == "torch@tagger.triton"
    assert ragged_label("torch@tagger", "triton", ("triton",)) == "torch@tagger"


def test_models_together_are_all_served_one_way() -> None:
    scan = scan_of(via="triton", model="sleep:1ms,sleep:2ms", together=True, ragged="triton")
    server = scan.server("together")
    assert server is not None
    assert server.worker is not None
    assert server.worker.settings["ragged"] == "triton"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"ragged": "padded"}, "--ragged is for served scans"),
        ({"via": "triton", "ragged": "stretched"}, "no way stretched"),
        ({"via": "triton", "ragged": "padded,padded"}, "names one twice"),
        ({"url": "h:1", "ragged": "triton"}, "that profharness starts itself"),
        ({"via": "triton", "ragged": "triton", "profile": "torch"}, "no layer reaches"),
        (
            {"via": "triton", "ragged": "grouped,triton", "backend": "tensorflow"},
            "models of torch and onnxruntime",
        ),
        ({"via": "perf-analyzer", "ragged": "padded"}, "one length only"),
        (
            {
                "via": "triton",
                "ragged": "padded,triton",
                "model": "sleep:1ms,sleep:2ms",
                "together": True,
            },
            "--ragged several ways",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence_with_the_way_out(
    flags: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        scan_of(**flags)
    assert refused.value.hint


def test_telemetry_goes_with_triton() -> None:
    assert scan_of(via="triton", ragged="triton", profile="telemetry").backends == ("torch",)


def test_memory_of_a_device_is_planned_with_its_number() -> None:
    for device, number in (("cuda:1", 1), ("cuda:2,cuda:3", 2), ("auto", 0), ("cuda", 0)):
        settings = scan_of(via="triton", shared_memory="hip", device=device).workload("torch")
        assert settings.settings["shared_memory"] == "hip"
        assert settings.settings["device_id"] == number


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"via": "triton", "shared_memory": "gpu"}, "one of none, system, cuda, hip"),
        ({"via": "perf-analyzer", "shared_memory": "hip"}, "NVIDIA's GPUs only"),
        ({"via": "triton", "shared_memory": "cuda", "compression": "gzip"}, "are not sent"),
    ],
)
def test_memory_that_cannot_be_shared(flags: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        scan_of(**flags)


def test_a_run_that_recorded_one_way_as_a_text_is_still_taken_up(tmp_path: Path) -> None:
    settings = {"via": "triton", "ragged": "padded"}
    found = _request_of(ScanRecord(name="particlenet", settings=settings), tmp_path)
    assert found.ragged == ("padded",)
