"""Placeholders for what may differ between two checkouts; the first difference of two answers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from answers import forms, packets
from answers.sides import Answer, Question, Side

SHOWN = 240
_TIME = re.compile(
    r"\b\d{8}T\d{6}\b|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"
)
_WRAPPER = re.compile(r"<CHECKOUT>/wrappers((?:/[\w.-]+)*)")
# of a process, in words, in a variable and in the name of an execution under `wrap`
_PID = re.compile(r"(\bpid |_PID=|\bwrap-r\d+-)\d+(?![0-9])")


class Placeholders:
    """Puts names in place of checkouts, interpreters, versions, pids and times.

    `bare`: the names of files in wrappers/ are left out too.
    """

    def __init__(self, sides: tuple[Side, ...], versions: tuple[str, ...], *, bare: bool) -> None:
        self.words = {str(side.python): "<PYTHON>" for side in sides}
        for side in sides:
            self.words[str(side.checkout / ".venv" / "bin" / "python")] = "<PYTHON>"
            self.words[str(side.checkout)] = "<CHECKOUT>"
            self.words[str(side.checkout.resolve())] = "<CHECKOUT>"
        for version in versions:
            self.words[f"profharness {version}"] = "profharness <VERSION>"
            self.words[f'"version": "{version}"'] = '"version": "<VERSION>"'
            self.words[f'"harness_version": "{version}"'] = '"harness_version": "<VERSION>"'
        longest = sorted(self.words, key=len, reverse=True)
        self.pattern = re.compile("|".join(re.escape(word) + r"(?![\w-])" for word in longest))
        self.bare = bare

    def put(self, text: str) -> str:
        text = self.pattern.sub(lambda found: self.words[found.group()], text)
        text = _WRAPPER.sub(self._wrapper, text)
        text = re.sub(r"<WRAPPERS>(?::<WRAPPERS>)+", "<WRAPPERS>", text)
        return _TIME.sub("<TIME>", _PID.sub(r"\1<PID>", text))

    def _wrapper(self, found: re.Match[str]) -> str:
        """A folder of wrappers/ has no name, a file its last one."""
        last = found.group(1).rpartition("/")[2]
        return f"<WRAPPERS>/{last}" if "." in last and not self.bare else "<WRAPPERS>"


@dataclass(frozen=True)
class Difference:
    """Where two answers part first: the part of the answer, and the line of each side."""

    title: str
    part: str
    old: str
    new: str


def compare(question: Question, old: Answer, new: Answer, places: Placeholders) -> list[Difference]:
    """Every part that differs, each with its first line that does."""
    found = []
    old_texts = {name: places.put(text) for name, text in old.texts.items()}
    new_texts = {name: places.put(text) for name, text in new.texts.items()}
    if question.fresh:
        old_texts, new_texts = forms.of_texts(old_texts), forms.of_texts(new_texts)
    for name in dict.fromkeys((*old_texts, *new_texts)):
        left, right = old_texts.get(name, "(absent)"), new_texts.get(name, "(absent)")
        if left != right:
            found.append(Difference(question.title, name, *_first_line(left, right)))
    for name, left_bytes in old.traces.items():
        right_bytes = new.traces.get(name, b"")
        if left_bytes != right_bytes:
            found.append(
                Difference(question.title, name, *packets.difference(left_bytes, right_bytes))
            )
    return found


def _first_line(old: str, new: str) -> tuple[str, str]:
    """The first line that differs, cut around the place where it does."""
    left, right = old.splitlines(), new.splitlines()
    for number in range(max(len(left), len(right))):
        a = left[number] if number < len(left) else "(no more lines)"
        b = right[number] if number < len(right) else "(no more lines)"
        if a != b:
            long = max(len(a), len(b)) > SHOWN
            start = max(0, _common(a, b) - 80) if long else 0
            line = f"line {number + 1}: "
            return line + a[start : start + SHOWN], line + b[start : start + SHOWN]
    return ("(another end of line)", "(another end of line)")


def _common(a: str, b: str) -> int:
    """How many characters at the start are the same."""
    for position, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return position
    return min(len(a), len(b))
