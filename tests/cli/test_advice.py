"""Commands in advice are ones that profharness itself takes, and fit the kind of run."""

from __future__ import annotations

import re
import shlex

import pytest

from profharness.analysis.run.checks import NOBODY, RUN_AGAIN, incomplete_findings
from profharness.cli.parsing import commands
from profharness.findings import CATALOGUE
from profharness.report.text import command_sentences
from profharness.supervise.hook_reports import NAME_PYTHON
from tests.analysis.run.run_scene import manifest

TEXTS = (
    *(kind.advice for kind in CATALOGUE.values()),
    NAME_PYTHON,
    NOBODY,
    RUN_AGAIN,
    *(
        text
        for name, text in vars(command_sentences).items()
        if name.isupper() and isinstance(text, str)
    ),
)
LINES = sorted({line for text in TEXTS for line in re.findall(r"`profharness ([^`]+)`", text)})


@pytest.mark.parametrize("line", LINES)
def test_the_parser_takes_what_is_advised(line: str) -> None:
    name, *words = shlex.split(line.partition(" -- ")[0])
    command = commands.load(name)
    if words:  # a name alone only mentions the command
        command.make_context(name, [word for word in words if word != "..."])


def test_there_is_advice_to_parse() -> None:
    assert len(LINES) >= 3


def test_a_command_is_not_advised_to_resume() -> None:
    (of_command,) = incomplete_findings(manifest(kind="command", scan=None), "killed")
    (of_scan,) = incomplete_findings(manifest(), "killed")
    assert "--resume" not in of_command.advice
    assert "--resume" in of_scan.advice


def test_a_command_is_not_advised_to_take_an_option_of_scans() -> None:
    assert "--threads" in command_sentences.OWN_THREADS
    assert "--threads" not in command_sentences.OWN_THREADS_OF_COMMAND
