"""Which parts of a long text may hold a value of a known shape: found at hundreds of megabytes per
second, so that the rules look at little else. Pure.

The words are looked for all at once (RE2, through pyarrow); Python's own `re` and one search per
word read 6 MB/s, which is a minute for a large trace. The names in an ordinary trace are not worth
loading pyarrow, which takes a third of a second and 60 MiB.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_SHORT = 1 << 14
_CHUNK = 512  # bytes; longer than twice what any word of the pattern matches
_WORTH_LOADING = 512 << 10
_seen = {"bytes": 0}


def regions(small: bytes, pattern: str) -> list[tuple[int, int]]:
    """Parts of a text in small letters outside of which the pattern (in RE2's syntax) matches
    nowhere: in order and apart from each other. A short text is one part.
    """
    size = len(small)
    if _is_short(size):
        return [(0, size)]
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    data = pa.py_buffer(small)
    found: list[tuple[int, int]] = []
    # what lies across the border of two chunks lies inside of one of the other row
    for shift in (0, _CHUNK // 2):
        inner = np.arange(shift or _CHUNK, size, _CHUNK)
        edges = np.concatenate([[0], inner, [size]]).astype(np.int32)
        chunks = pa.BinaryArray.from_buffers(
            pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), data]
        )
        matched = _places(pc.match_substring_regex(chunks, pattern))
        found += [(int(edges[row]), int(edges[row + 1])) for row in matched]
    return _joined(found)


def may_match(small: bytes, pattern: str) -> bool:
    """Whether the pattern may match somewhere in a text in small letters."""
    if _is_short(len(small)):
        return _compiled(pattern).search(small) is not None
    return bool(regions(small, pattern))


def which_may_match(small: Sequence[bytes], pattern: str) -> Sequence[int]:
    """The places of those texts in small letters in which the pattern may match somewhere."""
    if _is_short(sum(map(len, small))):
        search = _compiled(pattern).search
        return [at for at, text in enumerate(small) if search(text)]
    import pyarrow as pa
    import pyarrow.compute as pc

    return _places(pc.match_substring_regex(pa.array(small, pa.large_binary()), pattern))


def _places(matched: pa.BooleanArray) -> list[int]:
    """Where the values are true. Read from the array's own bits: its `to_numpy` loads pandas where
    that is installed, which takes as much memory as pyarrow itself.
    """
    import numpy as np

    bits = np.unpackbits(np.frombuffer(matched.buffers()[1], np.uint8), bitorder="little")
    places: list[int] = np.flatnonzero(
        bits[matched.offset : matched.offset + len(matched)]
    ).tolist()
    return places


def _is_short(size: int) -> bool:
    """Whether a text of that size is looked through as it is: a short one, and longer ones until
    they are so much together that pyarrow is worth loading.
    """
    if size <= _SHORT:
        return True
    _seen["bytes"] += size
    return "pyarrow.compute" not in sys.modules and _seen["bytes"] <= _WORTH_LOADING


@lru_cache(maxsize=4)
def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())


def _joined(parts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for low, high in sorted(parts):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined
