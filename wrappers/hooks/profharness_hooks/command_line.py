"""The command line of this process as the run directory may hold it: its program, its script and
the names of its options, and no value.

Any value may be a password, and a run is not cleaned where its harness was killed, so that nothing
is written that would have to be judged later.
"""

import os
import re  # which json needs as well, and every hello is JSON
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence


VALUE = "..."  # stands for every word or part of a word that may be a value
NAME = re.compile(r"--[A-Za-z0-9_.-]{0,62}(?:=|\Z)|-[A-Za-z]")
WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")  # of the interpreter
PYTHONS = ("python", "pypy")


def own() -> "list[str]":
    """The words of this process, each without its value."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = [word.decode("utf-8", "replace") for word in file.read().split(b"\0")[:-1]]
    except OSError:
        words = list(getattr(sys, "argv", []))
    return shown(words)


def shown(words: "Sequence[str]") -> "list[str]":
    """As many words without their values. profharness/supervise/exit_status.py does the same to
    the words of a tool, behind its program, to tell it from the workload.
    """
    # a program may have put its whole command line in place of its name
    head = [word.split(" ", 1)[0] for word in words[:1]]
    kept = head + [without_value(word) for word in words[1:]]
    script = _script(words)
    if script:
        kept[script] = words[script]
    return kept


def without_value(word: str) -> str:
    """`--name=` of `--name=X` and `-p` of `-pX`, with VALUE for what is left out; VALUE for a word
    that is no option.
    """
    name = NAME.match(word)
    if name is None:
        return VALUE
    return word if name.end() == len(word) else name.group() + VALUE


def _script(words: "Sequence[str]") -> int:
    """Where a Python's command line names its script or module; 0 where it names none."""
    if not os.path.basename(words[0] if words else "").startswith(PYTHONS):
        return 0
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-m":
            is_module = at + 1 < len(words) and words[at + 1].replace(".", "").isidentifier()
            return at + 1 if is_module else 0
        if words[at] in ("-c", "-"):
            return 0
        at += 2 if words[at] in WITH_VALUE else 1
    return at if at < len(words) and os.path.isfile(words[at]) else 0
