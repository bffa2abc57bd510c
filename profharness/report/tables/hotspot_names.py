"""Names of hotspot rows that need a line of their own: operators with their inputs, paths of
modules, call stacks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profharness.analysis.operators.calls import Call, Tensor, TensorList, read_call
from profharness.analysis.records import HotspotRow
from profharness.report.text.folding import numbered

_FOLDER = re.compile(r"(?<![^ ])[^ ]*/(?=[^ /]+\(\d+\): )")
_TYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}


def is_long(by: str) -> bool:
    """Whether the names of such rows seldom fit beside their figures."""
    return by in ("shape", "module", "stack")


def whole(row: HotspotRow, by: str) -> str:
    """The name of a row; of one by shape with extents and types:
    `aten::mm(512×64, 64×128) bf16`.
    """
    return with_inputs(row.name, row.shapes, row.dtypes) if by == "shape" else row.name


def fitted(names: Sequence[str], by: str, width: int) -> list[str]:
    """The names cut to `width` characters, no two different ones alike. Of a module the innermost
    ones stay, of a stack the innermost frames, without the folders of their files.
    """
    if by == "module":
        short = [_tail(name, width) for name in names]
    else:
        texts = [_FOLDER.sub("", name) for name in names] if by == "stack" else names
        short = [text if len(text) <= width else f"{text[: width - 1]}…" for text in texts]
    return numbered(names, short, width)


def _tail(path: str, width: int) -> str:
    if len(path) <= width:
        return path
    kept = path[-(width - 2) :]
    return f"…/{kept.partition('/')[2] or kept}"


def with_inputs(name: str, shapes: str | None, dtypes: str | None) -> str:
    """A call with extents and types: `aten::mm(512×64, 64×128) bf16`; the name alone where shapes
    are not recorded.
    """
    call = read_call(name, shapes or "", dtypes or "")
    if call is None:
        return name
    extents: list[str] = []
    for given in call.inputs:
        if isinstance(given, Tensor):
            extents.append(_extents(given.dims))
        elif isinstance(given, TensorList) and given.members:
            extents.append(f"[{', '.join(_extents(dims) for dims in given.members)}]")
    return f"{name}({', '.join(extents)}) {_types(call)}".rstrip()


def types_text(shapes: str, dtypes: str) -> str:
    """The types of the tensors of a call, each once: `bf16`, `bf16/fp32`; empty where they are not
    recorded.
    """
    call = read_call("", shapes, dtypes)
    return "" if call is None else _types(call)


def _types(call: Call) -> str:
    kinds = [given.kind for given in call.inputs if isinstance(given, Tensor)]
    names = dict.fromkeys(_TYPES.get(kind.name, kind.name) for kind in kinds if kind is not None)
    return "/".join(names)


def _extents(dims: Sequence[int]) -> str:
    return "×".join(map(str, dims)) or "scalar"
