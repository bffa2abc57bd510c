"""Command lines and options that advice names, taken from texts, and whether profharness takes
them.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from profharness.cli import COMMANDS
from profharness.cli.parsing import commands
from profharness.errors import ProfharnessError

HOLE = "7"
"""What stands in a text where the code puts a value: a number, a name and a file all look like
it."""
_LINE = re.compile(r"`profharness ([^`\n\[]+)`")
_QUOTED = re.compile(r"`[^`\n]*`")
_OPTION = re.compile(r"(?<![\w:=-])--[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_WORDS_OF_ROOT = frozenset({"--help", "--version", "--install-completion", "--show-completion"})
# Options of other programs, each with a word by which the same text says whose it is.
FOREIGN = {
    "--cap-add": "container",
    "--collection-period": "rocprofiler-sdk",
    "--cuda-memory-usage": "nsys",
    "--experimental": "experimental feature",
    "--gpus": "srun",
    "--gres": "srun",
    "--group-add": "container",
    "--list-avail": "rocprofv3",
    "--nv": "Apptainer",
    "--output-format": "tool's own",
    "--profile-export-file": "perf_analyzer",
    "--rocm": "ptainer",
    "--signal": "scancel",
    "--spec": "python -m",
    "--timestamp": "recorded without",
    "--trace-legacy": "rocprof-sys",
}


@cache
def options_of(name: str) -> frozenset[str]:
    """All spellings of the options of a command."""
    return frozenset(
        word
        for parameter in commands.load(name).params
        for word in (*parameter.opts, *parameter.secondary_opts)
    )


@cache
def _all_options() -> frozenset[str]:
    names = [name for name, _ in COMMANDS if name != "help"]
    return frozenset().union(*map(options_of, names)) | _WORDS_OF_ROOT


def lines_of(text: str) -> list[str]:
    """The words behind `profharness` of each command line that a text quotes."""
    return _LINE.findall(text)


@cache
def why_refused(line: str) -> str:
    """What the parser says of a command line without its `profharness`; empty where it takes it."""
    name, *words = shlex.split(line.partition(" -- ")[0])
    if name in ("COMMAND", "--help", "help", HOLE):
        return ""
    if name not in dict(COMMANDS):
        return f"there is no command {name}"
    if not words or "--help" in words:
        return ""  # a name alone only mentions the command
    try:
        commands.load(name).make_context(name, [word for word in words if word != "..."])
    except click.BadOptionUsage as error:
        if words != [error.option_name]:  # an option alone is only mentioned, too
            return error.message
    except (click.ClickException, ProfharnessError) as error:
        return str(getattr(error, "message", error))
    return ""


def _own(quoted: re.Match[str]) -> str:
    """Nothing of a command line of another program."""
    return quoted[0] if quoted[0].startswith(("`profharness ", "`--")) else ""


def wrong_in(text: str) -> list[str]:
    """What profharness would not take of the commands and options that a text names."""
    refused = [
        f"profharness {line}: {why}" for line in lines_of(text) if (why := why_refused(line))
    ]
    unknown = [
        option
        for option in _OPTION.findall(_QUOTED.sub(_own, text))
        if option not in _all_options()
        and not (option in FOREIGN and (FOREIGN[option] in text or f"docker {option}" in text))
    ]
    return [*refused, *unknown]


def texts_in(folder: Path) -> Iterator[tuple[str, str]]:
    """Place and text of all strings of the code that people may read: not docstrings, and only
    those of several words. Values stand as HOLE.
    """
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        left_out = {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }  # docstrings
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                left_out |= {id(part) for part in node.values}
                text = "".join(
                    part.value if isinstance(part, ast.Constant) else HOLE for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            if id(node) not in left_out and " " in text:
                yield f"{path.relative_to(folder)}:{node.lineno}", text
