from __future__ import annotations

import msgspec
import pytest

from profharness.analysis.run.checks import mask_findings
from profharness.analysis.run.summary import summarise_run
from profharness.rundir.manifest import Hello, NodeRecord
from tests.analysis.run.run_scene import manifest, scan_trace


def masked(**variables):
    return manifest(nodes=(NodeRecord(host="n", variables=variables),))


@pytest.mark.parametrize(
    ("rocr", "hip", "severity"),
    [
        ("2", "2", "error"),
        ("4,5,6,7", "4,5", "error"),
        ("4,5,6,7", "2,3", "warning"),
        ("0,1", "1,0", "warning"),
    ],
)
def test_two_masks_one_after_the_other(rocr, hip, severity):
    (found,) = mask_findings(masked(ROCR_VISIBLE_DEVICES=rocr, HIP_VISIBLE_DEVICES=hip))
    assert (found.id, found.severity) == ("mask-applied-twice", severity)
    assert found.figures == {"rocr": rocr, "hip": hip}
    assert ("not among them" in found.message) == (severity == "error")


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"ROCR_VISIBLE_DEVICES": "2"},
        {"HIP_VISIBLE_DEVICES": "2"},
        {"ROCR_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "0,1"},
        {"ROCR_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "3"},
    ],
)
def test_one_mask_or_one_that_changes_nothing(variables):
    assert mask_findings(masked(**variables)) == ()


def test_masks_of_a_container_are_those_of_its_processes():
    """The node around it has none, and two ranks with the same ones are told once."""
    masks = {"ROCR_VISIBLE_DEVICES": "2", "HIP_VISIBLE_DEVICES": "2"}
    processes = tuple(Hello(pid=pid, host="n", masks=masks) for pid in (1, 2))
    run = msgspec.structs.replace(masked(), processes=processes)
    assert [one.id for one in mask_findings(run)] == ["mask-applied-twice"]


def test_a_run_says_it():
    builder, _ = scan_trace()
    summary = summarise_run(
        masked(ROCR_VISIBLE_DEVICES="1", CUDA_VISIBLE_DEVICES="1"), builder.trace(), "x"
    )
    assert "mask-applied-twice" in [one.id for one in summary.findings]
