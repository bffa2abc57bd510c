"""What the engine says of one operator call, what it can be told beside the recorded texts, and how
much of a trace all calls together explain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import msgspec

from profharness.node.devices import Dtype

Bound = Literal["", "least", "most"]
Nest = Literal["", "outer", "wins", "wins-attention"]

NO_SHAPES = "no shapes"
NO_FORMULA = "no formula"
NO_EXTENTS = "extents unknown"
NO_LENGTHS = "lengths unknown"
NO_FIT = "formula does not fit"


@dataclass(frozen=True)
class Work:
    """What one operator call has to do at least (docs/metrics.md#operator-work).

    `flops` are the useful operations of matrix products, two per multiply-add; of causal attention
    the exact pairs, and `flops_full` all pairs (None where both are the same). `bound` says that
    `flops` is the least or the most that the shapes allow, because lengths or offsets are values
    that no trace holds; `flops_most` is then the most where `flops` is the least.

    `low_bytes` are bytes that must move whatever the caches do. `dtype` is the type whose peak
    applies. `matrix` says that it is an operator of matrix work, `reason` why such a one has no
    figure. `reduced_allowed` says whether fp32 operands may be rounded to TF32, where the call
    recorded that.

    `nest` is what the operator is in a nest of operators that each have a formula. Empty: the
    innermost of them counts. "outer": counts only where nothing inside of it does. "wins": counts
    in place of all that is nested in it. "wins-attention": counts in place of the attention
    operators nested in it, but leaves the work to products that are.

    `misfit` names the table entry that was meant for this operator and does not fit this call.
    """

    flops: float | None = None
    low_bytes: float | None = None
    dtype: Dtype | None = None
    flops_full: float | None = None
    bound: Bound = ""
    flops_most: float | None = None
    matrix: bool = False
    reduced_allowed: bool | None = None
    reason: str = ""
    nest: Nest = ""
    misfit: str = ""

    @property
    def full(self) -> float | None:
        """All operations: those of the full count where it differs."""
        return self.flops if self.flops_full is None else self.flops_full


NOTHING = Work()


@dataclass(frozen=True)
class Lengths:
    """Sums over the sequences of a batch: query tokens, key tokens, squares of the query tokens,
    products of query and key tokens.
    """

    queries: float
    keys: float
    squares: float
    products: float

    @property
    def possible(self) -> bool:
        """Whether sequences can have these sums, each with a key for every query."""
        return self.queries <= min(self.keys, self.squares) and self.squares <= self.products

    @property
    def causal(self) -> float:
        """Pairs of a causal mask that is aligned at the last key: each sequence has
        `sq sk - sq (sq - 1) / 2` of them.
        """
        return self.products - (self.squares - self.queries) / 2

    def __add__(self, other: Lengths) -> Lengths:
        return Lengths(
            self.queries + other.queries,
            self.keys + other.keys,
            self.squares + other.squares,
            self.products + other.products,
        )


@dataclass(frozen=True)
class ServerStep:
    """One step of a server: the sequences whose prompts it reads, and those that it continues."""

    context: Lengths
    generation: Lengths

    def of_rows(self, rows: int) -> Lengths | None:
        """The lengths that a call with so many query rows works on: all of the step's, with rows
        beyond them as padding, or those of the one part that has exactly as many. None where
        neither fits, or both parts do.
        """
        whole = self.context + self.generation
        if whole.queries <= rows:
            return whole
        parts = [part for part in (self.context, self.generation) if part.queries == rows]
        return parts[0] if len(parts) == 1 else None


@dataclass(frozen=True)
class Given:
    """What other records of the trace say of a call whose own row does not hold it.

    `output` and `weight` are extents of a convolution's output and weight: old traces record no
    strides, but the backward operator with the same sequence number has both. `step` are the
    lengths of the sequences that attention works on: servers write them into the annotation of a
    step.
    """

    output: tuple[int, ...] | None = None
    weight: tuple[int, ...] | None = None
    step: ServerStep | None = None


ALONE = Given()


class Misfit(Exception):  # noqa: N818  it is no error of the caller
    """An entry of the table does not fit the call that it was meant for."""


def total(sizes: Iterable[float | None]) -> float | None:
    """The sum; None where one part is not known."""
    summed = 0.0
    for size in sizes:
        if size is None:
            return None
        summed += size
    return summed


def unknown(reason: str) -> Work:
    """A matrix operator without a figure."""
    return Work(matrix=True, reason=reason)


class KnownWork(msgspec.Struct, frozen=True, kw_only=True):
    """Time of the kernels of categories gemm, conv and attention, in ns: of the whole file, or of a
    point in its window.

    `known_ns` is that of kernels whose operator's work is known, `reasons` the rest by reason, the
    longest first.
    """

    matrix_kernel_ns: int
    known_ns: int
    reasons: dict[str, int]

    @property
    def share(self) -> float | None:
        """The known share of the time; None where no matrix kernel ran."""
        return self.known_ns / self.matrix_kernel_ns if self.matrix_kernel_ns else None


class OperatorShare(msgspec.Struct, frozen=True, kw_only=True):
    """Time of all kernels of a file with operators, in ns: `in_operators_ns` of those that were
    launched inside of a recorded operator, `reasons` the rest by reason, the longest first.
    """

    kernel_ns: int
    in_operators_ns: int
    reasons: dict[str, int]

    @property
    def share(self) -> float | None:
        """The share inside of operators; None where no kernel ran."""
        return self.in_operators_ns / self.kernel_ns if self.kernel_ns else None


def add_known_work(parts: Iterable[KnownWork | None]) -> KnownWork | None:
    """The sum over files that hold kernels with times; None where none does."""
    held = [part for part in parts if part is not None]
    if not held:
        return None
    return KnownWork(
        matrix_kernel_ns=sum(part.matrix_kernel_ns for part in held),
        known_ns=sum(part.known_ns for part in held),
        reasons=add_reasons(part.reasons for part in held),
    )


def add_operator_shares(parts: Iterable[OperatorShare | None]) -> OperatorShare | None:
    """The sum over files that recorded operators and kernels; None where none did."""
    held = [part for part in parts if part is not None]
    if not held:
        return None
    return OperatorShare(
        kernel_ns=sum(part.kernel_ns for part in held),
        in_operators_ns=sum(part.in_operators_ns for part in held),
        reasons=add_reasons(part.reasons for part in held),
    )


def add_reasons(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Times by reason, added up, the longest first, then by name."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))
