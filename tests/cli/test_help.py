"""What `--help` says, as a user sees it: each argument explained, each scan listed."""

from __future__ import annotations

import os
import re

import pytest

from profharness.cli import COMMANDS, run_cli
from profharness.cli.parsing.commands import load
from profharness.options.workload import BACKENDS
from profharness.scans import SCANS, studies, training
from tests import started


def help_of(name: str, topic: str = "") -> str:
    words = (name, "--help", *([topic] if topic else []))
    done = started.run(*words, env={**os.environ, "COLUMNS": "80"})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_run_lists_every_scan_by_name_with_a_clause() -> None:
    text = help_of("run")
    listed = dict(
        re.findall(r"^ {4}([a-z0-9-]+) {2,}(\S.*)$", text.partition("Arguments:")[0], re.MULTILINE)
    )
    assert set(listed) == {*SCANS, *training.TRAINING, *studies.names()}
    assert listed["saturation"] == "looks for the knee of a server by itself"
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "  [SCAN]  A name listed above (default particlenet), or a .toml scan file; a\n" in text


def test_run_names_every_backend_and_kind_of_model() -> None:
    words = " ".join(help_of("run").split())
    assert f"--backend TEXT {', '.join(BACKENDS)} (default" in words
    assert "a frozen TensorFlow graph (.graphdef, .pb), a SavedModel folder, or" in words


def test_the_token_of_a_server_elsewhere_is_documented_where_its_address_is() -> None:
    words = " ".join(help_of("run", "serving").split())
    assert (
        "The variable PROFHARNESS_TOKEN holds its token, if it needs one. --token-file TEXT"
        in words
    )
    assert "--ca TEXT PEM file with the authority of the certificate" in words


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_every_argument_is_explained_once(name: str) -> None:
    text = help_of(name)
    usage = re.search(rf"^Usage: profharness {name} \[OPTIONS\]((?: \S+)*)$", text, re.MULTILINE)
    assert usage is not None
    for argument in usage[1].split():
        (said,) = re.findall(rf"^  {re.escape(argument)}  +(\S.*)$", text, re.MULTILINE)
        assert not said.startswith("[required]"), said


def screen(*words: str) -> list[str]:
    done = started.run(*words, env={**os.environ, "COLUMNS": "110"})
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


def options_of(lines: list[str]) -> set[str]:
    return {word for line in lines for word in re.findall(r"^  (?:-\w+, )?(--[a-z-]+)", line)}


@pytest.mark.slow
def test_every_option_of_run_stands_under_one_topic() -> None:
    command = load("run")
    first = screen("run", "--help")
    named = [line.split()[0] for line in first[-len(command.topics) :]]
    assert named == [topic.word for topic in command.topics]
    under = {word: options_of(screen("help", "run", word)) for word in named}
    fields = [field for field in command.fields.values() if not field.option.argument]
    for field in fields:
        (word,) = [word for word, options in under.items() if field.names[0] in options]
        assert word == field.option.topic.word
    common = {field.names[0] for field in fields if field.option.common}
    assert options_of(first) == {*common, "--help"}
    assert len(common) <= 22


@pytest.mark.parametrize("words", [(), *((topic.word,) for topic in load("run").topics)])
def test_each_screen_of_run_is_readable(words: tuple[str, ...]) -> None:
    lines = screen("run", "--help", *words)
    assert len(lines) <= 65
    assert max(map(len, lines)) <= 110


@pytest.mark.slow
def test_a_topic_is_asked_for_in_three_ways() -> None:
    assert screen("run", "--help", "serving") == screen("run", "--help=serving")
    assert screen("run", "--help", "serving") == screen("help", "run", "serving")
    assert screen("help", "run") == screen("run", "--help")
    assert screen("help") == screen("--help")
    assert "  --rccl-trace " in "\n".join(screen("help", "run", "layers"))


@pytest.mark.parametrize("words", [("run", "--help", "servng"), ("help", "run", "servng")])
def test_a_topic_that_is_not_there_is_told_with_those_that_are(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(words) == 2
    assert capsys.readouterr().err == (
        "error: run --help: there is no topic 'servng'\n"
        "  topics: layers, scan, axes, serving, processes, telemetry, place, batch, output\n"
    )


def test_a_tracer_option_names_the_layers_that_honour_it() -> None:
    words = " ".join(" ".join(screen("help", "run", "layers")).split())
    assert "--rccl-trace RCCL calls (rocprofv3, rocprof-sys)." in words
