"""Calls worked out by hand: what no CPU runs, what is not recorded, and what a nest counts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.operators.engine import own_engine
from profharness.analysis.operators.records import Given, Work

F32, BF16, I32, NUMBER, LIST = "float", "c10::BFloat16", "int", "Scalar", "ScalarList"


def work_of(name, dims, kinds, concrete=None, given=None, strides=None) -> Work:
    texts = ["" if text is None else json.dumps(text) for text in (concrete, strides)]
    told = {} if given is None else {"given": given}
    return own_engine().work(name, json.dumps(dims), json.dumps(kinds), *texts, **told)


# --- what no CPU runs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "concrete"),
    [
        ("aten::cudnn_convolution", ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1", "", "", "True"]),
        ("aten::miopen_convolution", ["", "", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"]),
        ("aten::cudnn_convolution_relu", ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "1"]),
        ("aten::thnn_conv2d", ["", "", "[3, 3]", "", "[2, 2]", "[1, 1]"]),
        ("aten::_conv_depthwise2d", ["", "", "[3, 3]", "", "[2]", "[1]", "[1]"]),
        (
            "aten::cudnn_convolution_add_relu",
            ["", "", "", "1", "", "[2, 2]", "[1, 1]", "[1, 1]", "1"],
        ),
    ],
)
def test_every_back_end_of_a_convolution_does_the_same(name, concrete):
    dims = [[2, 4, 9, 9], [6, 4, 3, 3], *([] for _ in concrete[2:])]
    found = work_of(
        name,
        dims,
        [F32, F32, *[LIST if "[" in text else NUMBER for text in concrete[2:]]],
        concrete,
    )
    assert found.flops == 2 * 2 * 25 * 6 * 4 * 9
    assert found.low_bytes == 4 * (2 * 4 * 81 + 6 * 36 + 2 * 6 * 25)
    assert found.reduced_allowed == (True if name == "aten::cudnn_convolution" else None)


@pytest.mark.parametrize(
    ("name", "concrete"),
    [
        (
            "aten::cudnn_convolution_transpose",
            ["", "", "[1, 1]", "[1, 1]", "[2, 2]", "[1, 1]", "2"],
        ),
        (
            "aten::miopen_convolution_transpose",
            ["", "", "", "[1, 1]", "[1, 1]", "[2, 2]", "[1, 1]", "2"],
        ),
    ],
)
def test_transposed_back_ends(name, concrete):
    dims = [[2, 4, 5, 5], [4, 3, 3, 3], *([] for _ in concrete[2:])]
    found = work_of(
        name,
        dims,
        [F32, F32, *[LIST if "[" in text else NUMBER for text in concrete[2:]]],
        concrete,
    )
    assert found.flops == 2 * 2 * 25 * 4 * 3 * 9
    assert found.low_bytes == 4 * (2 * 4 * 25 + 4 * 27 + 2 * 6 * 100)


QKV = [[2, 128, 8, 64], [2, 128, 2, 64], [2, 128, 2, 64]]
SQUARE, CAUSAL = 128 * 128, 128 * 129 // 2


@pytest.mark.parametrize("causal", [True, False])
def test_flash_attention_of_other_packages(causal):
    pairs = CAUSAL if causal else SQUARE
    forward = ["", "", "", "0.", "0.125", str(causal), "-1", "-1", "0.", "", "False"]
    for name in ("flash_attn::_flash_attn_forward", "aiter::_flash_attn_forward", "aiter::mha_fwd"):
        found = work_of(name, [*QKV, *[[]] * 8], [BF16] * 3 + [NUMBER] * 8, forward)
        assert found.flops == 2 * 2 * 8 * pairs * 128, name
        assert found.full == 2 * 2 * 8 * SQUARE * 128
        assert found.low_bytes == 2 * 128 * 64 * 2 * (8 + 2 + 2 + 8)
    back_dims = [QKV[0], *QKV, QKV[0], [2, 8, 128], *QKV, *[[]] * 4]
    back = [*[""] * 9, "0.", "0.125", str(causal), "-1"]
    found = work_of(
        "flash_attn::_flash_attn_backward",
        back_dims,
        [BF16] * 5 + [F32] + [BF16] * 3 + [NUMBER] * 4,
        back,
    )
    assert found.flops == 2.5 * 2 * 2 * 8 * pairs * 128  # the scale at 10 is no mask


def efficient(dims, mask_type, cu=(), longest=("", "")):
    inputs = [*dims, [], *(cu or ([], [])), [], [], [], [], []]
    words = [BF16] * 3 + [""] + [I32 if cu else ""] * 2 + [NUMBER] * 5
    concrete = ["", "", "", "", "", "", *longest, "0.", str(mask_type), "True"]
    return work_of("aten::_efficient_attention_forward", inputs, words, concrete)


def test_causal_masks_align_at_the_top_left_or_the_bottom_right():
    dims = [[1, 4, 1, 8], [1, 10, 1, 8], [1, 10, 1, 8]]
    assert efficient(dims, 0).flops == 2 * 40 * 16
    assert efficient(dims, 1).flops == 2 * (1 + 2 + 3 + 4) * 16
    assert efficient(dims, 2).flops == 2 * (7 + 8 + 9 + 10) * 16
    assert efficient(dims, 1).low_bytes == 2 * 8 * (4 + 10 + 10 + 4) + 4 * 4  # with the log-sum-exp


@given(
    st.integers(1, 12), st.integers(1, 12), st.integers(-1, 6), st.integers(-1, 6), st.booleans()
)
def test_windows_see_the_keys_that_a_mask_of_them_would(rows, columns, left, right, causal):
    dims = [[1, rows, 2, 8], [1, columns, 2, 8], [1, columns, 2, 8], *[[]] * 14]
    concrete = [""] * 5 + [
        str(rows),
        str(columns),
        "0.",
        str(causal),
        "False",
        "",
        str(left),
        str(right),
    ]
    found = work_of(
        "aten::_flash_attention_forward",
        dims,
        [BF16] * 3 + ["", ""] + [NUMBER] * 8 + [""] * 4,
        concrete + [""] * 4,
    )
    shift, ahead = columns - rows, 0 if causal else right
    seen = sum(
        (left < 0 or key >= row + shift - left) and (ahead < 0 or key <= row + shift + ahead)
        for row in range(rows)
        for key in range(columns)
    )
    assert found.flops == 2 * 2 * seen * 16
    assert found.full == 2 * 2 * rows * columns * 16


def varlen(lengths_q, lengths_k, *, causal):
    total_q, total_k, n = sum(lengths_q), sum(lengths_k), len(lengths_q)
    dims = [[total_q, 2, 8], [total_k, 1, 8], [total_k, 1, 8], [n + 1], [n + 1], *[[]] * 7]
    concrete = [""] * 5 + [
        str(max(lengths_q)),
        str(max(lengths_k)),
        "0.",
        "",
        str(causal),
        "-1",
        "-1",
    ]
    kinds = [BF16] * 3 + [I32] * 2 + [NUMBER] * 7
    return work_of("flash_attn::_flash_attn_varlen_forward", dims, kinds, concrete)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.booleans())
def test_sequences_of_unknown_lengths_lie_within_their_bounds(lengths, causal):
    found = varlen(lengths, lengths, causal=causal)
    pairs = sum(n * (n + 1) // 2 if causal else n * n for n in lengths)
    exact = 2 * 2 * pairs * 16
    assert found.flops <= exact * (1 + 1e-12)
    assert exact <= (found.flops_most or found.flops)
    if len(set(lengths)) == 1:
        assert found.flops == pytest.approx(exact)
    if len(lengths) == 1:
        assert (found.flops, found.bound) == (exact, "")
    else:
        assert found.bound == ("" if max(lengths) == 1 else "least")


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=2, max_size=6), st.booleans()
)
def test_chunks_of_prompts_lie_within_their_bounds(chunks, causal):
    queries, keys = [q for q, _ in chunks], [q + earlier for q, earlier in chunks]
    found = varlen(queries, keys, causal=causal)
    pairs = sum(q * k - causal * q * (q - 1) // 2 for q, k in zip(queries, keys, strict=True))
    same = sum(queries) == sum(keys)
    assert found.flops <= 2 * 2 * pairs * 16 * (1 + 1e-12)
    assert 2 * 2 * pairs * 16 <= (found.flops_most or found.flops)
    assert found.bound == "least" or same or set(queries) == {1}


def test_decoding_is_exact():
    found = varlen([1, 1, 1], [5, 9, 2], causal=True)
    assert (found.flops, found.bound) == (2 * 2 * 16 * 16, "")


def test_a_mask_that_is_not_recorded_bounds_the_work():
    found = work_of(
        "aten::_scaled_dot_product_flash_attention",
        [[1, 2, 8, 4]] * 3 + [[]] * 4,
        [F32] * 3 + [NUMBER] * 4,
    )
    assert (found.flops, found.flops_most, found.bound) == (2 * 2 * 36 * 8, 2 * 2 * 64 * 8, "least")


# --- recurrent networks ----------------------------------------------------------------------------


@given(
    st.integers(0, 3), st.integers(1, 3), st.booleans(), st.integers(1, 5), st.integers(1, 6),
    st.sampled_from((0, 2)),
)  # fmt: skip
def test_fused_networks_by_their_weights_or_by_their_numbers(
    mode, layers, both, wide, hidden, projected
):
    gates = {0: 1, 1: 1, 2: 4, 3: 3}[mode] * hidden
    proj = projected if mode == 2 and projected < hidden else 0
    state = proj or hidden
    weights = []
    for layer in range(layers):
        taken = wide if layer == 0 else state * (1 + both)
        for _ in range(1 + both):
            weights += [[gates, taken], [gates, state], [gates], [gates]] + (
                [[state, hidden]] if proj else []
            )
    steps = 7 * 2
    multiplied = 2 * steps * sum(w[0] * w[1] for w in weights if len(w) == 2)
    words = [F32, "TensorList", NUMBER, "", F32, F32, *[NUMBER] * 8, LIST, ""]
    concrete = ["", "", "4", "", "", "", str(mode), str(hidden), str(proj), str(layers), "False", "0.",
                "True", str(both), "[]", ""]  # fmt: skip
    for listed in (weights, []):
        dims = [[7, 2, wide], listed, [], [], [2, 2, hidden], [2, 2, hidden], *[[]] * 10]
        found = work_of("aten::_cudnn_rnn", dims, words, concrete)
        assert (found.flops, found.nest, found.dtype) == (multiplied, "wins", "fp32")
        packed = work_of("aten::_cudnn_rnn", [[14, wide], *dims[1:]], words, concrete)
        assert packed.flops == multiplied
        for to_input, to_weights in ((True, True), (False, True), (True, False)):
            mask = f"[{to_input}, True, True, {to_weights}]"
            back_dims = [*dims[:6], *[[7, 2, state]] * 2, *[[]] * 14]
            back_words = [*words[:6], F32, F32, "", "", *[NUMBER] * 8, LIST, "", "", LIST]
            back = work_of(
                "aten::_cudnn_rnn_backward",
                back_dims,
                back_words,
                [*[""] * 10, *concrete[6:], "", mask],
            )
            first = 2 * steps * wide * gates * (1 + both)
            assert back.flops == multiplied * (1 + to_weights) - (0 if to_input else first)


# --- products --------------------------------------------------------------------------------------


def test_packed_and_sparse_weights():
    m, n, k = 4, 64, 128
    x = [m, k]
    eight = work_of("aten::_weight_int8pack_mm", [x, [n, k], [n]], [BF16, "signed char", BF16])
    assert (eight.flops, eight.dtype) == (2 * m * n * k, "bf16")
    assert eight.low_bytes == 2 * m * k + n * k + 2 * n + 2 * m * n
    four = work_of(
        "aten::_weight_int4pack_mm",
        [x, [n // 8, k // 128, 32, 4], [], [k // 32, n, 2]],
        [BF16, I32, NUMBER, BF16],
    )
    assert (four.flops, four.dtype) == (2 * m * n * k, "bf16")
    sparse = work_of(
        "aten::_sparse_semi_structured_linear",
        [x, [n, k // 2], [n, k // 16]],
        [BF16, BF16, "short int"],
    )
    assert (sparse.flops, sparse.flops_full) == (m * n * k, 2 * m * n * k)
    compressed = work_of("aten::_cslt_sparse_mm", [[n * k * 9 // 16], [k, m]], [BF16, BF16])
    assert (compressed.flops, compressed.flops_full) == (m * n * k, 2 * m * n * k)


def test_two_values_of_4_bits_share_a_byte():
    packed = work_of(
        "aten::_scaled_mm", [[16, 32], [32, 8], [], []], ["c10::Float4_e2m1fn_x2"] * 2 + [F32] * 2
    )
    assert (packed.flops, packed.dtype) == (2 * 16 * 64 * 8, "fp4")
    bytes_of_two = work_of("aiter::gemm_a4w4_asm", [[16, 32], [8, 32]], ["unsigned char"] * 2)
    assert (bytes_of_two.flops, bytes_of_two.dtype) == (2 * 16 * 64 * 8, "fp4")


def test_a_weight_either_way_round():
    for weight in ([7, 5], [5, 7]):
        found = work_of("bitsandbytes::int8_linear_matmul", [[3, 5], weight], ["signed char"] * 2)
        assert (found.flops, found.low_bytes, found.dtype) == (210, 15 + 35 + 4 * 21, "int8")


def test_what_is_added_is_read_unless_beta_is_0():
    for beta, read in (("1", 4 * 21), ("0", 0), ("0.", 0)):
        found = work_of(
            "aten::addmm",
            [[3, 7], [3, 5], [5, 7], [], []],
            [F32] * 3 + [NUMBER] * 2,
            ["", "", "", beta, "1"],
        )
        assert found.low_bytes == 4 * (15 + 35 + 21) + read


def test_out_and_wider_results():
    a, b, out = [3, 5], [5, 7], [3, 7]
    plain = 2 * (15 + 35)
    assert work_of("aten::mm", [a, b, out], [BF16, BF16, F32]).low_bytes == plain + 4 * 21
    assert (
        work_of("aten::mm", [a, b, []], [BF16, BF16, NUMBER], ["", "", "6"]).low_bytes
        == plain + 4 * 21
    )
    added = work_of(
        "aten::addmm",
        [[7], a, b, [], [], out],
        [BF16] * 3 + [NUMBER] * 2 + [F32],
        ["", "", "", "1", "1", ""],
    )
    assert (added.flops, added.low_bytes) == (210, plain + 14 + 4 * 21)


def test_templates_of_inductor_by_their_shapes():
    for weight in ([5, 7], [7, 5]):
        found = work_of(
            "triton_tem_fused_mm_3", [[3, 5], weight, [3, 7], []], [BF16] * 3 + [NUMBER]
        )
        assert (found.flops, found.low_bytes, found.matrix) == (210, 2 * (15 + 35 + 21), True)
    added = work_of("triton_tem_fused_addmm_relu_0", [[7], [3, 5], [5, 7], [3, 7]], [BF16] * 4)
    assert added.flops == 210
    batched = work_of("triton_tem_fused_bmm_1", [[4, 3, 5], [4, 5, 7], [4, 3, 7]], [BF16] * 3)
    assert batched.flops == 4 * 210
    conv = work_of(
        "triton_tem_fused_convolution_2", [[2, 4, 9, 9], [6, 4, 3, 3], [2, 6, 7, 7]], [BF16] * 3
    )
    assert conv.flops == 2 * 2 * 49 * 6 * 4 * 9
    flex = work_of("triton_tem_fused_flex_attention_0", [[1, 2, 8, 4]] * 4, [BF16] * 4)
    assert (flex.flops, flex.bound) == (2 * 2 * 64 * 8, "most")
    assert work_of("triton_tem_fused_mm_3", [[3, 5], [6, 7], [3, 7]], [BF16] * 3).misfit
    fused = work_of("triton_poi_fused_addmm_relu_1", [[3, 7], [7]], [BF16] * 2)
    assert (fused.flops, fused.low_bytes, fused.matrix) == (None, 2 * 28, False)


# --- old traces ------------------------------------------------------------------------------------

OLD = [F32, F32, "GenericList", "GenericList", "GenericList", "Int", "Bool", "Bool", "Bool"]
OLD_DIMS = [[2, 4, 9, 9], [6, 4, 3, 3], *[[]] * 7]


def test_old_convolutions_take_their_output_from_the_backward_node():
    assert work_of("aten::cudnn_convolution", OLD_DIMS, OLD).reason == "extents unknown"
    found = work_of("aten::cudnn_convolution", OLD_DIMS, OLD, given=Given(output=(2, 6, 5, 5)))
    assert (found.flops, found.reason) == (2 * 2 * 25 * 6 * 4 * 9, "")


def test_old_gradients_hold_what_they_multiply():
    grad, x, w = [2, 6, 5, 5], [2, 4, 9, 9], [6, 4, 3, 3]
    one = 2 * 2 * 25 * 6 * 4 * 9
    whole = work_of(
        "aten::cudnn_convolution_backward",
        [x, grad, w, *[[]] * 8],
        [F32] * 3 + OLD[2:] + ["GenericList"],
    )
    assert (whole.flops, whole.nest) == (None, "outer")
    words = ["GenericList", F32, F32, *OLD[2:]]
    to_input = work_of("aten::cudnn_convolution_backward_input", [[], grad, w, *[[]] * 7], words)
    assert to_input.flops == one
    dims = [[], grad, x, *[[]] * 7]
    assert (
        work_of("aten::cudnn_convolution_backward_weight", dims, words).reason == "extents unknown"
    )
    to_weight = work_of(
        "aten::cudnn_convolution_backward_weight", dims, words, given=Given(weight=(6, 4, 3, 3))
    )
    assert to_weight.flops == one


# --- reasons and nests -----------------------------------------------------------------------------


def test_matrix_operators_without_a_figure_say_why():
    engine = own_engine()
    arguments = {"aten::mm": 2, "aten::convolution": 9, "aten::_cudnn_rnn": 16}
    for name, count in arguments.items():
        found = engine.work(name, "", "")
        assert (found.flops, found.matrix, found.reason) == (None, True, "no shapes")
        nested = engine.work(name, json.dumps([[]] * count), json.dumps([""] * count))
        assert nested.reason == "no shapes"  # jagged tensors
    assert engine.work("aten::slow_conv_of_tomorrow", "[[3]]", '["float"]').reason == "no formula"
    assert (
        work_of("aten::_sparse_mm", [[3, 3], [3, 3]], [F32] * 2).reason
        == "number of non-zeros unknown"
    )
    assert work_of("aten::mm", [[3, 5]], [F32]).reason == "formula does not fit"
    assert work_of("aten::relu", [], []).reason == ""


@pytest.mark.parametrize(
    "name", ["AddmmBackward0", "autograd::engine::evaluate_function: ConvolutionBackward0"]
)
def test_nodes_of_autograd_have_no_work_of_their_own(name):
    found = work_of(name, [[3, 5]], [F32])
    assert (found.flops, found.low_bytes, found.matrix, found.nest) == (None, None, False, "outer")


@pytest.mark.parametrize(
    "name", ["aten::einsum", "aten::bilinear", "aten::lstm", "aten::tensordot"]
)
def test_outer_operators_leave_the_work_to_those_inside(name):
    found = work_of(name, [[3, 5], [5, 7]], [F32] * 2)
    assert (found.flops, found.reason, found.matrix, found.nest) == (None, "", True, "outer")


def test_an_unknown_type_leaves_the_operations():
    found = work_of("aten::mm", [[3, 5], [5, 7]], ["octonion", "octonion"])
    assert (found.flops, found.low_bytes, found.dtype) == (210, None, None)


# --- bytes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dims", "kinds", "concrete", "moved"),
    [
        ("add", [[4, 6], [6], []], [BF16, F32, NUMBER], None, 2 * 24 + 4 * 6 + 4 * 24),
        ("add", [[4, 6], [4, 6], []], [BF16, "c10::Half", NUMBER], None, 2 * 48 + 4 * 24),
        ("mul", [[8], []], [BF16, F32], None, 2 * 8 * 2),  # without extents: does not raise the type
        ("mul", [[8], []], [I32, "double"], None, 8 * 4 * 2),  # x 2.5 is fp32
        ("mul", [[8], []], [I32, NUMBER], ["", "2.5"], 8 * 4 * 2),
        ("mul", [[8], []], ["long int", "double"], None, 8 * 8 + 4 * 8),
        ("div", [[8], [8]], ["long int", "long int"], None, 2 * 64 + 4 * 8),
        ("sqrt", [[8]], ["signed char"], None, 8 + 32),
        ("add", [[8], [8], [], [8]], [F32, F32, NUMBER, "double"], None, 64 + 64),  # out=
        ("relu", [[8], [8]], [F32, F32], None, 64),  # out=
        ("lt", [[8], [8]], [F32, F32], None, 64 + 8),
        ("add_", [[8], [8], []], [BF16, F32, NUMBER], None, 16 + 32 + 16),
        ("where", [[8], [8], []], ["bool", BF16, BF16], None, 8 + 16 + 16),
        ("linalg_vector_norm", [[4, 6], [], [], [], []], [F32, NUMBER, "", NUMBER, ""], None, 96),
        ("cumsum", [[8], [], []], [I32, NUMBER, ""], None, 32 + 64),
        ("_to_copy", [[8], [], []], ["long int", NUMBER, ""], ["", "15", ""], 64 + 16),
        ("embedding", [[1000, 16], [2, 3]], [F32, "long int"], None, 48 + 6 * 64 + 64),
        ("embedding", [[1000, 16], [0]], [F32, "long int"], None, 0),
        ("embedding_dense_backward", [[6, 16], [6]], [F32, "long int"], None, 6 * 64 + 48 + 64),
        ("relu_", [[8]], ["Int"], None, None),
        ("cat", [[[2, 3], [2, 3]], []], ["TensorList", NUMBER], None, None),
        ("mul", [[8], [8]], [F32, "octonion"], None, 32),
        ("add", [[8], [8], []], ["octonion", "octonion", NUMBER], None, None),
    ],
)  # fmt: skip
def test_least_bytes(name, dims, kinds, concrete, moved):
    assert work_of(f"aten::{name}", dims, kinds, concrete).low_bytes == moved


def test_an_expanded_operand_is_read_once():
    found = work_of(
        "aten::add", [[8, 4], [8, 4], []], [F32, F32, NUMBER], strides=[[4, 1], [0, 1], []]
    )
    assert found.low_bytes == 4 * (32 + 4 + 32)
