"""Advice on a trace of NVIDIA's device names no tool of AMD."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from profharness.analysis.records import Partition, Summary, TraceCounts
from profharness.analysis.verdict.records import Grounds, KernelParts
from profharness.analysis.verdict.window import HOST_CALLS, judge
from profharness.findings.ways import WAYS
from profharness.report.json import metrics_json
from profharness.report.md.metrics import metrics_markdown
from profharness.report.page.html import render as page_of
from profharness.report.text.limits import IDLE_CAUSES, LIMITERS
from profharness.report.text.measured.vendors import as_read, for_device, on_nvidia
from profharness.report.text.metrics import metrics_text
from profharness.report.text.sentences import sentences
from profharness.report.text.terminal import render as terminal_of
from profharness.understand.loose.summaries import summarise_paths
from profharness.understand.session.html import brief
from tests.readers.kineto.kineto_files import document, kernel, write

OF_AMD = re.compile(r"rocprof|--pmc|--hip|--kernel-trace|ROCm|roctx|\bAMD\b")
PACKAGE = Path(__file__).parents[3] / "profharness"
Ceilings = Literal["measured", "data sheet"]
NVIDIA = ("NVIDIA A100-SXM4-80GB",)
ONLY_THERE = "figures that only tools of AMD give"

# Sentences that only files and runs of AMD's tools lead to, and names of counters, which stand in
# needs that only AMD's tools meet: a reader with an NVIDIA device meets none of them.
OF_AMD_ALONE = (
    "(--pmc ",
    "counters of DRAM requests (--pmc ",
    "let the program and the profiler use one ROCm",
    " under ROCm ",
    "ROCm 6.3.0 to 6.4.1 stamps",
    "a counter pass (--pmc MfmaFlops) beside one without counters",
    "Which kernels take the time was not recorded: on AMD, attach with --profile rocprofv3.",
    ", or torch on NVIDIA",
    "times: add --profile rocprofv3 --hip-trace for them.",
    " in code that rocprofv3 could not decode",
    "`rocprofv3 -L` says what the device can",
    "try --tool-arg rocprofv3:",
    "on AMD, attach with --profile ",
    ONLY_THERE,
)


def gpu_only(tmp_path: Path, device: str) -> Summary:
    """Kernels of one device with long gaps, and no host call."""
    kernels = [kernel(f"k{number}", 1000 * number, 100) for number in range(8)]
    properties = [{"id": 0, "name": device, "numSms": 108}]
    return summarise_paths(
        [write(tmp_path / "t.json", document(kernels, deviceProperties=properties))]
    )


def read(summary: Summary) -> str:
    """All that people read of the summary: the terminal, the page, Markdown and a notebook."""
    return "\n".join(
        (
            terminal_of(summary, 200, color=False),
            metrics_text(summary),
            metrics_markdown(summary),
            page_of(summary),
            brief(summary, "Recording"),
        )
    ).replace(ONLY_THERE, "")


def test_advice_fits_the_device_of_the_trace(tmp_path: Path) -> None:
    amd = gpu_only(tmp_path, "AMD Instinct MI300X")
    nvidia = gpu_only(tmp_path, "NVIDIA A100-SXM4-80GB")
    assert nvidia.verdict_needs == amd.verdict_needs  # JSON says the same of every device
    assert "--hip-trace with rocprofv3" in sentences(amd).next
    assert "that needs host calls (--profile torch), as" in sentences(nvidia).next
    assert OF_AMD.search(read(amd))
    told = read(nvidia)
    assert not OF_AMD.search(told)
    assert "--profile torch" in told


@pytest.mark.parametrize("ceilings", ["measured", "data sheet"])
def test_the_verdict_itself_names_no_tool_of_amd(ceilings: Ceilings) -> None:
    """Kernels of known work that no ceiling judges: its evidence says what would tell the rest."""
    window = Partition(
        window_ns=1000, compute_ns=1000, exposed_communication_ns=0, exposed_copy_ns=0, idle_ns=0
    )
    parts = msgspec.structs.replace(window, kernel_parts=KernelParts(undetermined_ns=1000))
    judged = judge(parts, {}, (), Grounds(ceilings=ceilings))
    assert judged.verdict is not None
    assert "hardware counters (--pmc on AMD)" in judged.verdict.text
    summary = Summary(
        source="t",
        trace=TraceCounts(),
        partition=parts,
        verdict=judged.verdict,
        device_names=NVIDIA,
    )
    assert "--pmc on AMD" in metrics_json(summary).decode()
    told = read(summary)
    assert not OF_AMD.search(told)
    assert "hardware counters (Nsight Compute, ncu)" in told


def test_each_way_is_worded_for_nvidia_once_and_for_all() -> None:
    nvidia = Summary(source="t", trace=TraceCounts(), device_names=NVIDIA)
    assert len({way.words for way in WAYS}) == len(WAYS)
    for way in WAYS:
        assert OF_AMD.search(way.words)
        assert not OF_AMD.search(way.on_nvidia)
        assert for_device(f"a {way} b", nvidia) == f"a {way.on_nvidia} b"
        assert for_device(way.on_nvidia, nvidia) == way.on_nvidia  # twice is as good as once


def test_a_summary_of_another_device_is_not_copied() -> None:
    amd = Summary(source="t", trace=TraceCounts(), device_names=("AMD Instinct MI300X",))
    assert as_read(amd) is amd


@pytest.mark.parametrize(
    "text",
    [HOST_CALLS, *(limit.advice for limit in (*IDLE_CAUSES.values(), *LIMITERS.values()))],
)
def test_no_advice_on_limits_names_tools_of_amd(text: str) -> None:
    nvidia = Summary(source="t", trace=TraceCounts(), device_names=("Tesla V100-SXM2-32GB",))
    assert not OF_AMD.search(for_device(text, nvidia))
    assert for_device(text, msgspec.structs.replace(nvidia, device_names=())) == text


def texts(path: Path) -> Iterator[str]:
    """The texts of a module that are no docstrings."""
    tree = ast.parse(path.read_text())
    remarks = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in remarks
        ):
            yield node.value


@pytest.mark.parametrize("folder", ["analysis", "findings", "report/text", "report/tables"])
def test_every_sentence_takes_its_tools_from_the_ways(folder: str) -> None:
    """A sentence that names a tool of AMD by itself would reach people with NVIDIA devices."""
    names = re.compile(r"rocprofv3|--pmc|--hip-trace|--kernel-trace|ROCm|roctx")
    found = [
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        if path.name != "ways.py"
        for text in texts(path)
        if names.search(text) and " " in text and not any(one in text for one in OF_AMD_ALONE)
    ]
    assert found == []


def test_devices_of_several_vendors_get_the_advice_of_all() -> None:
    both = ("NVIDIA A100-SXM4-80GB", "AMD Instinct MI300X")
    assert not on_nvidia(Summary(source="t", trace=TraceCounts(), device_names=both))
