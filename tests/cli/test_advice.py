"""Commands in advice are ones that profharness itself takes, and fit the kind of run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import profharness
from profharness.analysis.records import Summary
from profharness.analysis.run.checks import incomplete_findings
from profharness.analysis.verdict.wording import verdict_of
from profharness.findings import CATALOGUE, finding, ways
from profharness.report.text import command_sentences
from profharness.report.text.limits import CPU_LIMITERS, IDLE_CAUSES, LIMITERS
from profharness.report.text.sentences import sentences
from profharness.report.text.terminal import render
from tests import advice
from tests.analysis.run.run_scene import manifest
from tests.report import samples

KINDS = (
    *LIMITERS,
    *CPU_LIMITERS,
    *(f"idle-{name.removesuffix('_ns').replace('_', '-')}" for name in IDLE_CAUSES),
)


def cpu_command() -> Summary:
    """A command without device work and without records: what would tell more is advised."""
    summary = samples.command()
    return msgspec.structs.replace(
        summary,
        devices={},
        partition=None,
        verdict=None,
        hotspots=(),
        trace=samples.empty().trace,
        metrics={},
    )


STATES = {
    "scan": samples.gpu_scan,
    "scan on a CPU": samples.cpu_scan,
    "command": samples.command,
    "command on a CPU": cpu_command,
    "points that failed": samples.failing,
    "nothing": samples.empty,
}


def said(summary: Summary) -> str:
    """Everything that a terminal shows of a summary, with no line broken."""
    words = sentences(summary)
    return "\n".join((render(summary, 2000, color=False), words.answer, words.next, words.trust))


def test_every_text_of_the_code_names_commands_and_options_that_there_are() -> None:
    texts = list(advice.texts_in(Path(profharness.__file__).parent))
    assert sum(len(advice.lines_of(text)) for _, text in texts) > 50
    wrong = {place: found for place, text in texts if (found := advice.wrong_in(text))}
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`profharness hotspots RUN --by op` lists them", []),
        ("`profharness hotspots RUN --by nothing` lists them", 1),
        ("`profharness run --resume -o DIR`", []),
        ("`profharness run --no-such-option -- COMMAND`", 2),
        ("`profharness frobnicate`", ["profharness frobnicate: there is no command frobnicate"]),
        ("add --no-such-option", ["--no-such-option"]),
        ("gate on `profharness compare --fail-on`", []),
        ("use --tool-arg rocprofv3:--any-option-of-it", []),
        ("request one from Slurm: srun --gpus=1", []),
        ("add --gpus 1", ["--gpus"]),
    ],
)
def test_what_nobody_takes_is_found(text: str, wrong: list[str] | int) -> None:
    found = advice.wrong_in(text)
    assert (found if isinstance(wrong, list) else len(found)) == wrong


@pytest.mark.parametrize("state", sorted(STATES))
def test_whatever_is_found_the_report_names_what_there_is(state: str) -> None:
    """Each kind of finding as the only one: an error changes what Next says, and none the rest."""
    summary = STATES[state]()
    assert advice.wrong_in(said(summary)) == []
    for name, kind in CATALOGUE.items():
        assert advice.wrong_in(kind.advice) == [], name
        for severity in ("error", "warning"):
            item = finding(name, "it was so", severity=severity)  # type: ignore[arg-type]
            words = sentences(msgspec.structs.replace(summary, findings=(item,)))
            assert advice.wrong_in(f"{words.answer} {words.next}") == [], (state, name)


@pytest.mark.parametrize("kind", sorted(dict.fromkeys(KINDS)))
@pytest.mark.parametrize("state", ["command", "command on a CPU"])
def test_whatever_the_verdict_the_report_names_what_there_is(state: str, kind: str) -> None:
    summary = STATES[state]()
    for status in (0, 1, 3, 139):
        run = summary.run
        assert run is not None
        judged = msgspec.structs.replace(
            summary,
            verdict=verdict_of(kind, 0.6, "it is so", 2.0),
            run=msgspec.structs.replace(run, exit_status=status),
        )
        assert advice.wrong_in(said(judged)) == []


@pytest.mark.parametrize("way", ways.WAYS, ids=str)
def test_each_way_names_what_there_is_in_both_wordings(way: ways.Way) -> None:
    assert advice.wrong_in(way.words) == []
    assert advice.wrong_in(way.on_nvidia) == [] or "nsys" in way.on_nvidia


def test_a_command_is_not_advised_to_resume() -> None:
    (of_command,) = incomplete_findings(manifest(kind="command", scan=None), "killed")
    (of_scan,) = incomplete_findings(manifest(), "killed")
    assert "--resume" not in of_command.advice
    assert "--resume" in of_scan.advice


def test_a_command_is_not_advised_to_take_an_option_of_scans() -> None:
    assert "--threads" in command_sentences.OWN_THREADS
    assert "--threads" not in command_sentences.OWN_THREADS_OF_COMMAND
