"""The identifiers of a mangled C++ name (Itanium ABI), of kernels that no tool demangled.

Not a demangler: what stands for a type by reference (`S1_`, `T_`) and how arguments nest is left
out. The words that a reader knows a kernel by are whole.
"""

from __future__ import annotations

import re

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
