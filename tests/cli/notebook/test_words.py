"""Options in Python are those of the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profharness.cli.notebook.words import words_of
from profharness.cli.parsing.commands import load
from profharness.errors import UsageError


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_sizes": [1, 4]}, ["--batch-sizes=1,4"]),
        ({"batch_sizes": "4..2048"}, ["--batch-sizes=4..2048"]),
        ({"batch_sizes": range(1, 4)}, ["--batch-sizes=1,2,3"]),
        ({"batch_sizes": np.array([1, 8])}, ["--batch-sizes=1,8"]),
        ({"profile": "torch"}, ["--profile=torch"]),
        ({"profile": ["torch", "onnxruntime"]}, ["--profile=torch", "--profile=onnxruntime"]),
        ({"tool_arg": ["a:-x", "b:--y=1"]}, ["--tool-arg=a:-x", "--tool-arg=b:--y=1"]),
        ({"isolate": True, "compile": False}, ["--isolate"]),
        ({"min_seconds": np.float64(0.5)}, ["--min-seconds=0.5"]),
        ({"shape": {"x": (1, 2), "y": 3}}, ["--shape=x:1,2", "--shape=y:3"]),
        ({"output": Path("traces/a b")}, ["--output=traces/a b"]),
        ({"trials": None}, []),
        ({"att": True}, ["--thread-trace"]),
    ],
)
def test_values_become_words(options, words):
    assert words_of(options) == words


def test_the_command_line_takes_such_words():
    command = load("run")
    words = words_of({"batch_sizes": [1, 4], "profile": ["torch"], "bare": False, "trials": 5})
    context = command.make_context("run", words)
    assert context.params["batch_sizes"] == "1,4"
    assert context.params["profile"] == ("torch",)
    assert context.params["bare"] is None
    assert context.params["trials"] == 5


def test_an_unknown_option_names_the_nearest():
    with pytest.raises(UsageError, match="no option 'batchsizes'") as told:
        words_of({"batchsizes": 4})
    assert "'batch_sizes'" in told.value.hint
    with pytest.raises(UsageError, match="no option 'dry_run'"):
        words_of({"dry_run": True})


@pytest.mark.parametrize("value", [object(), b"4", [True]])
def test_a_value_that_is_no_word_is_refused(value):
    with pytest.raises(UsageError, match="batch_sizes"):
        words_of({"batch_sizes": value})
    with pytest.raises(UsageError, match="not a truth value"):
        words_of({"isolate": 1})
