"""The work of two traces against each other: rows that are matched by name and inputs, whatever the
kernels are called, and sum to both windows exactly (docs/metrics.md#compare-work).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from profharness.analysis.compare.operators.branches import branches, difference
from profharness.analysis.compare.operators.content import (
    NO_MODULE,
    Amount,
    Content,
    Inputs,
    of_records,
)
from profharness.analysis.compare.operators.likeness import other_work
from profharness.analysis.compare.operators.records import (
    Branch,
    By,
    Limiter,
    Side,
    StepChange,
    WorkComparison,
    WorkRow,
    WorkTable,
)

KeyT = TypeVar("KeyT", bound=Hashable)
_NOTHING = Amount(0, 0)
_NAMED = 3
_MOVED = 0.05  # of a ceiling: no smaller change is named as what moved an operator
_HOLDERS = 8


def compare_work(a: Content | None, b: Content | None) -> WorkComparison | None:
    """All tables of two traces. None unless both hold operators, and both device work or both
    none.
    """
    if a is None or b is None or a.window.clock != b.window.clock:
        return None
    whole = _Whole(a, b)
    return WorkComparison(
        step=_step(whole),
        other_work=other_work(a, b),
        operators=_operators(whole),
        shapes=_shapes(whole) if a.shapes and b.shapes else None,
        modules=_modules(whole) if a.modules and b.modules else None,
        categories=_categories(whole),
        tree=branches(
            a.tree, b.tree, (a.window.parts, b.window.parts), tuple(_rest_branches(whole))
        ),
    )


@dataclass(frozen=True, eq=False)
class _Whole:
    """Both sides, and the difference of one step in ns."""

    a: Content
    b: Content

    def difference(self, a_ns: int, b_ns: int) -> float:
        return difference(a_ns, b_ns, self.a.window.parts, self.b.window.parts)

    @property
    def total(self) -> float:
        return self.difference(self.a.window.whole_ns, self.b.window.whole_ns)

    def figures(self, a_ns: int, b_ns: int) -> dict[str, float | None]:
        """What a row says of its two times."""
        moved = self.difference(a_ns, b_ns)
        steps = self.a.window.parts / self.b.window.parts
        return {
            "difference_ns": moved,
            "ratio": b_ns / a_ns * steps if a_ns > 0 and b_ns > 0 else None,
            "share": moved / self.total if self.total else None,
        }


def _step(whole: _Whole) -> StepChange:
    a, b = whole.a.window, whole.b.window
    before, after = a.whole_ns / a.parts, b.whole_ns / b.parts
    of_steps = a.within is not None and b.within is not None
    return StepChange(
        clock=a.clock,
        a_ns=before if of_steps else None,
        b_ns=after if of_steps else None,
        change=after / before - 1 if of_steps else None,
        window_a=a.label,
        window_b=b.label,
        steps_a=a.steps,
        steps_b=b.steps,
        units_a=a.units,
        units_b=b.units,
        whole_a_ns=a.whole_ns,
        whole_b_ns=b.whole_ns,
        difference_ns=whole.total,
    )


@dataclass(frozen=True, eq=False)
class _Match(Generic[KeyT]):
    key: KeyT
    a: Amount | None
    b: Amount | None


def _both(a: Mapping[KeyT, Amount], b: Mapping[KeyT, Amount]) -> Iterator[_Match[KeyT]]:
    """Those of either side that took time there."""
    for key in dict.fromkeys((*a, *b)):
        match = _Match(key, a.get(key), b.get(key))
        if (match.a or _NOTHING).ns or (match.b or _NOTHING).ns:
            yield match


def _row(whole: _Whole, name: str, a: Amount | None, b: Amount | None, **more: object) -> WorkRow:
    side: Side = "only-b" if a is None else "only-a" if b is None else "both"
    return WorkRow(
        name=name,
        side=side,
        a_ns=a.ns if a else None,
        b_ns=b.ns if b else None,
        calls_a=a.calls if a else None,
        calls_b=b.calls if b else None,
        **whole.figures(a.ns if a else 0, b.ns if b else 0),  # type: ignore[arg-type]  # floats
        **more,  # type: ignore[arg-type]  # fields of a row
    )


def _table(
    by: By, whole: _Whole, rows: Iterable[WorkRow], rest: Mapping[str, tuple[int, int]]
) -> WorkTable:
    listed = [*rows, *_rest_rows(whole, rest)]
    order = {"both": 0, "rest": 0, "only-a": 1, "only-b": 1}
    listed.sort(
        key=lambda row: (
            order[row.side],
            -abs(row.difference_ns),
            row.name,
            row.shapes or "",
            row.dtypes or "",
        )
    )
    return WorkTable(by=by, clock=whole.a.window.clock, rows=tuple(listed))


def _rest(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    return {name: (a.get(name, 0), b.get(name, 0)) for name in dict.fromkeys((*a, *b))}


def _rest_rows(whole: _Whole, rest: Mapping[str, tuple[int, int]]) -> Iterator[WorkRow]:
    for name, (a_ns, b_ns) in rest.items():
        if a_ns or b_ns:
            yield WorkRow(
                name=name,
                side="rest",
                a_ns=a_ns,
                b_ns=b_ns,
                **whole.figures(a_ns, b_ns),  # type: ignore[arg-type]  # floats
            )


def _categories(whole: _Whole) -> WorkTable:
    rows = [
        _row(whole, match.key, match.a, match.b)
        for match in _both(whole.a.categories, whole.b.categories)
    ]
    return _table("category", whole, rows, _rest(_beside(whole.a), _beside(whole.b)))


def _beside(side: Content) -> dict[str, int]:
    """The rest beside rows that hold all records of a device; of the host beside all operators."""
    return of_records(side.window) if side.window.clock == "device" else side.window.rest


def _modules(whole: _Whole) -> WorkTable:
    rows = [
        _row(whole, match.key, match.a, match.b, reason=_alone(match))
        for match in _both(whole.a.modules, whole.b.modules)
    ]
    return _table("module", whole, rows, _rest(_outside(whole.a), _outside(whole.b)))


def _outside(side: Content) -> dict[str, int]:
    """Idle time and the like, and all work that no module holds."""
    rest = of_records(side.window)
    held = sum(amount.ns for amount in side.modules.values()) + sum(rest.values())
    return {**rest, NO_MODULE: side.window.whole_ns - held}


def _operators(whole: _Whole) -> WorkTable:
    same = _same_inputs(whole.a.shapes, whole.b.shapes)
    alone = _Alone(whole)
    rows = []
    for match in _both(whole.a.operators, whole.b.operators):
        same_a, same_b = same.get(match.key, (None, None))
        limiter, held = _held_back(whole, match)
        rows.append(
            _row(
                whole,
                match.key,
                match.a,
                match.b,
                reason=alone.reason(match) or held,
                limiter=limiter,
                same_a_ns=same_a,
                same_b_ns=same_b,
            )
        )
    return _table("op", whole, rows, _rest(whole.a.window.rest, whole.b.window.rest))


def _held_back(whole: _Whole, match: _Match[str]) -> tuple[Limiter | None, str]:
    """The ceiling that holds an operator of both back, where that has moved the way of its time,
    and that in words.
    """
    if match.a is None or match.b is None:
        return None, ""
    slower = whole.difference(match.a.ns, match.b.ns) > 0
    sides = (whole.a, whole.b)
    for limiter in dict.fromkeys(side.limiters.get(match.key) for side in sides):
        if limiter is None or not all(limiter in side.ceilings for side in sides):
            continue
        ratio = whole.b.ceilings[limiter] / whole.a.ceilings[limiter]
        if abs(ratio - 1) > _MOVED and slower is (ratio < 1):
            return limiter, f"bound by {limiter}, whose ceiling is {ratio:.2f} times A's"
    return None, ""


def _same_inputs(
    a: Mapping[Inputs, Amount], b: Mapping[Inputs, Amount]
) -> dict[str, tuple[int, int]]:
    """By operator the time of both in calls whose shapes and types both sides have; nothing of
    operators without inputs.
    """
    found: dict[str, tuple[int, int]] = {}
    for key in a.keys() & b.keys():
        if key.shapes:
            before, after = found.get(key.name, (0, 0))
            found[key.name] = (before + a[key].ns, after + b[key].ns)
    return found


def _shapes(whole: _Whole) -> WorkTable:
    a, b = whole.a, whole.b
    rows = []
    for match in _both(a.shapes, b.shapes):
        other = b.operators if match.b is None else a.operators
        has_name = match.key.name in other
        here = _alone(match)
        reason = here and (f"{here} with these inputs" if has_name else here)
        rows.append(
            _row(
                whole,
                match.key.name,
                match.a,
                match.b,
                reason=reason,
                shapes=match.key.shapes,
                dtypes=match.key.dtypes,
            )
        )
    return _table("shape", whole, rows, _rest(a.window.rest, b.window.rest))


def _alone(match: _Match[KeyT]) -> str:
    return "only in B" if match.a is None else "only in A" if match.b is None else ""


@dataclass(frozen=True, eq=False)
class _Alone:
    """Why an operator is on one side alone."""

    whole: _Whole

    def reason(self, match: _Match[str]) -> str:
        """Empty for an operator of both. Its work may be in another operator: one that the other
        side has alone and that belongs to the same forward operator, or runs inside of the same.
        """
        if match.a is not None and match.b is not None:
            return ""
        here, there = (
            (self.whole.a, self.whole.b) if match.b is None else (self.whole.b, self.whole.a)
        )
        name, letter = match.key, "B" if match.b is None else "A"
        forward, holder = here.forward.get(name), here.holders.get(name)
        others = sorted(
            (amount.ns, other)
            for other, amount in there.operators.items()
            if other not in here.operators and amount.ns
        )[::-1]
        for words, mine, theirs in (
            ("same forward operator", forward, there.forward),
            (f"both inside {holder}", holder, there.holders),
        ):
            same = [other for _, other in others if mine and theirs.get(other) == mine]
            if same:
                return f"its work is in {', '.join(same[:_NAMED])} of {letter}, {words}"
        for _ in range(_HOLDERS):
            if holder is None or holder in there.operators:
                break
            holder = here.holders.get(holder)
        where = f", inside {holder}, which both have" if holder in there.operators else ""
        return f"{_alone(match)}{where}"


def _rest_branches(whole: _Whole) -> Iterator[Branch]:
    for name, (a_ns, b_ns) in _rest(whole.a.window.rest, whole.b.window.rest).items():
        if a_ns or b_ns:
            moved = whole.difference(a_ns, b_ns)
            yield Branch(
                name=name,
                side="rest",
                a_ns=a_ns,
                b_ns=b_ns,
                calls_a=0,
                calls_b=0,
                difference_ns=moved,
                own_ns=moved,
            )
