from __future__ import annotations

from pathlib import Path

import pytest

from profharness.analysis.records import Figure
from profharness.analysis.verdict.window import NOTHING_MEASURED
from profharness.findings import finding
from profharness.report.text.monitoring import Concluded, node_verdict, on_device, text


def cores(used: float | None, allowed: float) -> dict[str, Figure]:
    return {
        "cores_used": Figure(value=used, unit="cores"),
        "cores_allowed": Figure(value=allowed, unit="cores"),
    }


@pytest.mark.parametrize(
    ("used", "kind", "share", "said"),
    [
        (2.0, "undetermined", 1.0, "kept 2 of its 2 cores"),
        (0.5, "idle-cores", 0.75, "kept 0.5 of its 2 cores"),
        (0.001683, "idle-cores", 0.999, "kept 0.00168 of its"),
        (2.1, "undetermined", 1.0, "kept 2.1 of its 2 cores"),
    ],
)
def test_the_node_is_judged_by_its_cores_without_a_bound_on_a_gain(
    used: float, kind: str, share: float, said: str
) -> None:
    verdict = node_verdict(cores(used, 2.0)).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.share, verdict.at_most) == (
        kind,
        pytest.approx(share, abs=1e-3),
        None,
    )
    assert said in verdict.text
    assert "process" not in verdict.text


def test_without_samples_of_the_cpu_there_is_no_verdict() -> None:
    for figures in ({"cores_allowed": Figure(value=2.0, unit="cores")}, cores(None, 2.0)):
        judgement = node_verdict(figures)
        assert (judgement.verdict, judgement.needs) == (None, NOTHING_MEASURED)


def test_a_sampled_device_is_what_the_verdict_is_about() -> None:
    assert on_device({"gpu_percent": Figure(value=0.0, unit="%")})
    assert not on_device(
        {"gpu_percent": Figure(value=None, unit="%"), "cpu_node": Figure(value=1.0, unit="cores")}
    )


def test_sentences_are_wrapped_and_paths_are_not() -> None:
    needs = (
        "a quiet node, as other work held the cores (1.8 on average); "
        "the process ran on 0.2 of 2 allowed cores"
    )
    why = (
        "/sys/class/powercap is absent: the kernel offers no RAPL counters here (virtual "
        "machines rarely do)"
    )
    pressed = finding(
        "cpu-pressure", "the workload waited for a core 82 % of the time that it wanted one"
    )
    files = (
        Path("/a/folder/with/a/name/that/is/longer/than/the/line/of/the/terminal/node.parquet"),
        Path("ResourceLog.csv"),
    )
    said = text(
        Concluded(
            seconds=3.0,
            figures={},
            rows=(),
            findings=(pressed,),
            verdict=None,
            verdict_needs=needs,
            missing={"power_cpu": why},
        ),
        files,
        width=60,
    )
    lines = said.splitlines()
    assert all(len(line) <= 60 for line in lines if "/a/folder" not in line)
    assert " ".join(said.split()).count("verdict none: needs a quiet node, as other work") == 1
    assert lines[-2:] == [f"made       {files[0]}", "           ResourceLog.csv"]
