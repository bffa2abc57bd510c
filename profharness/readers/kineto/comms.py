"""Collectives on the CPU in Kineto's files: ranges that c10d's own backends write, named
`gloo:all_reduce`.

Such a range begins when the rank calls the collective and ends when the collective is complete
there, so it stands for what the kernel is on a device. It has the input tensors' shapes (where
shapes were recorded), not the group (c10d, ProcessGroup.cpp, Work::Work; ProcessGroupGloo.cpp).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.trace.collectives import HOST_BACKENDS, UNTOLD, Collective, encode, normalised
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Strings

PREFIXES = tuple(f"{name}:" for name in HOST_BACKENDS)
# C++'s names of types, which these ranges have, as torch's (c10::toString)
_TYPES = {
    "float": "Float",
    "double": "Double",
    "c10::Half": "Half",
    "c10::BFloat16": "BFloat16",
    "long int": "Long",
    "long": "Long",
    "int": "Int",
    "short int": "Short",
    "short": "Short",
    "signed char": "Char",
    "char": "Char",
    "unsigned char": "Byte",
    "bool": "Bool",
}
_GATHERS = frozenset({"all_gather", "gather"})

Spoken = tuple[str, bytes, bytes]
"""Name, `Input Dims` and `Input type` of a range, as they stand in the file."""


def codes(
    strings: Strings, spoken: Iterable[Spoken], groups: Sequence[Sequence[int]], places: I64
) -> I64:
    """Codes of what each range does: `places` are positions among the distinct `spoken`; NULL for
    ranges that are no collective.
    """
    ranks = tuple(dict.fromkeys(tuple(sorted(group)) for group in groups))
    table = np.array(
        [*(strings.code(encode(collective(words, ranks))) for words in spoken), NULL],
        np.int64,
    )
    marked: I64 = table[places]
    return marked


def collective(spoken: Spoken, groups: Sequence[tuple[int, ...]]) -> Collective:
    """What such a range does. Its group is known where the process has only one (however often made
    anew).
    """
    backend, _, name = spoken[0].partition(":")
    kind = normalised(name)
    sole = groups[0] if len(groups) == 1 else ()
    size = len(sole) or None
    elements, dtype = (None, "") if name.startswith("sparse") else _moved(spoken[1], spoken[2])
    gathered = (
        elements * size if elements is not None and size is not None and kind in _GATHERS else None
    )
    if kind in _GATHERS and gathered is None:
        elements = None  # the size of a gather is that of all ranks together
    return Collective(
        kind,
        elements,
        gathered,
        dtype,
        size,
        f"{backend} {list(sole)}" if sole else f"{backend} {UNTOLD}" if groups else backend,
    )


def _moved(dims: bytes, types: bytes) -> tuple[int | None, str]:
    """Elements of all inputs together and their type; None where these were not recorded, or are of
    several types.
    """
    try:
        shapes = msgspec.json.decode(dims, type=tuple[tuple[int, ...], ...])
        kinds = msgspec.json.decode(types, type=tuple[str, ...])
    except NOT_JSON:
        return None, ""
    named = {_TYPES.get(kind, "") for kind in kinds}
    if len(named) != 1 or len(shapes) != len(kinds):
        return None, ""
    return sum(math.prod(shape) for shape in shapes), named.pop()
