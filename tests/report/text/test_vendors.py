"""Advice on a trace of NVIDIA's device names no tool of AMD."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from profharness.analysis.records import Summary, TraceCounts
from profharness.analysis.verdict.window import HOST_CALLS
from profharness.report.tables.figures import unmeasured
from profharness.report.text.limits import IDLE_CAUSES, LIMITERS
from profharness.report.text.measured.lacking import lacking_lines
from profharness.report.text.measured.vendors import for_device, on_nvidia
from profharness.report.text.sentences import sentences
from profharness.understand.loose.summaries import summarise_paths
from tests.readers.kineto.kineto_files import document, kernel, write

OF_AMD = re.compile(r"rocprof|--pmc|--hip|ROCm|\bAMD\b")


def gpu_only(tmp_path: Path, device: str) -> Summary:
    """Kernels of one device with long gaps, and no host call."""
    kernels = [kernel(f"k{number}", 1000 * number, 100) for number in range(8)]
    properties = [{"id": 0, "name": device, "numSms": 108}]
    return summarise_paths(
        [write(tmp_path / "t.json", document(kernels, deviceProperties=properties))]
    )


def advice(summary: Summary) -> str:
    """All that a reader of the trace is told to do."""
    page = (word for entry in unmeasured(summary) for word in entry)
    return "\n".join((sentences(summary).next, *lacking_lines(summary), *page))


def test_advice_fits_the_device_of_the_trace(tmp_path: Path) -> None:
    amd = gpu_only(tmp_path, "AMD Instinct MI300X")
    nvidia = gpu_only(tmp_path, "NVIDIA A100-SXM4-80GB")
    assert nvidia.verdict_needs == amd.verdict_needs  # JSON says the same of every device
    assert "--hip-trace with rocprofv3" in sentences(amd).next
    assert "that needs host calls (--profile torch), as" in sentences(nvidia).next
    assert OF_AMD.search(advice(amd))
    told = advice(nvidia).replace("figures that only tools of AMD give", "")
    assert not OF_AMD.search(told)
    assert "--profile torch" in told


@pytest.mark.parametrize(
    "text",
    [HOST_CALLS, *(limit.advice for limit in (*IDLE_CAUSES.values(), *LIMITERS.values()))],
)
def test_no_advice_on_limits_names_tools_of_amd(text: str) -> None:
    nvidia = Summary(source="t", trace=TraceCounts(), device_names=("Tesla V100-SXM2-32GB",))
    assert not OF_AMD.search(for_device(text, nvidia))
    assert for_device(text, msgspec.structs.replace(nvidia, device_names=())) == text


def test_devices_of_several_vendors_get_the_advice_of_all() -> None:
    both = ("NVIDIA A100-SXM4-80GB", "AMD Instinct MI300X")
    assert not on_nvidia(Summary(source="t", trace=TraceCounts(), device_names=both))
