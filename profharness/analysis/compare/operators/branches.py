"""Two trees of operators walked together: nodes are matched by where they stand, and inside of one
node by the order of what runs there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import takewhile

from profharness.analysis.compare.operators.records import Branch, Side
from profharness.analysis.compare.operators.tree import Tree

_INSTANCE = re.compile(r"_\d+\Z")
_PAIRS = 50_000
_ALL_PAIRS = 2_000_000
"""Pairs of equal names of which `difflib` looks for the best order, inside of one node and in all:
beyond, the k-th of a name on one side is matched with the k-th on the other.
"""
_LEAST = 0.002
"""Part of all time that moved below which a node is not shown by itself."""
_OUTLIER = 3
"""How many times the mean of its neighbours one of equal name moves, to be shown by itself."""

Pair = tuple[int | None, int | None]


@dataclass(eq=False)
class _Walk:
    """Both trees, steps of each, and the pairs of names that may still be looked at."""

    a: Tree
    b: Tree
    steps_a: int
    steps_b: int
    left: int = field(default=_ALL_PAIRS)

    def branch(self, a: int | None, b: int | None) -> Branch:
        """The node of both trees with everything inside."""
        pairs = self.aligned(
            () if a is None else self.a.inner[a], () if b is None else self.b.inner[b]
        )
        present = self.a.names[a] if a is not None else self.b.names[b or 0]
        a_ns = 0 if a is None else self.a.inclusive[a]
        b_ns = 0 if b is None else self.b.inclusive[b]
        own_a = 0 if a is None else self.a.own[a]
        own_b = 0 if b is None else self.b.own[b]
        return Branch(
            name=present,
            side="only-b" if a is None else "only-a" if b is None else "both",
            a_ns=a_ns,
            b_ns=b_ns,
            calls_a=0 if a is None else self.a.calls[a],
            calls_b=0 if b is None else self.b.calls[b],
            difference_ns=self.difference(a_ns, b_ns),
            own_ns=self.difference(own_a, own_b),
            inner=tuple(self.branch(*pair) for pair in pairs),
        )

    def difference(self, a_ns: int, b_ns: int) -> float:
        """Of one step, in ns."""
        return difference(a_ns, b_ns, self.steps_a, self.steps_b)

    def aligned(self, a: Sequence[int], b: Sequence[int]) -> list[Pair]:
        """Nodes of both that belong together, in the order of A; then those of B alone."""
        names_a = [plain(self.a.names[at]) for at in a]
        names_b = [plain(self.b.names[at]) for at in b]
        cost = _cost(names_a, names_b)
        exact = cost <= min(_PAIRS, self.left)
        self.left -= cost if exact else 0
        return [
            (None if i is None else a[i], None if j is None else b[j])
            for i, j in align(names_a, names_b, exact=exact)
        ]


def difference(a_ns: int, b_ns: int, steps_a: int, steps_b: int) -> float:
    """B less A of one step, in ns; exact where both hold one step."""
    return b_ns / steps_b - a_ns / steps_a if steps_a > 1 or steps_b > 1 else float(b_ns - a_ns)


def plain(name: str) -> str:
    """The name without the number of a module's instance."""
    return _INSTANCE.sub("", name)


def _cost(a: Sequence[str], b: Sequence[str]) -> int:
    counts = Counter(b)
    return sum(counts[name] for name in a) if a != b else 0


def align(a: Sequence[str], b: Sequence[str], *, exact: bool = True) -> list[Pair]:
    """Positions of equal names that belong together, each position once, in the order of `a`, then
    those of `b` that have no partner. The order of both is kept as far as it goes (`exact`); what
    is left is matched by name, the first with the first.
    """
    partner: dict[int, int] = {}
    if exact:
        head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
        partner.update((at, at) for at in range(head))
        matcher = SequenceMatcher(None, a[head:], b[head:], autojunk=False)
        for block in matcher.get_matching_blocks():
            for step in range(block.size):
                partner[head + block.a + step] = head + block.b + step
    taken = set(partner.values())
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for at, name in enumerate(b):
        if at not in taken:
            waiting[name].append(at)
    for at, name in enumerate(a):
        if at not in partner and waiting[name]:
            partner[at] = waiting[name].popleft()
    taken = set(partner.values())
    return [
        *((at, partner.get(at)) for at in range(len(a))),
        *((None, at) for at in range(len(b)) if at not in taken),
    ]


def branches(a: Tree, b: Tree, steps: tuple[int, int], rest: Iterable[Branch]) -> Branch:
    """Both trees as one, without what moved too little to be shown, whose difference is its
    holder's own. `rest` stands beside the outermost nodes.
    """
    walk = _Walk(a, b, *steps)
    pairs = walk.aligned(a.roots, b.roots)
    inner = (*(walk.branch(*pair) for pair in pairs), *rest)
    whole = _holding("all", "both", inner)
    least = _LEAST * _moved(whole)
    return _shown(whole, least)


def _holding(name: str, side: Side, inner: Sequence[Branch], times: int = 1) -> Branch:
    return Branch(
        name=name,
        side=side,
        a_ns=sum(one.a_ns for one in inner),
        b_ns=sum(one.b_ns for one in inner),
        calls_a=1,
        calls_b=1,
        difference_ns=sum(one.difference_ns for one in inner),
        own_ns=0.0,
        times=times,
        inner=tuple(inner),
    )


def _moved(branch: Branch) -> float:
    """All time that a subtree moved up or down, in ns."""
    return abs(branch.own_ns) + sum(_moved(one) for one in branch.inner)


def _shown(branch: Branch, least: float) -> Branch:
    """The branch with equal neighbours as one, the largest difference first, without the small."""
    inner = _folded(branch.inner)
    kept = [one for one in inner if _moved(one) > least]
    hidden = sum(one.difference_ns for one in inner if _moved(one) <= least)
    kept.sort(key=lambda one: (-abs(one.difference_ns), one.name))
    return Branch(
        **{
            name: getattr(branch, name)
            for name in Branch.__struct_fields__
            if name not in ("inner", "own_ns")
        },
        own_ns=branch.own_ns + hidden,
        inner=tuple(_shown(one, least) for one in kept),
    )


def _folded(inner: Sequence[Branch]) -> list[Branch]:
    """Nodes of one name as one, apart from one that moved several times as much as the others."""
    groups: dict[tuple[str, Side], list[Branch]] = {}
    for one in inner:
        groups.setdefault((plain(one.name), one.side), []).append(one)
    found = []
    for (name, side), group in groups.items():
        alone = _outlier(group)
        alike = [one for one in group if one is not alone]
        found += [] if alone is None else [alone]
        found.append(alike[0] if len(alike) == 1 else _together(name, side, alike))
    return found


def _outlier(group: Sequence[Branch]) -> Branch | None:
    """The one of several that moved much more than the others."""
    if len(group) < 2:
        return None
    largest = max(group, key=lambda one: abs(one.difference_ns))
    others = sum(abs(one.difference_ns) for one in group if one is not largest)
    mean = others / (len(group) - 1)
    return largest if abs(largest.difference_ns) > _OUTLIER * mean else None


def _together(name: str, side: Side, group: Sequence[Branch]) -> Branch:
    """Several nodes as one: inside, the k-th of a name of each is one."""
    places: dict[tuple[str, Side, int], list[Branch]] = {}
    for member in group:
        seen: Counter[tuple[str, Side]] = Counter()
        for one in member.inner:
            key = (plain(one.name), one.side)
            places.setdefault((*key, seen[key]), []).append(one)
            seen[key] += 1
    return Branch(
        name=name,
        side=side,
        a_ns=sum(one.a_ns for one in group),
        b_ns=sum(one.b_ns for one in group),
        calls_a=sum(one.calls_a for one in group),
        calls_b=sum(one.calls_b for one in group),
        difference_ns=sum(one.difference_ns for one in group),
        own_ns=sum(one.own_ns for one in group),
        times=sum(one.times for one in group),
        inner=tuple(
            held[0] if len(held) == 1 else _together(place[0], place[1], held)
            for place, held in places.items()
        ),
    )
