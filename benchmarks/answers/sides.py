"""One checkout as a program: what it is asked, what it answers, and where its answers are kept."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from answers import forms

LIMIT_S = 600
HARNESS = "profharness"
STAND_IN = "stand_in_run.py"  # profharness with a stand-in server and load generator


@dataclass(frozen=True)
class Question:
    """Command lines that run one after the other in one new folder, and the files that they leave.

    `copies` are files and folders that are put into the new folder first, by the name that they
    get there. `files` are read as text, `traces` as bytes. `program` is what runs the words.
    `fresh` tells that the commands measure something: only the form of the answer is compared.
    """

    kind: str
    name: str
    steps: tuple[tuple[str, ...], ...]
    copies: tuple[tuple[str, Path], ...] = ()
    files: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    program: str = HARNESS
    fresh: bool = False

    @property
    def title(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def key(self) -> str:
        """Changes with everything that is asked."""
        asked = [
            self.title,
            self.steps,
            [(name, str(path)) for name, path in self.copies],
            self.files,
            self.traces,
            self.variables,
            self.program,
        ]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:24]


@dataclass
class Answer:
    """Texts by name (standard output and error, exit codes, files), and the bytes of traces."""

    texts: dict[str, str] = field(default_factory=dict)
    traces: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Side:
    """A checkout, the interpreter that runs it, and the folder where commands are started."""

    checkout: Path
    python: Path
    place: Path

    @property
    def commit(self) -> str:
        """Of the checkout; with a mark of the changes that are not committed."""
        git = ["git", "-C", str(self.checkout)]
        head = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False
        )
        if head.returncode != 0:
            return "no-commit"
        changed = subprocess.run([*git, "diff", "HEAD"], capture_output=True, check=False).stdout
        mark = f"-{hashlib.sha256(changed).hexdigest()[:12]}" if changed else ""
        return head.stdout.strip() + mark

    def ask(self, question: Question) -> Answer:
        """Run the commands in an empty folder, which is removed afterwards."""
        folder = self.place / question.key
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            for name, source in question.copies:
                _copy(source, folder / name)
            return self._answer(question, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _answer(self, question: Question, folder: Path) -> Answer:
        answer = Answer()
        for number, words in enumerate(question.steps, 1):
            done = self.run(words, folder, dict(question.variables), program=question.program)
            answer.texts[f"exit code {number}"] = str(done.returncode)
            answer.texts[f"stdout {number}"] = done.stdout
            answer.texts[f"stderr {number}"] = done.stderr
        for name in question.files:
            path = folder / name
            answer.texts[name] = path.read_text(errors="replace") if path.is_file() else "(absent)"
        for name in question.traces:
            path = folder / name
            answer.traces[name] = path.read_bytes() if path.is_file() else b""
        if question.fresh:
            answer.texts.update(forms.of_run(folder / "run"))
        return answer

    def command(self, words: tuple[str, ...], program: str = HARNESS) -> list[str]:
        if program == HARNESS:
            return [str(self.python), "-m", "profharness", *words]
        found = sorted((self.checkout / "tests").rglob(program))
        if not found:
            raise SystemExit(
                f"error: {self.checkout}/tests has no {program}, which starts profharness"
                " with stand-ins"
            )
        return [str(self.python), str(found[0]), *words]

    def run(
        self,
        words: tuple[str, ...],
        folder: Path,
        variables: dict[str, str],
        *,
        program: str = HARNESS,
    ) -> subprocess.CompletedProcess[str]:
        """Run one command to its end; one that takes too long has the exit code -1."""
        command = self.command(words, program)
        try:
            return subprocess.run(
                command,
                cwd=folder,
                env=self.environment(folder, variables),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, -1, "", f"no end within {LIMIT_S} s\n")

    def environment(self, folder: Path, variables: dict[str, str]) -> dict[str, str]:
        """The variables of a command: nothing of this process but PATH and the user's home.

        `{PATH}` in a given value stands for the PATH.
        """
        path = os.environ.get("PATH", os.defpath)
        plain = {
            "PATH": path,
            "HOME": os.environ.get("HOME", "/"),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(self.checkout),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "100",
            "PROFHARNESS_CACHE": str(folder / "cache"),
            "SOURCE_DATE_EPOCH": "0",
            "MATPLOTLIBRC": str(self.place / "matplotlibrc"),
        }
        given = {name: value.replace("{PATH}", path) for name, value in variables.items()}
        return {**plain, **given}


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


class Kept:
    """Answers of one commit, kept in a folder as they came."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, question: Question) -> Answer | None:
        path = self.folder / f"{question.key}.json.gz"
        if not path.is_file():
            return None
        with gzip.open(path, "rt", encoding="utf-8", errors="surrogateescape") as file:
            texts = json.load(file)
        traces = {
            name: gzip.decompress(self._trace(question, number).read_bytes())
            for number, name in enumerate(question.traces)
        }
        return Answer(texts, traces)

    def put(self, question: Question, answer: Answer) -> None:
        for number, name in enumerate(question.traces):
            self._trace(question, number).write_bytes(gzip.compress(answer.traces[name], 1))
        path = self.folder / f"{question.key}.json.gz"
        partial = path.with_suffix(".partial")
        with gzip.open(
            partial, "wt", compresslevel=1, encoding="utf-8", errors="surrogateescape"
        ) as file:
            json.dump(answer.texts, file)
        partial.replace(path)

    def _trace(self, question: Question, number: int) -> Path:
        return self.folder / f"{question.key}-{number}.trace.gz"
