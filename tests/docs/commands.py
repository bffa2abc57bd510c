"""The commands that stand in the documents, and how each is checked.

`python -m tests.docs.commands` lists them by kind. A block that cannot be checked here says so in
the line before it: `<!-- not run: why -->`.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

FENCE = re.compile(r"^```(console|bash|sh|shell)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- not run: ((?:(?!-->).)+?) -->\s*\Z", re.DOTALL)
SET = re.compile(r"[A-Za-z_]\w*=")
OURS = "profharness"
BETWEEN = frozenset({"|", "||", "&&", ";", "&"})
READING = frozenset(
    {
        "certify",
        "compare",
        "export",
        "fleet",
        "help",
        "hotspots",
        "ls",
        "merge",
        "metrics",
        "plot",
        "report",
        "saturation",
        "schema",
        "scrub",
        "slurm-template",
        "topology",
        "validate",
    }
)
"""What reads runs and files, and ends by itself; what is told of it can be run."""

SET_UP = re.compile(
    r"source \.venv/bin/activate|python3? -m venv \.venv|\.venv/bin/pre-commit install"
)
INSTALL = re.compile(r"(?:(?:\.venv/bin/)?python3? -m )?pip install (.+)")

NODES = frozenset({"--topology", "gpu"})
"""Words of commands that only the node takes which has these CPUs or GPUs."""

KINDS = {
    "run": "run here, over stand-ins",
    "planned": "planned, by --dry-run",
    "parsed": "its words are understood",
    "make": "a target of the Makefile",
    "install": "extras of the project",
    "set-up": "makes or enters an environment",
    "not run": "marked as not to be run",
}


@dataclass(frozen=True)
class Documented:
    """One command of a document: its words, and why it is not to be run where that is said."""

    document: str
    line: int
    text: str
    words: tuple[str, ...]
    why_not: str = ""

    @property
    def name(self) -> str:
        """Where it stands."""
        return f"{self.document}:{self.line}"

    @property
    def kind(self) -> str:
        """How it is checked, one of KINDS; empty where nothing checks it."""
        if self.why_not:
            return "not run"
        line = " ".join(self.words)
        if SET_UP.fullmatch(line):
            return "set-up"
        if INSTALL.fullmatch(line):
            return "install"
        if self.words[0] == "make":
            return "make"
        command = next(iter(self.ours), "")
        if NODES & set(self.words):
            return "parsed"
        if command in ("run", "wrap"):
            return "parsed" if "--resume" in self.words else "planned"
        return "run" if command in READING else "parsed" if command else ""

    @property
    def ours(self) -> tuple[str, ...]:
        """The words behind `profharness`, which a job's own starter may stand before; none for a
        command of another program.
        """
        at = self.words.index(OURS) if OURS in self.words else len(self.words)
        started = at == 0 or self.words[0] == "srun"
        return self.words[at + 1 :] if started else ()


def documents() -> list[Path]:
    """The files that a reader finds commands in."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@cache
def documented() -> tuple[Documented, ...]:
    """Every command of every document, in their order."""
    return tuple(
        one
        for path in documents()
        for one in commands_of(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    )


def commands_of(text: str, document: str) -> Iterator[Documented]:
    """The commands of one document's blocks; of a console's, what stands behind its `$`."""
    for block in FENCE.finditer(text):
        mark = MARK.search(text[: block.start()])
        first = text.count("\n", 0, block.start()) + 2
        for number, line in _lines(block[2], is_console=block[1] == "console"):
            for words in _commands(line):
                yield Documented(
                    document, first + number, line, words, " ".join(mark[1].split()) if mark else ""
                )


def _lines(block: str, *, is_console: bool) -> Iterator[tuple[int, str]]:
    """The lines that a shell would get, each with those that it goes on in; by number in the
    block.
    """
    lines = iter(enumerate(block.splitlines()))
    for number, line in lines:
        if is_console and not line.startswith("$ "):
            continue
        whole = line.removeprefix("$ ") if is_console else line
        while whole.endswith("\\"):
            whole = whole[:-1] + next(lines, (0, ""))[1].removeprefix("> ")
        if whole.strip() and not whole.lstrip().startswith("#"):
            yield number, whole


def _commands(line: str) -> Iterator[tuple[str, ...]]:
    """The commands of a line, without what it sets for them and without redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word not in BETWEEN:
            words.append(word)
        elif words:
            yield _bare(words)
            words = []


def _bare(words: list[str]) -> tuple[str, ...]:
    while words and SET.match(words[0]):
        words = words[1:]
    at = next((number for number, word in enumerate(words) if set(word) <= set("<>")), len(words))
    return tuple(words[:at])


def counted() -> dict[str, int]:
    """How many commands are checked in which way."""
    found = Counter(one.kind or "not checked" for one in documented())
    return {kind: found[kind] for kind in (*KINDS, "not checked")}


def main() -> None:
    """Print the commands and their numbers by kind."""
    for one in documented():
        print(f"{one.kind or 'NOT CHECKED':<10} {one.name:<28} {shlex.join(one.words)}")
    for kind, count in counted().items():
        print(f"{count:>4}  {KINDS.get(kind, 'nothing checks it')}")


if __name__ == "__main__":
    main()
