"""Work of operators that torch really ran on the CPU, as its profiler recorded them, against torch's
own counter; where that is wrong or has no entry, against a direct count of multiplications: the
same operator over ones adds up to the number of its multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import needs
from tests.analysis.operators.recording import of_name, record

needs.packages("torch")
pytestmark = needs.TORCH_HERE

few = settings(
    max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
many_cases = partial(st.lists, min_size=16, max_size=16)
extent = st.integers(1, 5)
Case = Callable[[], Any]


def counter_total(case: Case) -> int:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        case()
    return counter.get_total_flops()


# --- products --------------------------------------------------------------------------------------

DTYPES = ("float32", "bfloat16", "float16", "float64")


@st.composite
def products(draw: Any) -> Case:
    import torch
    from torch.nn import functional

    b, m, n, k = (draw(extent) for _ in range(4))
    dtype = getattr(torch, draw(st.sampled_from(DTYPES)))
    ones = partial(torch.ones, dtype=dtype)
    form = draw(
        st.sampled_from(("mm", "bmm", "addmm", "baddbmm", "linear", "matmul", "einsum", "out"))
    )
    if form == "linear":
        x, bias = ones(b, m, k), draw(st.sampled_from((None, ones(n))))
        return lambda: functional.linear(x, ones(n, k), bias)
    calls: dict[str, Case] = {
        "mm": lambda: torch.mm(ones(m, k), ones(k, n)),
        "out": lambda: torch.mm(ones(m, k), ones(k, n), out=ones(m, n)),
        "bmm": lambda: torch.bmm(ones(b, m, k), ones(b, k, n)),
        "addmm": lambda: torch.addmm(ones(n), ones(m, k), ones(k, n)),
        "baddbmm": lambda: torch.baddbmm(ones(m, n), ones(b, m, k), ones(b, k, n)),
        "matmul": lambda: torch.matmul(ones(b, 1, m, k), ones(3, k, n)),
        "einsum": lambda: torch.einsum("bij,bjk->bik", ones(b, m, k), ones(b, k, n)),
    }
    return calls[form]


@pytest.mark.slow
@few
@given(st.data())
def test_products_count_as_in_torch(data: Any) -> None:
    cases = data.draw(many_cases(products()))
    for case, row in zip(cases, record(cases), strict=True):
        assert (row.counted() or 0) == counter_total(
            case
        )  # einsum over ones multiplies elementwise
        for product in row.all():
            if product.work.flops is not None:
                assert product.work.low_bytes
            if product.name in ("aten::matmul", "aten::linear"):  # where nothing is nested in them
                assert product.work.flops == row.counted()


@few
@given(m=extent, n=extent, k=extent)
def test_what_torchs_counter_leaves_out_is_counted_directly(m: int, n: int, k: int) -> None:
    import torch
    from torch.nn import functional

    ones = torch.ones
    vectors = {
        "aten::mv": (lambda: torch.mv(ones(m, k), ones(k)), 2),
        "aten::addmv": (lambda: torch.addmv(torch.zeros(m), ones(m, k), ones(k)), 2),
        "aten::dot": (lambda: torch.dot(ones(k), ones(k)), 2),
        "aten::vdot": (lambda: torch.vdot(ones(k), ones(k)), 2),
        "aten::outer": (lambda: torch.outer(ones(m), ones(n)), 1),
        "aten::addr": (lambda: torch.addr(torch.zeros(m, n), ones(m), ones(n)), 1),
        "aten::addbmm": (lambda: torch.addbmm(torch.zeros(m, n), ones(3, m, k), ones(3, k, n)), 2),
        "aten::_int_mm": (
            lambda: torch._int_mm(
                ones(17, 8 * k, dtype=torch.int8), ones(8 * k, 8 * n, dtype=torch.int8)
            ),
            2,
        ),
        "aten::conv_tbc": (
            lambda: torch.conv_tbc(ones(k + 2, n, m), ones(2, m, 3), torch.zeros(3)),
            2,
        ),
    }
    others = [
        lambda: functional.bilinear(ones(m, k), ones(m, n), ones(3, k, n)),
        lambda: torch.cdist(ones(30, k), ones(26, k)),
    ]
    rows = record([*(case for case, _ in vectors.values()), *others])
    for row, (name, (case, per_product)) in zip(rows, vectors.items(), strict=False):
        multiplied = per_product * float(case().double().sum())
        assert row.counted() == multiplied, name
        assert {work.flops for work in of_name(row, name)} == {multiplied}, name
    assert rows[-2].counted() == 2 * 3 * m * n * (k + 1)  # x1 W, then with x2, for each output
    assert rows[-1].counted() == 2 * 30 * 26 * (k + 2)  # squares of both stand in two columns more
    assert of_name(rows[-1], "aten::cdist")[0].nest == "outer"


def test_an_int8_product_is_measured_against_the_peak_of_int8() -> None:
    import torch

    eights = [torch.ones(17, 16, dtype=torch.int8), torch.ones(16, 8, dtype=torch.int8)]
    halves = [torch.ones(2, 3, dtype=torch.float16), torch.ones(3, 2, dtype=torch.float16)]
    rows = record([lambda: torch._int_mm(*eights), lambda: torch.mm(*halves)])
    (eight,), (half,) = of_name(rows[0], "aten::_int_mm"), of_name(rows[1], "aten::mm")
    assert (eight.dtype, eight.low_bytes) == ("int8", 17 * 16 + 16 * 8 + 4 * 17 * 8)
    assert (half.dtype, half.low_bytes) == ("fp16", 2 * (6 + 6 + 4))


def test_a_scaled_product_wins_over_the_one_that_the_cpu_nests_in_it() -> None:
    import torch

    def scaled() -> None:
        a = torch.ones(16, 32).to(torch.float8_e4m3fn)
        b = torch.ones(48, 32).to(torch.float8_e4m3fn).t()
        torch._scaled_mm(a, b, torch.ones(()), torch.ones(()), out_dtype=torch.bfloat16)

    (row,) = record([scaled])
    (work,) = of_name(row, "aten::_scaled_mm")
    assert row.counted() == work.flops == 2 * 16 * 48 * 32
    assert (work.dtype, work.nest) == ("fp8", "wins")
    assert work.low_bytes == 16 * 32 + 32 * 48 + 2 * 16 * 48 + 8


def test_a_grouped_product_is_at_most_that_of_all_rows() -> None:
    import torch

    a, b = torch.ones(12, 16, dtype=torch.bfloat16), torch.ones(3, 16, 8, dtype=torch.bfloat16)
    offsets = torch.tensor([4, 8, 12], dtype=torch.int32)
    (row,) = record([lambda: torch._grouped_mm(a, b, offs=offsets)])
    (work,) = of_name(row, "aten::_grouped_mm")
    assert (work.flops, work.bound) == (2 * 12 * 16 * 8, "most")
    assert row.counted() == work.flops  # by the products of the groups, which are exact


# --- convolutions ----------------------------------------------------------------------------------

LEVELS = ("conv1d", "conv2d", "conv3d", "convolution", "_convolution", "mkldnn_convolution")
TRANSPOSED = ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


@st.composite
def convolutions(draw: Any) -> dict[str, Any]:
    rank, groups = draw(st.integers(1, 3)), draw(st.sampled_from((1, 2, 3)))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    dilation = tuple(draw(st.integers(1, 2)) for _ in range(rank))
    stride = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    transposed = draw(st.booleans())
    return {
        "rank": rank,
        "batch": draw(st.integers(1, 3)),
        "channels": groups * draw(st.integers(1, 2)),
        "filters": groups * draw(st.integers(1, 2)),
        "image": tuple(
            (k - 1) * d + draw(st.integers(1, 4)) for k, d in zip(kernel, dilation, strict=True)
        ),
        "kernel": kernel,
        "stride": stride,
        "padding": tuple(0 if transposed else draw(st.integers(0, 2)) for _ in range(rank)),
        "dilation": dilation,
        "groups": groups,
        "transposed": transposed,
        "x_grad": draw(st.booleans()),
    }


def convolution_of(form: dict[str, Any]) -> tuple[Case, float, float]:
    """The call with its backward, and multiply-adds forward and backward: over ones, padded with
    ones, the result adds up to them, and so does the sum of each gradient.
    """
    import torch
    from torch.nn import functional

    def call(x: Any, w: Any, padding: Any) -> Any:
        name = f"conv_transpose{form['rank']}d" if form["transposed"] else f"conv{form['rank']}d"
        return getattr(functional, name)(
            x, w, stride=form["stride"], padding=padding, dilation=form["dilation"],
            groups=form["groups"],
        )  # fmt: skip

    size = (form["batch"], form["channels"], *form["image"])
    split = (form["channels"], form["filters"] // form["groups"])
    if not form["transposed"]:
        split = (form["filters"], form["channels"] // form["groups"])

    def run() -> None:
        x = torch.ones(size, requires_grad=form["x_grad"])
        w = torch.ones((*split, *form["kernel"]), requires_grad=True)
        call(x, w, form["padding"]).sum().backward()

    around = [edge for p in reversed(form["padding"]) for edge in (p, p)]
    x = functional.pad(torch.ones(size), around, value=1.0).requires_grad_(True)
    w = torch.ones((*split, *form["kernel"]), requires_grad=True)
    y = call(x, w, 0)
    y.sum().backward()
    multiplied = float(w.grad.sum()) + (float(x.grad.sum()) if form["x_grad"] else 0.0)
    return run, float(y.detach().sum()), multiplied


@pytest.mark.slow
@few
@given(st.data())
def test_convolutions_and_their_gradients(data: Any) -> None:
    forms = data.draw(many_cases(convolutions()))
    made = [convolution_of(form) for form in forms]
    rows = record([run for run, _, _ in made])
    for form, (run, forward, backward), row in zip(forms, made, rows, strict=True):
        levels = {
            level: {work.flops for work in of_name(row, f"aten::{level}")}
            for level in (TRANSPOSED if form["transposed"] else ()) + LEVELS
        }
        seen = {flops for found in levels.values() for flops in found}
        assert seen == {2 * forward}, (form, levels)
        (back,) = of_name(row, "aten::convolution_backward")
        assert back.flops == 2 * backward, form
        assert row.counted() == 2 * (forward + backward), form
        if form["groups"] == 1:
            assert counter_total(run) == row.counted(), form


def test_torchs_counter_takes_a_weight_gradient_groups_times() -> None:
    form = {
        "rank": 2, "batch": 2, "channels": 8, "filters": 8, "image": (7, 7), "kernel": (3, 3),
        "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 8, "transposed": False,
        "x_grad": True,
    }  # fmt: skip
    run, forward, backward = convolution_of(form)
    (row,) = record([run])
    assert row.counted() == 2 * (forward + backward) == 3 * 2 * forward
    assert counter_total(run) == 2 * forward * (1 + 1 + 8)


def test_bytes_of_a_convolution_leave_out_what_strides_jump_over() -> None:
    import torch
    from torch.nn import functional

    x, w, b = torch.ones(2, 3, 8, 8), torch.ones(4, 3, 1, 1), torch.ones(4)
    (row,) = record([lambda: functional.conv2d(x, w, b, stride=2)])
    (work,) = of_name(row, "aten::convolution")
    assert work.low_bytes == 4 * (2 * 3 * 4 * 4 + 12 + 4 + 2 * 4 * 4 * 4)


# --- attention -------------------------------------------------------------------------------------


@st.composite
def attentions(draw: Any) -> dict[str, Any]:
    causal = draw(st.booleans())
    rows = draw(st.integers(1, 9))
    kv = draw(st.integers(1, 2))
    return {
        "batch": draw(st.integers(1, 2)),
        "kv": kv,
        "heads": kv * draw(st.integers(1, 3)),
        "rows": rows,
        "columns": draw(st.integers(1, 9)),
        "depth": draw(st.sampled_from((1, 3, 8))),
        "causal": causal,
        "math": draw(st.booleans()),
        "dtype": draw(st.sampled_from(("float32", "bfloat16"))),
    }


def attention_of(form: dict[str, Any]) -> Case:
    import torch
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel

    make = partial(torch.ones, dtype=getattr(torch, form["dtype"]), requires_grad=True)
    backend = SDPBackend.MATH if form["math"] else SDPBackend.FLASH_ATTENTION

    def run() -> None:
        q = make(form["batch"], form["heads"], form["rows"], form["depth"])
        k, v = (make(form["batch"], form["kv"], form["columns"], form["depth"]) for _ in range(2))
        with sdpa_kernel(backend):
            functional.scaled_dot_product_attention(
                q, k, v, is_causal=form["causal"], enable_gqa=form["kv"] != form["heads"]
            ).sum().backward()

    return run


@pytest.mark.slow
@few
@given(st.data())
def test_attention_counts_the_pairs_under_its_mask(data: Any) -> None:
    import torch

    forms = data.draw(many_cases(attentions()))
    rows = record([attention_of(form) for form in forms])
    for form, row in zip(forms, rows, strict=True):
        mask = torch.ones(form["rows"], form["columns"])
        mask = mask.tril() if form["causal"] else mask
        heads, depth = form["batch"] * form["heads"], form["depth"]
        per_pair, every = 2 * heads * 2 * depth, float(form["rows"] * form["columns"])
        (whole,) = of_name(row, "aten::scaled_dot_product_attention")
        assert whole.flops == per_pair * float(mask.sum()), form
        assert whole.full == per_pair * every
        if form["math"]:  # four products backward, and all pairs
            assert row.counted() == counter_total(attention_of(form)) == 3 * per_pair * every
            continue
        (inner,) = of_name(row, "aten::_scaled_dot_product_flash_attention_for_cpu")
        (back,) = of_name(row, "aten::_scaled_dot_product_flash_attention_for_cpu_backward")
        assert inner.flops == whole.flops
        assert back.flops == 2.5 * whole.flops
        assert row.counted() == 3.5 * whole.flops


# --- recurrent networks ----------------------------------------------------------------------------


@pytest.mark.slow
@few
@given(st.data())
def test_recurrent_layers_multiply_what_their_cells_would(data: Any) -> None:
    import torch

    forms = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from(("LSTM", "GRU")), st.integers(1, 4), st.integers(1, 5), extent,
                st.integers(1, 2), st.booleans(), st.booleans(),
            ),
            min_size=6,
            max_size=6,
        )
    )  # fmt: skip

    def layer(form: Any) -> Case:
        kind, steps, wide, hidden, layers, both, gradients = form
        model = getattr(torch.nn, kind)(wide, hidden, layers, bidirectional=both)
        x = torch.ones(steps, 2, wide)

        def run() -> None:
            out = model(x)[0] if gradients else torch.no_grad()(model)(x)[0]
            if gradients:
                out.sum().backward()

        return run

    def by_cells(form: Any) -> int:
        kind, steps, wide, hidden, layers, both, _ = form
        cell = getattr(torch.nn, f"{kind}Cell")

        def run() -> None:
            for place in range(layers):
                taken = wide if place == 0 else hidden * (1 + both)
                for _ in range(1 + both):
                    for _ in range(steps):
                        cell(taken, hidden)(torch.ones(2, taken))

        return counter_total(run)

    for form, row in zip(forms, record([layer(form) for form in forms]), strict=True):
        forward = sum(
            case.counted() or 0
            for case in row.inside
            if case.name.removeprefix("aten::") in ("lstm", "gru")
        )
        assert forward == by_cells(form), form
        if form[0] == "LSTM" and form[-1]:
            assert row.counted() == 3 * forward, form
        assert all(
            found.nest == "outer"
            for name in ("lstm", "gru")
            for found in of_name(row, f"aten::{name}")
        )
