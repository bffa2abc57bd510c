"""The kinds of entries that a table of formulas has, with their keys (docs/formulas.md).

A position is that of an argument in the operator's schema, from 0, as the trace records it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from profharness.analysis.operators.records import Nest
from profharness.node.devices import Dtype

Position = Annotated[int, msgspec.Meta(ge=0)]
Positions = tuple[Position, ...]


class Entry(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """What all kinds share. `match` is an exact name or a `/regular expression/`, or several of
    them; `since` and `until` are the numbers of recorded arguments that the entry expects.

    `dtype` is a type, or the position whose type selects the peak.
    """

    match: str | tuple[str, ...]
    kernel: bool = False
    since: Position | None = None
    until: Position | None = None
    dtype: Position | Dtype | None = None
    nest: Nest = ""
    note: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names and expressions that it matches."""
        return (self.match,) if isinstance(self.match, str) else self.match

    @property
    def is_matrix(self) -> bool:
        """Whether its operators do matrix work."""
        return True


class Matmul(Entry, tag="matmul", frozen=True, kw_only=True):
    """`[.., m, k] x [.., k, n]`, `b` as `[n, k]` where `transposed_b` (or either way round).

    `added` is read unless the number at `beta` is 0; `bias` and `scales` are read. `out` is the
    type of the result, or the position that holds it as a number; without one it is that of `a`.
    `packed` values of k share a recorded element beyond what the element type says. `dense` is the
    number of multiplications of the full product per one that a sparse operand leaves. With
    `grouped`, offsets divide the rows or k among the matrices of the other operand.
    """

    a: Position
    b: Position
    transposed_b: bool | Literal["either"] = False
    added: Position | None = None
    beta: Position | None = None
    bias: Position | None = None
    scales: Positions = ()
    out: Position | str | None = None
    packed: Annotated[int, msgspec.Meta(ge=1)] = 1
    dense: Annotated[int, msgspec.Meta(ge=1)] = 1
    grouped: bool = False
    reduced: bool = False


class Conv(Entry, tag="conv", frozen=True, kw_only=True):
    """A convolution forward: `w` is `[Cout, Cin / groups, k..]`, transposed `[Cin, Cout / groups,
    k..]`, whose output's bytes need `groups`. `tf32` is the position that says whether operands may
    be rounded.
    """

    x: Position
    w: Position
    bias: Position | None = None
    stride: Position | None = None
    padding: Position | None = None
    dilation: Position | None = None
    transposed: Position | bool = False
    output_padding: Position | None = None
    groups: Position | None = None
    tf32: Position | None = None


class ConvBackward(Entry, tag="conv_backward", frozen=True, kw_only=True):
    """Gradients of a convolution: `mask` says which of input, weight and bias are wanted, or is the
    position that does.
    """

    grad: Position
    x: Position | None = None
    w: Position | None = None
    mask: Position | tuple[bool, ...] = (True, True, False)
    transposed: Position | bool = False

    def __post_init__(self) -> None:
        if isinstance(self.mask, tuple) and len(self.mask) != 3:
            raise ValueError("`mask` holds three truth values, of input, weight and bias")


class AttentionShape(Entry, frozen=True, kw_only=True):
    """What both directions of attention share. `layout` names the extents of q, k and v: batch,
    heads, sequence, depth; tokens of all sequences (`thd`) have lengths beside them.

    `causal` is a position or a fact, `mask_type` a position of the number 0, 1 (aligned at the top
    left) or 2 (bottom right). `window` are the positions of how far back and ahead a query sees;
    a negative number is no limit. `cu_q` and `cu_k` are cumulated lengths, `max_q` and `max_k` the
    longest ones. With `paged`, lengths stand in the annotation of a server's step alone.
    """

    q: Position
    k: Position
    v: Position
    layout: Literal["bhsd", "bshd", "thd"]
    causal: Position | bool = False
    mask_type: Position | None = None
    align: Literal["top-left", "bottom-right"] = "top-left"
    window: tuple[Position, Position] | None = None
    cu_q: Position | None = None
    cu_k: Position | None = None
    max_q: Position | None = None
    max_k: Position | None = None
    bias: Position | None = None
    lse: Position | None = None
    paged: bool = False


class Attention(AttentionShape, tag="attention", frozen=True, kw_only=True):
    """Attention forward; `lse` is the position that says whether the log-sum-exp is written."""


class AttentionBackward(AttentionShape, tag="attention_backward", frozen=True, kw_only=True):
    """Attention backward with recomputed scores; `grad`, `out` and `lse` are read, too."""

    grad: Position
    out: Position | None = None


class Rnn(Entry, tag="rnn", frozen=True, kw_only=True):
    """A fused recurrent operator: input `x`, and either the numbers of its form or `weights`, the
    positions of its matrices (one position: a list of them). `mask` is the position of which
    gradients a backward operator forms.
    """

    x: Position
    weights: Position | Positions
    mode: Position | None = None
    hidden: Position | None = None
    proj: Position | None = None
    layers: Position | None = None
    bidirectional: Position | None = None
    backward: bool = False
    mask: Position | None = None


class Template(Entry, tag="template", frozen=True, kw_only=True):
    """A Triton template of torch's inductor: operands, then the result, in unknown order of the
    rest; the form says what its shapes mean.
    """

    form: Literal["product", "conv", "attention", "attention-backward"]


class Traffic(Entry, tag="traffic", frozen=True, kw_only=True):
    """Work that is bytes alone. `inputs` are the positions that are read, all tensors without it; a
    tensor after them is the `out` of the call.

    stream: read the inputs, write the broadcast result, whose type is `result`: promoted (as torch
    promotes), float (whole numbers become fp32), integral (whole numbers become int64), bool, the
    type of the first, or a position that holds the type as a number. A name that ends with `_`
    writes the first. fill: write the first. copy: read the second, write the first. read: read the
    first. norm: read all, write as much as the first. sum: each tensor once.
    """

    rule: Literal["stream", "fill", "copy", "read", "norm", "sum"]
    inputs: Positions | None = None
    result: Position | Literal["promoted", "float", "integral", "bool", "first"] = "promoted"

    @property
    def is_matrix(self) -> bool:
        return False


class Arithmetic(Entry, tag="expression", frozen=True, kw_only=True):
    """A formula of its own, as text; `matrix` says whether its FLOPs are matrix work."""

    flops: str | None = None
    bytes: str | None = None
    flops_full: str | None = None
    matrix: bool | None = None

    @property
    def is_matrix(self) -> bool:
        return self.flops is not None if self.matrix is None else self.matrix


class Outer(Entry, tag="outer", frozen=True, kw_only=True):
    """An operator whose work is that of the operators nested in it; `matrix`: matrix work."""

    matrix: bool = True

    @property
    def is_matrix(self) -> bool:
        return self.matrix


class Unknown(Entry, tag="unknown", frozen=True, kw_only=True):
    """A matrix operator that has no formula, and why."""

    reason: str = "no formula"


AnyEntry = (
    Matmul
    | Conv
    | ConvBackward
    | Attention
    | AttentionBackward
    | Rnn
    | Template
    | Traffic
    | Arithmetic
    | Outer
    | Unknown
)
