"""Regular expressions that a manifest states, judged before they are used: some take longer than
the universe for a short text.

Python's matcher tries all ways to divide a text among repetitions. Repetitions inside of one
another have exponentially many, repetitions in a row as many as the length of the text to the power
of their number (https://docs.python.org/3/library/re.html describes the constructs).
"""

from __future__ import annotations

import math
import re
from re import _constants as codes  # type: ignore[attr-defined]  # not in the stubs of 3.11
from re import _parser as parser  # type: ignore[attr-defined]  # not in the stubs of 3.11
from typing import Any

from profharness.rundir.foreign.limits import PATTERN_LENGTH

_LONGEST_NAME = 255  # of a file: no repetition goes on for longer there
_WAYS = 26.0  # the logarithm to base 2: a second at most, and three long repetitions are fewer
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def why_not(pattern: str) -> str:
    """Why a regular expression is not used, in words; empty for one that is quick on any name."""
    if len(pattern) > PATTERN_LENGTH:
        return f"it has more than {PATTERN_LENGTH} characters"
    try:
        tree = parser.parse(pattern)
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        return f"it is no regular expression ({error})"
    try:
        ways = _ways(tree, inside=False)
    except _Nested:
        return "it repeats a repetition or a choice, which can take for ever"
    return "it has too many repetitions, which can take for ever" if ways > _WAYS else ""


class _Nested(Exception):  # noqa: N818  a way out of the recursion, and no error of anybody
    pass


def _ways(tree: Any, *, inside: bool) -> float:
    """In how many ways a pattern can divide a name, as a logarithm to base 2; raises _Nested for a
    repetition or a choice inside of a repetition.
    """
    ways = 0.0
    for code, given in tree:
        if code in _REPEATS:
            low, high, repeated = int(given[0]), int(given[1]), given[2]
            if inside and high != low:
                raise _Nested
            ways += math.log2(min(high - low, _LONGEST_NAME) + 1)
            ways += _ways(repeated, inside=inside or high > 1)
        elif code is codes.BRANCH:
            if inside and not _tell_apart(given[1]):
                raise _Nested
            ways += max(_ways(branch, inside=inside) for branch in given[1])
        elif code in (codes.GROUPREF, codes.GROUPREF_EXISTS) and inside:
            raise _Nested
        else:
            ways += sum(_ways(part, inside=inside) for part in _parts(code, given))
    return ways


def _parts(code: Any, given: Any) -> list[Any]:
    """The patterns in a group or in a condition."""
    if code is codes.ATOMIC_GROUP:
        return [given]
    if code in (codes.SUBPATTERN, codes.ASSERT, codes.ASSERT_NOT):
        return [given[-1]]
    return [part for part in given[1:] if part] if code is codes.GROUPREF_EXISTS else []


def _tell_apart(branches: Any) -> bool:
    """Whether the first character says which branch it is, so that no second way is tried."""
    firsts = [branch[0] for branch in branches if len(branch)]
    return (
        len(firsts) == len(branches)
        and all(code is codes.LITERAL for code, _ in firsts)
        and len({given for _, given in firsts}) == len(firsts)
    )
