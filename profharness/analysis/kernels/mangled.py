"""What mangled C++ names (Itanium ABI) say: the words that a reader knows a kernel by, and which
demangled name is of the same kernel, where one tool names it so and another one does not.

Not a demangler: what stands for a type by reference (`S1_`, `T_`) and how arguments nest is left
out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

_PREFIX = re.compile(r"_ZN?[LK]*(?:St)?")
_ANONYMOUS = "_GLOBAL__N_1"
_PART = re.compile(
    r"L[a-z]n?(?P<literal>\d+)E"  # a number or bool among the template arguments
    r"|(?P<choice>L(?P<nested>N?)(?:S[0-9A-Z]*_|St)?)(?=\d)"  # a value of an enumeration
    r"|DF\d+[b_]|Dv\d+_|[ST][0-9A-Z]*_"  # types by width, vectors, types by reference
    r"|(?P<length>\d+)"  # an identifier follows that is so long
)


def readable(name: str) -> str:
    """`scope::kernel<word, 64, word>` of a mangled name; any other name as it is.

    `_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdI...` becomes `ck_tile::kentry<1, Rmsnorm2dFwd, ...>`.
    """
    start = _PREFIX.match(name)
    if start is None:
        return name
    place = start.end()
    scopes: list[str] = []
    while place < len(name) and name[place].isdigit():
        word, place = _identifier(name, place)
        if not word:
            return name
        scopes.append(word)
        if not name.startswith("_ZN"):
            break
    if not scopes:
        return name
    own = "::".join(word for word in scopes if word != _ANONYMOUS)
    words = _words(name, place) if name[place : place + 1] == "I" else []
    return f"{own}<{', '.join(words)}>" if words else own


def _identifier(name: str, place: int) -> tuple[str, int]:
    """The identifier whose length stands at this place, and where the text behind it begins; empty
    where the name ends before.
    """
    digits = re.compile(r"\d+").match(name, place)
    if digits is None:
        return "", place
    end = digits.end() + int(digits.group())
    return (name[digits.end() : end], end) if end <= len(name) else ("", place)


def _choice(name: str, place: int, *, nested: bool) -> tuple[str, int]:
    """An enumeration and the number of its value, `GemmSpecialization 7`, and the place behind."""
    word = ""
    while place < len(name) and name[place].isdigit():
        following, after = _identifier(name, place)
        if not following:
            break
        word, place = following, after
        if not nested:
            break
    value = re.compile(r"En?(\d+)E" if nested else r"n?(\d+)E").match(name, place)
    return (word, place) if value is None else (f"{word} {value[1]}".strip(), value.end())


def _words(name: str, place: int) -> list[str]:
    """Identifiers and literals from here on, in order."""
    words = []
    while (part := _PART.search(name, place)) is not None:
        place = part.end()
        if part["literal"]:
            words.append(part["literal"])
        elif part["choice"]:
            word, place = _choice(name, place, nested=bool(part["nested"]))
            words.append(word)
        elif part["length"]:
            word, place = _identifier(name, part.start())
            if not word:
                break
            words.append(word)
    return words


_MANGLED = "_Z"
_LETTERS = {
    "b": "bool",
    "a": "signed_char",
    "c": "char",
    "h": "unsigned_char",
    "s": "short",
    "t": "unsigned_short",
    "i": "int",
    "j": "unsigned_int",
    "l": "long",
    "m": "unsigned_long",
    "x": "long_long",
    "y": "unsigned_long_long",
    "f": "float",
    "d": "double",
}
_TYPES = {"DF16_": "_Float16", "DF16b": "__bf16", "Dh": "half", **_LETTERS}
_PIECE = re.compile(
    r"L[a-z]n?(?P<number>\d+)E"
    r"|(?P<lambda>U[lt])"
    r"|(?P<end>E\d{0,6}_)"  # of a lambda or of an unnamed type, where one is open
    r"|(?P<again>[ST][0-9A-Z]*_|Dp)"  # what stands elsewhere in the name, once or several times
    r"|S[tabsiod]|Dv\d+_|clE"  # of std, vectors, operator()
    r"|(?P<type>DF16_|DF16b|Dh|[a-z])"
    r"|(?P<length>\d{1,6})"  # an identifier follows that is so long
)
_VALUE = re.compile(r"En?(\d+)E")  # of an enumeration, behind its name
_WORD = re.compile(r"[A-Za-z_]\w*|(?<![\w.])\d+")
_SIZED = re.compile(r"\b(unsigned|signed|long) (?=(?:char|short|int|long)\b)")
_NOT_SAID = re.compile(
    r"\{lambda|\{unnamed type|\boperator\(\)|\b(?:void|const|volatile|std|decltype|auto)\b"
    r"|(?<=\d)u?l{0,2}\b|\[clone [^\]]*\]"
)
_MOST = 40_000  # pairs of names of the same words that are looked at
_AGAIN = "*"
_TRUTH = {"true": "1", "false": "0"}

Words = tuple[str, ...]


def one_spelling(names: Iterable[str]) -> dict[str, str]:
    """The demangled form of each mangled name of which these names hold it. Both have the same
    words, but for those that the mangled one repeats by reference. Where several names may be meant
    none is.
    """
    every = dict.fromkeys(names)
    mangled = [name for name in every if name.startswith(_MANGLED)]
    if not mangled or len(mangled) == len(every):
        return {}
    plain = _by_words(name for name in every if not name.startswith(_MANGLED))
    found: dict[str, str] = {}
    for words, own in _by_words(mangled).items():
        others = plain.get(words, ())
        if len(own) * len(others) > _MOST:
            continue
        fitting = [
            (one, other)
            for one in own
            for other in others
            if _is_alike(_all_words(one), _all_words(other))
        ]
        times = Counter(name for pair in fitting for name in pair)
        found.update((one, other) for one, other in fitting if times[one] == times[other] == 1)
    return found


def spelled(trace: Trace) -> Trace:
    """The trace with one name for each kernel of which it holds both forms; itself without any."""
    codes = distinct(trace.kernels.name)
    names = {int(code): trace.strings[int(code)] for code in codes if code != NULL}
    spelling = one_spelling(names.values())
    if not spelling:
        return trace
    code_of = {name: code for code, name in names.items()}
    named = np.arange(len(trace.strings) + 1)  # NULL is the last
    for name, other in spelling.items():
        named[code_of[name]] = code_of[other]
    named[NULL] = NULL
    kernels = trace.kernels.with_columns(name=named[trace.kernels.name])
    return replace(trace, kernels=kernels)


def _by_words(names: Iterable[str]) -> dict[Words, list[str]]:
    found: dict[Words, list[str]] = {}
    for name in names:
        words = (word for word in _all_words(name) if not word.isdigit() and word != _AGAIN)
        found.setdefault(tuple(dict.fromkeys(words)), []).append(name)
    found.pop((), None)
    return found


def _is_alike(mangled: Words, plain: Words) -> bool:
    """Whether the words of the one are those of the other where any stand for what comes again."""
    runs: list[list[str]] = [[]]
    for word in mangled:
        if word == _AGAIN:
            runs.append([])
        else:
            runs[-1].append(word)
    first, *others = runs
    if list(plain[: len(first)]) != first or not others:
        return list(plain) == first
    last, place = others.pop(), len(first)
    for run in others:
        ends = range(place + len(run), len(plain) - len(last) + 1)
        at = next((end for end in ends if list(plain[end - len(run) : end]) == run), None)
        if at is None:
            return False
        place = at
    return len(plain) - len(last) >= place and list(plain[len(plain) - len(last) :]) == last


@lru_cache(1 << 14)
def _all_words(name: str) -> Words:
    """Identifiers, types and numbers in order; of a mangled name `_AGAIN` for a reference."""
    if name.startswith(_MANGLED):
        return tuple(_of_mangled(name))
    text = name.replace("(anonymous namespace)", "_GLOBAL__N_1")
    text = _SIZED.sub(r"\1_", _NOT_SAID.sub(" ", text))
    return tuple(_TRUTH.get(word, word) for word in _WORD.findall(text))


def _of_mangled(name: str) -> Iterator[str]:
    name = name.partition(".")[0]
    place, inside = len(_MANGLED), 0
    while place < len(name):
        part = _PIECE.match(name, place)
        if part is None or (part["end"] and not inside):
            place += 1
            continue
        place = part.end()
        inside += (part.lastgroup == "lambda") - (part.lastgroup == "end")
        if part["length"]:
            place += int(part["length"])
            yield name[part.end() : place]
            value = _VALUE.match(name, place)
            if value is not None:
                place = value.end()
                yield value[1]
        elif word := _said(part):
            yield word


def _said(part: re.Match[str]) -> str:
    """What a part of a mangled name, but for an identifier, says in a demangled one."""
    if part["end"]:
        return str(int(part["end"][1:-1] or -1) + 2)
    if part["again"]:
        return _AGAIN
    return _TYPES.get(part["type"] or "", "") or part["number"] or ""
