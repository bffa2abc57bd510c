"""Every command in the documents is run, planned, or at least understood; what is not says why."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from profharness.cli import COMMANDS, carry_out, split_line
from profharness.cli.parsing.commands import load
from profharness.errors import UsageError
from tests import started
from tests.conftest import ROOT
from tests.docs.commands import INSTALL, KINDS, Documented, commands_of, counted, documented
from tests.docs.stand_ins import filled

WITHIN_S = 120


def of_kind(*kinds: str) -> Any:
    """A parameter for each different command of these kinds."""
    found = {one.words: one for one in documented() if one.kind in kinds}
    return pytest.mark.parametrize(
        "command", list(found.values()), ids=lambda one: f"{one.name} {' '.join(one.words)[:60]}"
    )


def test_every_command_is_checked_or_says_why_not() -> None:
    unchecked = [f"{one.name}: {one.text.strip()}" for one in documented() if not one.kind]
    assert not unchecked, "\n".join(
        ["these need <!-- not run: why --> before their block, or a check:", *unchecked]
    )
    assert all(one.why_not for one in documented() if one.kind == "not run")


def test_the_kinds_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Most commands are checked by more than a look at their words."""
    found = counted()
    with capsys.disabled():
        print("\ncommands of the documents:", end=" ")
        print(", ".join(f"{count} {kind}" for kind, count in found.items()))
    assert found.keys() == {*KINDS, "not checked"}
    assert found["not checked"] == 0
    assert found["run"] + found["planned"] > found["parsed"] + found["not run"]


@pytest.mark.slow
@of_kind("run")
def test_what_reads_runs_and_files_runs(command: Documented, tmp_path: Path) -> None:
    done = started.run(*filled(command.ours, tmp_path), cwd=tmp_path, timeout=WITHIN_S)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@of_kind("planned")
def test_what_starts_something_is_planned(command: Documented, tmp_path: Path) -> None:
    first, *words = filled(command.ours, tmp_path)
    if "--dry-run" not in words:
        words = ["--dry-run", *words]
    done = started.run(first, *words, cwd=tmp_path, timeout=WITHIN_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@of_kind("parsed", "not run")
def test_the_words_are_understood(command: Documented, tmp_path: Path) -> None:
    """Also those of a block that cannot be run here."""
    if not command.ours:
        return
    understood(filled(command.ours, tmp_path), tmp_path)


def understood(words: list[str], folder: Path) -> None:
    """Raises UsageError where the command does not take these words."""
    assert words[0] in dict(COMMANDS)
    line, rest = split_line(words)
    command = load(words[0])
    command.callback = lambda **_: None
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        carry_out(command, line[1:], rest)


SAMPLING = [
    one
    for one in documented()
    if one.kind in ("parsed", "not run") and one.ours[:1] == ("telemetry",)
]


class SamplingBegins(Exception):  # noqa: N818 - no error, the end of what is tested
    """Raised where sampling would begin."""


@pytest.mark.parametrize("command", SAMPLING, ids=lambda one: " ".join(one.words))
def test_options_of_telemetry_fit_together(
    command: Documented, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def monitor(*_given: object) -> None:
        raise SamplingBegins

    for name in ("monitor", "watch"):
        monkeypatch.setattr(f"profharness.measure.telemetry_only.{name}", monitor)
    monkeypatch.chdir(tmp_path)
    line, rest = split_line(filled(command.ours, tmp_path))
    if "--openmetrics" in line:  # any port: another test may listen at the one that is documented
        line[line.index("--openmetrics") + 1] = "0"
    with pytest.raises(SamplingBegins):
        carry_out(load("telemetry"), line[1:], rest)


@of_kind("make")
def test_targets_are_in_the_makefile(command: Documented) -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in command.words[1:]:
        if "=" in target:
            assert f"({target.partition('=')[0]}" in text, target
        else:
            assert re.search(rf"^{re.escape(target)}:", text, re.MULTILINE), target


@of_kind("install")
def test_extras_are_those_of_the_project(command: Documented) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = INSTALL.fullmatch(" ".join(command.words))
    assert found is not None
    for one in found[1].split():
        name, _, extras = one.removesuffix("]").partition("[")
        assert name in (project["name"], ".") or name.startswith("-"), one
        for extra in filter(None, extras.split(",")):
            assert extra in project["optional-dependencies"], one


# ------------------------------------------------------------------ the check itself


def test_commands_are_found_with_what_they_go_on_in() -> None:
    text = (
        "```console\n$ profharness run \\\n    --trials 3 -- python a.py   # why\nits output\n"
        "$ A=b profharness ls > out.txt && make quick\n```\n\n<!-- not run: no such\nmachine -->\n"
        "```bash\n# a comment\nsrun -n8 profharness run -- x\n```\n\n```python\nprint()\n```\n"
    )
    found = list(commands_of(text, "a.md"))
    assert [(one.line, shlex.join(one.words), one.kind) for one in found] == [
        (2, "profharness run --trials 3 -- python a.py", "planned"),
        (5, "profharness ls", "run"),
        (5, "make quick", "make"),
        (12, "srun -n8 profharness run -- x", "not run"),
    ]
    assert found[-1].why_not == "no such machine"
    assert found[-1].ours == ("run", "--", "x")


def test_a_command_that_nothing_checks_is_seen() -> None:
    (one,) = commands_of("```console\n$ rm -rf build\n```\n", "a.md")
    assert one.kind == ""


def test_a_wrong_option_is_seen(tmp_path: Path) -> None:
    understood(["attach", "4711", "--for", "1min"], tmp_path)
    with pytest.raises(UsageError, match="No such option"):
        understood(["attach", "4711", "--until", "1min"], tmp_path)
