"""What one trace did in its window, in groups that can be matched with those of another."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypedDict, get_args

import msgspec
import numpy as np

from profharness.analysis.compare.operators.records import Limiter
from profharness.analysis.compare.operators.tree import Tree, tree_of
from profharness.analysis.compare.operators.window import IDLE, TOGETHER, Windowed, windowed
from profharness.analysis.kernels.categories import CATEGORIES, category_codes, op_category
from profharness.analysis.kernels.ceilings import Ceiling
from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.hotspots import compact_json
from profharness.analysis.kernels.roofline import BANDWIDTH, CLASSES, COMPUTE
from profharness.analysis.kernels.useful_work import lowest
from profharness.analysis.operators.around import around
from profharness.analysis.operators.element_types import BY_WORD
from profharness.analysis.operators.gradients import forward_of
from profharness.analysis.operators.nests import nests
from profharness.analysis.time.believed import believed
from profharness.node.devices import Dtype
from profharness.trace.columns.build import per_text
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace

_INSTANCE = re.compile(r"_\d+(?=/|\Z)")
_HIDDEN = 0.1
_LIMITERS: dict[int, Limiter] = {COMPUTE: "compute", BANDWIDTH: "bandwidth"}
_OTHER, _COPY = CATEGORIES.index("other"), CATEGORIES.index("copy")
NO_MODULE = "outside any module"


@dataclass(frozen=True)
class Amount:
    """Time inside of the window, in ns, and calls that begin there."""

    ns: int
    calls: int


@dataclass(frozen=True)
class Inputs:
    """An operator with the shapes and types of its inputs, as JSON; types by our own names, since
    compilers spell the C++ ones differently.
    """

    name: str
    shapes: str
    dtypes: str


@dataclass(frozen=True, eq=False)
class Content:
    """What one trace did. `shapes` and `modules` are empty where they were not recorded.

    `holders` and `forward` are, per operator, the one that most of its calls run inside of, and the
    forward one that most belong to. `device` is the name of what it ran on.

    `flops` are the useful operations of matrix products in one step; None where those of less than
    nine tenths of the time of matrix kernels are known. `unknown_flops` are what the others do at
    most: nothing does more than its device's highest ceiling. `limiters` name the ceiling that most
    of an operator's time reaches, `ceilings` are those of the device, by the same names.
    """

    window: Windowed
    device: str
    operators: dict[str, Amount]
    shapes: dict[Inputs, Amount]
    modules: dict[str, Amount]
    categories: dict[str, Amount]
    holders: dict[str, str]
    forward: dict[str, str]
    tree: Tree
    flops: float | None = None
    unknown_flops: float = 0.0
    limiters: dict[str, Limiter] = field(default_factory=dict)
    ceilings: dict[Limiter, float] = field(default_factory=dict)


def content_of(trace: Trace) -> Content | None:
    """The content of a trace, with the modules and the tree of its Python frames where it holds
    any. None where it holds no operators, or nothing has a time.
    """
    window = windowed(trace)
    if window is None:
        return None
    ops, strings = trace.ops, trace.strings
    first, group = first_rows(ops.name)
    names = strings.decode(ops.name[first])
    parent = nests(ops).parent
    made = forward_of(ops)
    return Content(
        window=window,
        device=", ".join(dict.fromkeys(one.name for one in trace.devices if one.name)),
        operators=_amounts(names, group, window),
        shapes=_shapes(trace, window),
        modules=_modules(trace, window),
        categories=_categories(trace, window),
        holders=_mostly(names, group, parent),
        forward=_mostly(names, group, made),
        tree=tree_of(trace, window),
        **_judged(trace, window, names, group),
    )


class _Judged(TypedDict):
    flops: float | None
    unknown_flops: float
    limiters: dict[str, Limiter]
    ceilings: dict[Limiter, float]


def _judged(trace: Trace, window: Windowed, names: list[str], group: I64) -> _Judged:
    """Work and limiters, by the kernels of the operators' groups; on the host the work alone."""
    facts = KernelFacts(trace)
    if window.clock == "host":
        known = facts.operators
        done = 0.0 if known is None else float(np.nansum(known.flops[window.begun & ~known.again]))
        flops = done / window.parts or None
        return {"flops": flops, "unknown_flops": 0.0, "limiters": {}, "ceilings": {}}
    kernels, inside = trace.kernels, window.kernels
    shares = inside / np.maximum(kernels.dur_ns, 1)
    matrix, hidden = int(inside[facts.multiplying].sum()), int(inside[facts.hidden].sum())
    flops = float(np.nansum(facts.work.useful * shares))
    held = np.flatnonzero((kernels.op != NULL) & (inside > 0))
    times = np.zeros((len(names), len(CLASSES)), np.int64)
    np.add.at(times, (group[kernels.op[held]], facts.rates.kind[held]), inside[held])
    return {
        "flops": flops / window.parts or None if hidden <= _HIDDEN * matrix else None,
        "unknown_flops": _unknown(facts, inside) / window.parts,
        "limiters": {
            names[at]: _LIMITERS[kind]
            for at, kind in enumerate(times.argmax(axis=1).tolist())
            if kind in _LIMITERS and times[at].any()
        },
        "ceilings": _ceilings(facts),
    }


def _unknown(facts: KernelFacts, inside: I64) -> float:
    """The most operations that kernels of unknown work do; infinite without a ceiling, and where
    products have times that cannot be true.
    """
    timeless = believed(facts.trace).kernels.dur_ns == 0
    done = math.inf if (facts.multiplying & timeless).any() else 0.0
    for device, roofs in facts.roofs.items():
        ns = int(inside[facts.hidden & (facts.trace.kernels.device == device)].sum())
        found = [one.limit for kind in get_args(Dtype) if (one := roofs.flops(kind)) is not None]
        done += ns / 1e9 * max(found, default=math.inf) if ns else 0.0
    return done


def _ceilings(facts: KernelFacts) -> dict[Limiter, float]:
    """The ceiling of bandwidth, and that of the type with most operations; none where one of the
    devices has none.
    """
    work = facts.work
    done = [float(np.nansum(work.flops[work.dtype == code])) for code in range(len(work.dtypes))]
    dtype = work.dtypes[int(np.argmax(done))] if any(done) else None
    roofs: dict[Limiter, Ceiling | None] = {
        "bandwidth": lowest(one.bandwidth for one in facts.roofs.values()),
        "compute": None
        if dtype is None
        else lowest(one.flops(dtype) for one in facts.roofs.values()),
    }
    return {name: roof.value for name, roof in roofs.items() if roof is not None}


def _amounts(keys: Iterable[str], group: I64, window: Windowed) -> dict[str, Amount]:
    """By the key of each operator's group; what has neither time nor calls is left out."""
    listed = list(keys)
    ns = _sums(group, window.ops, len(listed))
    calls = _count(group[window.begun], len(listed))
    return _kept(listed, ns, calls)


def _kept(keys: list[str], ns: I64, calls: I64) -> dict[str, Amount]:
    found: dict[str, Amount] = {}
    for key, time, count in zip(keys, ns.tolist(), calls.tolist(), strict=True):
        if time or count:
            before = found.get(key, Amount(0, 0))
            found[key] = Amount(before.ns + time, before.calls + count)
    return found


def _sums(group: I64, values: I64, groups: int) -> I64:
    """Exact sums per group; NULL belongs to none."""
    total, held = np.zeros(groups, np.int64), group != NULL
    np.add.at(total, group[held], values[held])
    return total


def _count(group: I64, groups: int) -> I64:
    return np.bincount(group, minlength=groups).astype(np.int64)


def _shapes(trace: Trace, window: Windowed) -> dict[Inputs, Amount]:
    ops, strings = trace.ops, trace.strings
    if not (ops.shapes != NULL).any():
        return {}
    first, group = first_rows(pack([ops.name, ops.shapes, ops.dtype]))
    ns = _sums(group, window.ops, len(first))
    calls = _count(group[window.begun], len(first))
    types: dict[int, str] = {}
    found: dict[Inputs, Amount] = {}
    for row, time, count in zip(first.tolist(), ns.tolist(), calls.tolist(), strict=True):
        if not time and not count:
            continue
        shapes, dtype = int(ops.shapes[row]), int(ops.dtype[row])
        if dtype not in types:
            types[dtype] = "" if dtype == NULL else _types(strings[dtype])
        key = Inputs(
            strings[int(ops.name[row])],
            "" if shapes == NULL else compact_json(strings[shapes]),
            types[dtype],
        )
        before = found.get(key, Amount(0, 0))
        found[key] = Amount(before.ns + time, before.calls + count)
    return found


def _types(text: str) -> str:
    """The recorded types by our own names; as recorded where that is no list of words."""
    try:
        words = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return text
    if not isinstance(words, list):
        return text
    known = [
        kind.name if isinstance(word, str) and (kind := BY_WORD.get(word)) else word
        for word in words
    ]
    return msgspec.json.encode(known).decode()


def _modules(trace: Trace, window: Windowed) -> dict[str, Amount]:
    """By the path of classes: the layers of a stack, whose instances are numbered, are one row."""
    spans = around(trace, "module")
    if not spans.names:
        return {}
    owners, groups = spans.owners, len(spans.names)
    if window.clock == "host":
        ns = _sums(owners.ops, window.ops, groups)
    else:
        ns = _sums(owners.kernels, window.kernels, groups)
        ns += _sums(owners.copies, window.copies, groups)
    begun = window.holds(spans.start_ns)
    calls = _count(spans.group[begun], groups)
    return _kept([_INSTANCE.sub("", name) for name in spans.names], ns, calls)


def _categories(trace: Trace, window: Windowed) -> dict[str, Amount]:
    """By the innermost operator around each record whose category is known, which tools of all
    vendors name alike; of a record without one by what its kernel is.
    """
    ops, strings = trace.ops, trace.strings
    own = per_text(strings, ops.name, lambda name: CATEGORIES.index(op_category(name)))
    nearest = nests(ops).nearest(own != _OTHER)
    of_ops = np.append(np.where(nearest == NULL, _OTHER, own[nearest]), _OTHER)
    if window.clock == "host":
        ns = _sums(of_ops[:-1], window.ops, len(CATEGORIES))
        calls = _count(of_ops[:-1][window.begun], len(CATEGORIES))
        return _kept(list(CATEGORIES), ns, calls)
    kernels, copies = trace.kernels, trace.copies
    by_op = of_ops[kernels.op.astype(np.int64)]
    code = np.where(by_op == _OTHER, category_codes(kernels, strings), by_op)
    moved = of_ops[copies.op.astype(np.int64)]
    moved = np.where(moved == _OTHER, _COPY, moved)
    ns = _sums(code, window.kernels, len(CATEGORIES)) + _sums(moved, window.copies, len(CATEGORIES))
    calls = _count(code[window.kernels > 0], len(CATEGORIES))
    calls += _count(moved[window.copies > 0], len(CATEGORIES))
    return _kept(list(CATEGORIES), ns, calls)


def _mostly(names: list[str], group: I64, other: I64) -> dict[str, str]:
    """For each group of operators the name of the operator that most of its calls point to."""
    rows = np.flatnonzero(other != NULL)
    if not len(rows):
        return {}
    pairs, counts = np.unique(
        np.stack((group[rows], group[other[rows]]), axis=1), axis=0, return_counts=True
    )
    order = np.argsort(counts, kind="stable")  # the most frequent is written last
    return {names[int(one)]: names[int(held)] for one, held in pairs[order].tolist()}


def of_records(window: Windowed) -> dict[str, int]:
    """The rest beside rows that hold all work: idle time, and what ran side by side."""
    return {name: ns for name, ns in window.rest.items() if name in (IDLE, TOGETHER)}
