"""What kind of work a kernel or an operator does, by rules that are data: the first one that
matches wins.

Most rules look at a kernel's own function name, without return type, template arguments and
parameters: a `sum` among the template arguments of an elementwise kernel does not make it a
reduction. Frameworks that put the operation into a template argument (torch's elementwise kernels,
everything that ck_tile starts by its `kentry`) have rules for the whole name. Triton kernels fused
by torch's inductor are judged by their scheduling prefix, since the rest of their name lists every
operator that was near (`triton_red_fused_add_addmm_...` multiplies no matrix).

A step that a library runs for a product or convolution in a kernel of its own (the sum over a split
K, the epilogue of cublasLt) has the category of the product. Quantised products are products. A
gather or scatter of whole rows is a copy. Sorting, scans, embedding bags and routing have no
category here and stay `other`: a wrong word misleads more than none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from profharness.analysis.kernels.mangled import readable
from profharness.trace.columns.keys import coded
from profharness.trace.model import I64, Kernels, Strings

Category = Literal[
    "gemm",
    "conv",
    "attention",
    "normalisation",
    "elementwise",
    "reduction",
    "copy",
    "communication",
    "other",
]
CATEGORIES: tuple[Category, ...] = (
    "gemm",
    "conv",
    "attention",
    "normalisation",
    "elementwise",
    "reduction",
    "copy",
    "communication",
    "other",
)

_NAMES = 1 << 17
"""Names that are judged once, as many as a file of a few MiB may give its kernels: several figures
ask for the category of each name in turn, so that a store that is too small never holds the next.
"""
# pairs with no bracket inside, one after the other, and runs of openings or of ends, each at once;
# the head of an arrow is no bracket
_BRACKETS = re.compile(r"(?P<pairs>(?:<[^<>()]*(?<!-)>)+)|[<(]+|(?:\)|(?<!-)>)+")


@dataclass(frozen=True)
class Rule:
    """`pattern` is searched in the function name alone, or in the whole name where `whole`; there
    only behind the first that fits `behind`. Both are compiled once a name gets that far.
    """

    category: Category
    pattern: str
    whole: bool = False
    behind: str = ""


def _rule(category: Category, pattern: str, *, whole: bool = False, behind: str = "") -> Rule:
    return Rule(category, pattern, whole, behind)


_KENTRY = r"ck_tile::kentry<"
_OF_CUTLASS = r"cutlass::(?:device_kernel|Kernel2?)<"
KERNEL_RULES: tuple[Rule, ...] = (
    _rule(
        "communication",
        r"^_?(nccl|rccl|msccl)|ncclDevKernel|ncclKernel|[Aa]ll_?[Rr]educe|[Aa]ll_?[Gg]ather"
        r"|[Rr]educe_?[Ss]catter|cross_device_reduce|nvshmem|rocshmem|deep_ep",
    ),
    # torch inductor: templates first, then pointwise, then reductions, split by what they normalise
    _rule("attention", r"^triton_tem_.*(attention|flex)"),
    _rule("conv", r"^triton_tem_.*conv"),
    _rule("gemm", r"^triton_(tem_|mm|bmm)"),
    _rule("elementwise", r"^triton_(poi|for)_"),
    _rule("normalisation", r"^triton_(red|per|split_scan)_.*(norm|softmax|rsqrt)"),
    _rule("reduction", r"^triton_(red|per|split_scan)_"),
    _rule("other", r"^triton__?\d"),
    # ck_tile: one entry for all kernels, which names the one that it runs first
    _rule("attention", r"(?<!\w)Fmha\w*\b", whole=True, behind=_KENTRY),
    _rule("conv", r"(?<!\w)(\w*Convolution\w*Kernel|ImageToColumn)\b", whole=True, behind=_KENTRY),
    _rule("normalisation", r"(?<!\w)\w*(Rms|Layer)norm2d\w*\b", whole=True, behind=_KENTRY),
    _rule("gemm", r"(?<!\w)\w*(Gemm|Flatmm|StreamK)\w*Kernel\b", whole=True, behind=_KENTRY),
    _rule("elementwise", r"(?<!\w)(ElementWise\w*|\w*Smoothquant)\b", whole=True, behind=_KENTRY),
    _rule("copy", r"(?<!\w)(BatchedTranspose|GenericPermute)\w*\b", whole=True, behind=_KENTRY),
    _rule("reduction", r"(?<!\w)Reduce(Kernel)?\b", whole=True, behind=_KENTRY),
    _rule("other", r"(^|::)kentry$"),
    _rule(
        "copy",
        r"reshape_and_cache|concat_and_cache|copy_blocks|swap_blocks|store_kv_?cache|"
        r"store_mla_kv_cache",
    ),
    _rule(
        "attention",
        r"attn_|_attn|[Aa]ttention|flash_(fwd|bwd)|fmha|Fmha|FMHA|_mha_|mla_(fwd|decode|prefill)|"
        r"flashinfer.*(Decode|Prefill)|gemm_softmax_gemm",
    ),
    # AOTriton's backward kernels, decoding in Triton by vllm and sglang, aiter's own kernels
    _rule(
        "attention",
        r"^_?bwd_kernel_(dk_?dv|dq|split_d|fuse$|(fused_(atomic_)?)?(non)?causal)"
        r"|^_?bwd_(pre|post)process(_varlen|_do_o_dot)?$"
        r"|^_fwd_(grouped_)?kernel_stage[12]|^reduce_segments$|^la_persistent"
        r"|(^|::)(pa_(bf16|fp16|fp8|decode|prefill|ps)|PA_A\d+W\d+)_|(^|::)_?mla_(a\d+w\d+|dec)_"
        r"|kn_mla_reduce",
    ),
    _rule(
        "copy",
        r"^__amd_rocclr_(copy|fill)|^MEMORY_COPY|^(hip|cuda)?[Mm]em(cpy|set)|[Ff]ill_?[Bb]uffer|"
        r"recat_copy|(^|_)fill_kernel",
    ),
    _rule("copy", r"Kokkos::Impl::ViewFill<", whole=True),
    _rule(
        "normalisation",
        r"batch_?norm|BatchNorm|batchnorm|cudnn::bn_|^bn_(fw|bw)|[Ll]ayer_?[Nn]orm|[Rr]ms_?[Nn]orm"
        r"|[Gg]roup_?[Nn]orm|[Ii]nstance_?[Nn]orm|RowwiseMoments|[Ss]oft_?[Mm]ax|GammaBetaBackward"
        r"|Compute(Part)?GradGammaBeta|kernel_normalization|AsmBN(Fwd|Bwd)|MIOpenLRN"
        r"|^(l2_)?norm_(back_)?f32|^l2norm_(fwd|bwd)_kernel",
    ),
    _rule(
        "conv",
        r"[Cc]onv(olve|olution)?(_|[A-Z0-9]|\b)|scudnn|winograd|Winograd|igemm_(fwd|bwd|wrw)|"
        r"implicit_gemm|implicit_convolve"
        r"|[fd]prop|dgrad|wgrad|bwd_weight|[Ii]m2[Cc]ol|im2d2col|Im2d2Col|[Cc]ol2[Ii]m|"
        r"cask_cudnn|MIOpenConv|3dconv",
    ),
    _rule(
        "conv",
        r"ImplicitGemmConvolution|kernel_grouped_conv|"
        r"cutlass_cudnn\w*::reduction::kernel::ReduceSplitK",
        whole=True,
    ),
    _rule("conv", r"[fd]prop|dgrad|wgrad", whole=True, behind="cutlass"),
    _rule(
        "gemm",
        r"^(Custom_)?Cijk_|(?<!fb)[Gg]emm(?!_gpu)|GEMM|gemv|GEMV|nvjet|matmul|MatMul|wvSplitK|"
        r"LLMM1|splitKreduce|splitk|SplitK|cublas",
    ),
    # llama.cpp's products, quantised or not; fused experts and products of four bits, whose names
    # begin with the types (bmm_Bfloat16_E2m1E2m1_...); BLAS beyond the general product
    _rule(
        "gemm",
        r"(^|_)mul_mat(_|$)|[Mm]atrix_?[Mm]ul|[Ff]latmm|kernel_contraction|(^|::)fmoe_"
        r"|^_?fused_moe_(persistent_)?(silu_)?kernel|(^|_)t?gmm(_(non_)?persistent)?(_kernel)?$"
        r"|(^|::)_?bmm_|(^|::)(mfma_)?moe_?(stage)?[12](_|$)|ck_moe_stage|[Mm]arlin(_|$|[^\w])"
        r"|rocblas_\w*(syrk|herk|symm|trmm)",
    ),
    # CUTLASS has one entry for all kernels of its third version
    _rule("attention", r"flash|[Ff]mha|FMHA", whole=True, behind=_OF_CUTLASS),
    _rule("gemm", r"[Gg]emm", whole=True, behind=_OF_CUTLASS),
    _rule(
        "gemm",
        r"cutlass_?\w*(gemm|tensorop)|cutlass\w*::reduction::kernel::ReduceSplitK"
        r"|^void epilogue::impl::globalKernel<.*cublasLtEpilogue",
        whole=True,
    ),
    # torch puts the operation of its loops into the template arguments
    _rule(
        "copy",
        r"direct_copy_kernel|copy_device_to_device|(float|bfloat16|half|float8\w*|"
        r"e4m3\w*|e5m2\w*)_?copy_kernel|FillFunctor"
        r"|CopyFunctor<|_to_float_gpu|_float_to_",
        whole=True,
        behind="elementwise",
    ),
    _rule("copy", r"CopyFunctor", whole=True, behind="multi_tensor_apply"),
    _rule("reduction", r"(Lp|L2)NormFunctor", whole=True, behind="multi_tensor_apply"),
    _rule("elementwise", r"elementwise|multi_tensor_apply"),
    _rule(
        "reduction",
        r"[Rr]educe|_reduction|Reduction|(?<![A-Za-z])sum(?![a-z])|arg_?(max|min)|"
        r"[Cc]riterion_updateOutput|[Nn]orm[12]?Kernel|lpnorm_cleanup"
        r"|DotKernel|dot_kernel|(max|avg|average)_pool|Pooling|[Cc]ount_?[Nn]onzero",
    ),
    _rule(
        "copy",
        r"[Tt]ranspose|CatArray|nchwTo|nhwcTo|NCHW2|NHWC2|(?<![A-Za-z])copy(?![a-z])|"
        r"Copy(?![a-z])|[Mm]emset|[Mm]em_?[Cc]py|permute",
    ),
    # rows by an index, concatenation and casts: torch's, llama.cpp's, MIOpen's, aiter's
    _rule(
        "copy",
        r"indexSelect(Large|Small)Index|vectorized_gather|(^|_)[gs]et_rows(_|$)|^concat_"
        r"|^cpy_|^convert_unary|^Cat\d+FwdPacked|^dtype_convert_",
    ),
    _rule(
        "elementwise",
        r"TensorOp|[Aa]ct(ivation)?_and_mul|[Aa]ctivation|[Rr]otary|[Rr]ope(?![a-z])|Adam|adam|"
        r"sgd|[Dd]ropout"
        r"|[Ss]calePackedTensor|OpTensor|Op[1-5]dTensor|[Qq]uant|add_?bias|bias_?add|gelu|silu|"
        r"relu|sigmoid|clamp_|arange",
    ),
    # llama.cpp, Julia, MIOpen's and cuDNN's cells of RNNs, aiter's operators and rotary positions
    _rule(
        "elementwise",
        r"^unary_(gated_)?op_kernel|^k_bin_bcast|^scale_f32|^gpu_(broadcast|map)_kernel"
        r"|^vec(tor)?_?[Aa]dd|^MIOpenActive(Fwd|Bwd)|LSTM(Fwd|Bwd)HidUpdate|elemWiseRNNcell"
        r"|(^|::)operator_(bcast|contiguous|element|tn)\w*_|(^|::)kn_entry_[12]c_"
        r"|^(rocblas_)?(scal|axpy)_kernel",
    ),
)

# of the kernels without a category: what sorts, scans, looks up, routes or waits
_NO_PRODUCT = re.compile(
    r"[Ss]ort|[Ss]can|cub::|rocprim|[Ee]mbedding|[Rr]out(e|ing)|top_?k|TopK|[Nn]onzero|[Ii]ndex|"
    r"[Ii]ndices|indice|[Bb]ucket|[Uu]psample|_align_|[Hh]istogram|[Uu]nique|[Cc]riterion"
    r"|spin_kernel|token_ids|qparam|FP8rowwise|finalize|fft|^triton__?\d"
)
_AUTOGRAD = re.compile(r"^autograd::engine::evaluate_function: ")
OP_RULES: tuple[Rule, ...] = (
    _rule(
        "communication",
        r"^(nccl|rccl|gloo|c10d)(:|_)|record_param_comms|all_?reduce|all_?gather|reduce_scatter|"
        r"all_to_all|[Bb]roadcast_$",
    ),
    _rule("attention", r"attention|Attention|_mha_"),
    # the norm of a tensor is a number, not a normalised tensor; its gradient is a scaled tensor
    _rule(
        "reduction",
        r"^(linalg_(vector_|matrix_)?norm|norm|native_norm|frobenius_norm|norm_except_dim|"
        r"_foreach_norm)$",
    ),
    _rule("elementwise", r"^((Linalg)?Vector|Linalg|Foreach)?NormBackward"),
    _rule(
        "normalisation",
        r"_norm(_|alization|$)|norm_backward|Norm(alization|Backward)|[Ss]oftmax|batch_norm|"
        r"layer_norm|group_norm",
    ),
    _rule("conv", r"[Cc]onv(olution|_?\d|Transpose|Integer|Backward|$|_)"),
    _rule(
        "gemm",
        r"^(add)?b?mm(_|$)|^baddbmm|^addmv|^mv$|^linear(_|$)|[Mm]at_?[Mm]ul|^einsum|_scaled_mm|"
        r"Gemm|^Einsum|^(Add)?B?mmBackward",
    ),
    _rule(
        "copy",
        r"^_?(to|copy|copy_|to_copy|clone|contiguous|cat|stack|fill_|zero_|zeros|ones|full|"
        r"pin_memory)(_|$)|^(Cast|Concat|Transpose"
        r"|Identity|Memcpy\w*|Split|Slice|Pad|Expand|Tile)(_|$|\d)|^Optimizer\.zero_grad",
    ),
    _rule(
        "reduction",
        r"^(sum|mean|amax|amin|max|min|argmax|argmin|prod|any|all|var|std|norm|"
        r"linalg_vector_norm|cumsum|logsumexp|nll_loss\w*"
        r"|cross_entropy_loss|mse_loss|max_pool\w*|avg_pool\w*|adaptive_\w*pool\w*)(_|$)|"
        r"^Reduce[A-Z]|Pool($|_|\d)|^Arg(Max|Min)|^(Sum|Mean)(Backward|$)",
    ),
    _rule(
        "elementwise",
        r"^(add|sub|mul|div|pow|exp|log|sqrt|rsqrt|neg|abs|relu|leaky_relu|gelu|silu|elu|"
        r"sigmoid|tanh|clamp\w*|where|dropout|native_dropout"
        r"|threshold\w*|lerp|addcmul|addcdiv|erf|sin|cos|eq|ne|gt|ge|lt|le|maximum|minimum|"
        r"masked_fill|hardtanh|bitwise\w*|logical\w*|_foreach\w*"
        r"|_fused_adam\w*)(_|$)|^(Add|Sub|Mul|Div|Pow|Exp|Log|Sqrt|Neg|Abs|Relu|LeakyRelu|Gelu|"
        r"Silu|Elu|Sigmoid|Tanh|Clip|Where|Dropout|Erf|Sin|Cos"
        r"|Equal|Greater|Less|Not|And|Or|Max|Min|BiasGelu|FastGelu|QuickGelu)(Backward|$|_|\d)",
    ),
)


def function_name(name: str) -> str:
    """A kernel's own function: `at::native::reduce_kernel` from a demangled signature, a plain name
    as it is.

    Return type, template arguments, parameters and what belongs to an anonymous namespace are left
    out. A mangled name is read as far as its function's own words.
    """
    text = (
        readable(name)
        .replace("(anonymous namespace)::", "")
        .replace("decltype(nullptr)", "nullptr")
        .removesuffix(".kd")
        .removesuffix(" [clone .kd]")
    )
    depth, at = 0, 0
    kept: list[str] = []
    for bracket in _BRACKETS.finditer(text):
        if depth == 0 and bracket.start() > at:
            kept.append(text[at : bracket.start()])
        at = bracket.end()
        if bracket.lastgroup:  # pairs
            continue
        if bracket[0][0] in "<(":
            if bracket[0][0] == "(" and depth == 0 and kept and not kept[-1].endswith(" "):
                break
            depth += len(bracket[0])
        else:
            depth = max(depth - len(bracket[0]), 0)
    else:
        if depth == 0:
            kept.append(text[at:])
    return "".join(kept).strip().rpartition(" ")[2] or name


@lru_cache(_NAMES)
def kernel_category(name: str) -> Category:
    """The category of a device kernel by its recorded name; `other` where no rule fits."""
    return _first(KERNEL_RULES, function_name(name), readable(name))


@lru_cache(_NAMES)
def may_multiply(name: str) -> bool:
    """Whether a kernel that has no category may be a product all the same: nothing in its name says
    that it is none.
    """
    return kernel_category(name) == "other" and not _NO_PRODUCT.search(readable(name))


@lru_cache(_NAMES)
def op_category(name: str) -> Category:
    """The category of a framework operator: `aten::mm`, `AddmmBackward0`, ONNX's `MatMul`."""
    plain = _AUTOGRAD.sub("", name)
    return _first(
        OP_RULES,
        plain.rpartition("::")[2] if plain.startswith(("aten::", "onnx::", "prim::")) else plain,
        plain,
    )


@lru_cache(None)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Kept by the pattern alone: looking it up in Python's own cache takes longer than searching a
    short name, and a file may hold a new name in every record.
    """
    return re.compile(pattern)


def _first(rules: tuple[Rule, ...], function: str, whole: str) -> Category:
    for rule in rules:
        text, start = whole if rule.whole else function, 0
        if rule.behind:
            found = _compiled(rule.behind).search(text)
            if found is None:
                continue
            start = found.end()
        if _compiled(rule.pattern).search(text, start):
            return rule.category
    return "other"


def category_codes(kernels: Kernels, strings: Strings) -> I64:
    """Position in CATEGORIES of each kernel; each distinct name is judged once."""
    used, inverse = coded(kernels.name)
    codes = np.array(
        [CATEGORIES.index(kernel_category(strings[int(code)])) for code in used], np.int64
    )
    return codes[inverse] if len(used) else np.empty(0, np.int64)
