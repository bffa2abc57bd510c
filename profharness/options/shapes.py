"""The texts of `--shape`: our own, trtexec's and that of deepsparse.benchmark. Pure.

| text | who writes so | its first number |
| --- | --- | --- |
| `NAME:2,100` | profharness | no batch |
| `NAME:1x3x224x224,NAME:1x16` | trtexec --shapes | the batch |
| `[1,128],[1,128]` | deepsparse.benchmark -shapes, by the order of the inputs | the batch |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from profharness.errors import UsageError
from profharness.options.declared import TextForm

BATCH = ""
"""Under this name `read` gives a batch size above 1 that the shapes begin with; no input has it."""

_TIMES = re.compile(r"[^,]*:\d+(x\d+)+(,|$)")
_LISTS = re.compile(r"\[[^\[\]]*\](,\[[^\[\]]*\])*")
_FORMS = (
    "write NAME:2,100 without the batch, or with it NAME:1x3x224x224,NAME:1x16 (as for trtexec) "
    "or [1,128],[1,128] in the order of the inputs (as for deepsparse.benchmark)"
)
Shapes = dict[str, tuple[int, ...]]


def read(words: Sequence[str]) -> Shapes:
    """Dimensions without the batch by the input's name, or by `[0]`, `[1]` ... where the order
    tells; a batch above 1 stands under BATCH. Raises UsageError.
    """
    shapes: Shapes = {}
    batches: set[int] = set()
    for word in words:
        text = word.replace(" ", "")
        given = _with_batch(text)
        if given is None:
            given = dict((parse_shape(word),))
        else:
            batches |= {dims[0] for dims in given.values()}
            given = {name: dims[1:] for name, dims in given.items()}
        if twice := sorted(set(given) & set(shapes)):
            raise UsageError(f"--shape: {', '.join(twice)} stands there twice", "give it once")
        shapes |= given
    _check_mixture(shapes)
    if len(batches) > 1:
        raise UsageError(
            f"--shape: its shapes begin with the batch, and these differ: "
            f"{', '.join(map(str, sorted(batches)))}",
            "write 1 there, and the sizes as --batch-sizes",
        )
    return {**shapes, **({BATCH: tuple(batches)} if batches - {1} else {})}


def read_items(words: Sequence[str]) -> Shapes:
    """As `read`, without a batch: where the clients of a server choose it. Raises UsageError."""
    return {name: dims for name, dims in read(words).items() if name != BATCH}


def _with_batch(text: str) -> Shapes | None:
    """Whole shapes in the forms of trtexec and deepsparse; None for another form. Raises
    UsageError.
    """
    if text.startswith("["):
        if not _LISTS.fullmatch(text):
            raise UsageError(f"--shape: {text!r} is not a row of lists", _FORMS)
        lists = text[1:-1].split("],[")
        return {f"[{at}]": _dims(dims.split(","), text) for at, dims in enumerate(lists)}
    if not _TIMES.search(text):
        return None
    whole: Shapes = {}
    for part in text.split(","):
        name, _, dims = part.rpartition(":")
        name = name.strip("'\"")
        if not name:
            raise UsageError(f"--shape: {part!r} is not NAME:1x3x224x224", _FORMS)
        if name in whole:
            raise UsageError(f"--shape: {name} stands there twice", "give it once")
        whole[name] = _dims(dims.split("x"), text)
    return whole


def _dims(parts: Sequence[str], text: str) -> tuple[int, ...]:
    if not all(part.isdigit() and int(part) > 0 for part in parts):
        raise UsageError(
            f"--shape: {text!r} has a dimension that is no whole number above 0", _FORMS
        )
    return tuple(int(part) for part in parts)


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`NAME:d1,d2` of `--shape`. Raises UsageError. Names may hold colons; the last one parts
    them.
    """
    name, _, dims = text.rpartition(":")
    parts = dims.split(",")
    if not name or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise UsageError(
            f"--shape: {text!r} is not NAME:d1,d2",
            f"give the dimensions without the batch, for example pf_points:2,100; or {_FORMS}",
        )
    return name, tuple(int(part) for part in parts)


def _check_mixture(shapes: Mapping[str, tuple[int, ...]]) -> None:
    ordered = [name for name in shapes if name.startswith("[")]
    if ordered and len(ordered) < len(shapes):
        raise UsageError(
            "--shape: some shapes have names, and some stand in the order of the inputs",
            "name all of them, or none",
        )


def batch_of(shapes: Mapping[str, tuple[int, ...]], sizes: Sequence[int]) -> tuple[int, ...]:
    """The batch sizes to measure: `sizes`, or the one that the shapes begin with. Raises UsageError
    where the two differ.
    """
    own = shapes.get(BATCH)
    if own is None:
        return tuple(sizes)
    if sizes and tuple(sizes) != own:
        raise UsageError(
            f"--shape: its shapes begin with a batch of {own[0]}, and --batch-sizes says "
            f"{','.join(map(str, sizes))}",
            "write 1 as the first number of each shape, which stands for any batch",
        )
    return own


def _parsed(value: object, _named: str) -> object:
    return read([value]) if isinstance(value, str) else value


TEXT = TextForm(_parsed)
"""A scan file may write the whole row as one text."""
