"""What `--help` says, as a user sees it: each argument explained, each scan listed."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from profharness.cli import COMMANDS
from profharness.options.request import BACKENDS
from profharness.scans import SCANS, studies, training


def help_of(name: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "profharness", name, "--help"],
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
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
    assert "a frozen TensorFlow graph (.graphdef, .pb) or a SavedModel folder" in words


def test_the_token_of_a_server_elsewhere_is_documented_where_its_address_is() -> None:
    words = " ".join(help_of("run").split())
    assert (
        "The token that it wants is taken from the variable PROFHARNESS_TOKEN. --token-file TEXT"
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
