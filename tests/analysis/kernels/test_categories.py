from __future__ import annotations

import time
from collections import Counter

import pytest

from profharness import readers
from profharness.analysis.kernels.categories import (
    CATEGORIES,
    function_name,
    kernel_category,
    may_multiply,
    op_category,
)
from profharness.analysis.kernels.hotspots import by_op

ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::{}, "
    "std::array<char*, 2ul> >(int, at::native::{})"
)
KERNELS = {
    "Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256_MI16x16x1": "gemm",
    "void "
    "cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1>(cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1::Params)": "gemm",
    "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_TNT": "gemm",
    "void gemv2T_kernel_val<int, int, float>(float)": "gemm",
    "triton_tem_fused_mm_3": "gemm",
    "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x256x32": "conv",
    "void "
    "cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x256_32x4_nhwc_align4>(int)": "conv",
    "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32": "conv",
    "miopenGcnAsmConv1x1U": "conv",
    "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3": "conv",
    "attn_fwd": "attention",
    "_ZN5aiter24fmha_fwd_hd128_bf16_causal_rtneE": "attention",
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
    "cutlass::bfloat16_t>>(flash::Flash_fwd_params)": "attention",
    "MIOpenBatchNormBwdSpatial": "normalisation",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, "
    "float>(int, float)": "normalisation",
    "void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<c10::BFloat16, "
    "float>(c10::BFloat16*)": "normalisation",
    "_ZN5aiter24add_rmsnorm_quant_kernelIDF16b": "normalisation",
    ELEMENTWISE.format("CUDAFunctor_add<float>", "CUDAFunctor_add<float>"): "elementwise",
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)": "elementwise",
    "SubTensorOpWithScalar1d": "elementwise",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
    "at::native::sum_functor<float> > >(at::native::ReduceOp)": "reduction",
    "_sum_bitmatrix_rows": "reduction",
    "void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<1>, "
    "at::native::LpNormFunctor<float, (at::native::NormType)1, float, 1, 1, 0>, float>(int)": "reduction",
    "__amd_rocclr_copyBuffer": "copy",
    "__amd_rocclr_fillBufferAligned": "copy",
    "MEMORY_COPY_DEVICE_TO_HOST": "copy",
    "batched_transpose_32x32_half": "copy",
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, "
    "1>(float*)": "copy",
    "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)": "communication",
    "rcclGenericKernel": "communication",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)": "communication",
    "void ck_tile::kentry<1, ck_tile::BatchedGemmKernel<ck_tile::TileGemmShape<"
    "ck_tile::sequence<256, 256, 64> > > >(int)": "gemm",
    "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassEEEEEvv": "normalisation",
    "_ZN7ck_tile6kentryILi2ENS_13FmhaFwdKernelINS_9BlockGemmEEEEEvv": "attention",
    "void ck_tile::kentry<1, ck_tile::GroupedConvolutionForwardKernel<ck_tile::GemmPipeline> >()": "conv",
    "void ck_tile::kentry<1, ck_tile::MoeSortingKernel<int> >()": "other",
    "_ZN2ck27kernel_gemm_xdl_cshuffle_v3INS_9ThingumbobEEEvv": "gemm",
    "ck::kernel_batched_gemm_softmax_gemm_xdl_cshuffle_v1<float>(int)": "attention",
    "Custom_Cijk_Alik_Bljk_HHS_BH_MT256x256x64": "gemm",
    "batched_matrix_multiplication_matrix_core_128x128x16<128u>(unsigned int)": "gemm",
    "void mul_mat_vec_q<(ggml_type)13, 1, false, false>(void const*)": "gemm",
    "void mul_mat_q_stream_k_fixup<(ggml_type)12>(float*)": "gemm",
    "void dequantize_mul_mat_vec<32, 1>(void const*)": "gemm",
    "void l2_norm_f32<32>(float const*)": "normalisation",
    "void k_get_rows_float<float, float>(float const*)": "copy",
    "void concat_cont<unsigned int, 1>(unsigned int const*)": "copy",
    "void k_bin_bcast<&(op_add(float, float)), float>(float const*)": "elementwise",
    "void unary_gated_op_kernel<&(op_silu(float)), float>(float const*)": "elementwise",
    "void gated_delta_net_cuda<128, false, false>(float const*)": "other",
    "bwd_kernel_fuse": "attention",
    "bwd_kernel_dk_dv": "attention",
    "_fwd_grouped_kernel_stage1": "attention",
    "_ZN5aiter44PA_A16W8_BLK256_1TG_4W_16mx1_64nx4_MTP_PS_PBE": "attention",
    "_ZN5aiter41mla_dec_stage1_bf16_a16w16_subQ128_mqa128E": "attention",
    "_ZN5aiter47fmoe_bf16_blockscaleFp8_g1u1_vs_gelu_1tg_32x128E": "gemm",
    "_ZN5aiter42I8gemm_bf16_perTokenI8_BpreShuffle_112x256E": "gemm",
    "void aiter::kn_entry_1c_sbhd_cached<float>(float*)": "elementwise",
    "fused_moe_kernel": "gemm",
    "bmm_Bfloat16_E2m1E2m1_Fp32_t128x16x512u2_s3_et128x16_m128x16x64_rM_TN_dynBatch_sm100f": "gemm",
    "bmm_E2m1_E2m1E2m1_Fp32_t128x8x512_et128x8_swiGlu_clmp_dynBatch_sm100a": "gemm",
    "void marlin_moe_wna16::Marlin<__nv_bfloat16, 4, 128>(int4 const*)": "gemm",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::"
    "GroupProblemShape<cute::tuple<int, int, int> > > >(Params)": "gemm",
    "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::"
    "CollectiveMainloopFwdSm90<2> > > >(flash::Params)": "attention",
    "void moe_align_block_size_kernel<int>(int*)": "other",
    "miopenGcnAsmBNBwdTrainSpatial": "normalisation",
    "MIOpenActiveFwd2DLite": "elementwise",
    "void epilogue::impl::globalKernel<float, true>(int, float*, cublasLtEpilogue_t)": "gemm",
    "void split_embedding_codegen_forward_unweighted_kernel<float>(float*)": "other",
    "multiply_kernel(float*, float const*, float const*, int, int)": "other",
    "void cub::DeviceRadixSortOnesweepKernel<int>(int*)": "other",
    "void at::cuda::(anonymous namespace)::spin_kernel(long)": "other",
}


@pytest.mark.parametrize(("name", "category"), KERNELS.items(), ids=lambda text: text[:40])
def test_kernels_by_what_they_do(name, category):
    assert kernel_category(name) == category


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("multiply_kernel(float*, float const*, float const*, int, int)", True),
        ("my_fused_layer", True),
        ("fused_moe_kernel", False),  # it is known to multiply
        ("void cub::DeviceRadixSortOnesweepKernel<int>(int*)", False),
        ("void split_embedding_codegen_forward_unweighted_kernel<float>(float*)", False),
        ("void moe_align_block_size_kernel<int>(int*)", False),
        (ELEMENTWISE.format("CUDAFunctor_add<float>", "CUDAFunctor_add<float>"), False),
    ],
)
def test_kernels_without_a_category_may_multiply(name, may):
    assert may_multiply(name) is may


def test_a_copy_run_by_an_elementwise_loop_is_a_copy():
    # substring rules in order put elementwise before copy and call these elementwise
    for functor in (
        "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}",
        "FillFunctor<float>",
        "bfloat16_copy_kernel_cuda(int)",
    ):
        assert kernel_category(ELEMENTWISE.format(functor, functor)) == "copy"


def test_sum_inside_other_words_or_arguments_is_no_reduction():
    # substring rules call anything with "sum" in its name a reduction
    assert (
        kernel_category(ELEMENTWISE.format("cumsum_consumer<float>", "cumsum_consumer<float>"))
        == "elementwise"
    )
    assert kernel_category("consumer_loop") == "other"
    assert kernel_category("fbgemm_gpu::permute_2D_data_kernel") != "gemm"


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("triton_poi_fused_addmm_gelu_view_15", "elementwise"),
        (
            "triton_red_fused__unsafe_view_add_addmm_mul_native_layer_norm_split_unsqueeze_19",
            "normalisation",
        ),
        ("triton_per_fused__to_copy_add_addmm_mean_mul_transpose_view_8", "reduction"),
        ("triton__0d1d2d3d", "other"),
    ],
)
def test_fused_triton_kernels_are_judged_by_their_schedule_not_their_neighbours(name, category):
    assert kernel_category(name) == category


@pytest.mark.parametrize(
    ("name", "own"),
    [
        (
            "void at::native::(anonymous namespace)::f<int, (lambda()#1)>(int, float const*)",
            "at::native::f",
        ),
        (
            (
                "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, "
                "float>(cublasGemvParams)"
            ),
            "internal::gemvx::kernel",
        ),
        ("kernel_name.kd", "kernel_name"),
        ("attn_fwd", "attn_fwd"),
        (
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256EEEvPT0_",
            "aiter::add_rmsnorm_quant_kernel",
        ),
        ("", ""),
    ],
)
def test_function_name(name, own):
    assert function_name(name) == own


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("aten::mm", "gemm"),
        ("aten::addmm", "gemm"),
        ("aten::linear", "gemm"),
        ("MatMul", "gemm"),
        ("AddmmBackward0", "gemm"),
        ("aten::convolution_backward", "conv"),
        ("Conv", "conv"),
        ("autograd::engine::evaluate_function: ConvolutionBackward0", "conv"),
        ("aten::_scaled_dot_product_flash_attention", "attention"),
        ("aten::native_layer_norm", "normalisation"),
        ("BatchNormalization", "normalisation"),
        ("aten::_softmax", "normalisation"),
        ("aten::sum", "reduction"),
        ("aten::linalg_vector_norm", "reduction"),
        ("aten::linalg_norm", "reduction"),
        ("aten::norm", "reduction"),
        ("aten::_foreach_norm", "reduction"),
        ("LinalgVectorNormBackward0", "elementwise"),
        ("aten::native_batch_norm", "normalisation"),
        ("aten::rms_norm", "normalisation"),
        ("aten::_weight_norm", "normalisation"),
        ("NativeLayerNormBackward0", "normalisation"),
        ("ReduceMean", "reduction"),
        ("aten::copy_", "copy"),
        ("aten::cat", "copy"),
        ("Concat", "copy"),
        ("aten::mul", "elementwise"),
        ("aten::relu_", "elementwise"),
        ("Relu", "elementwise"),
        ("c10d::allreduce_", "communication"),
        ("aten::matmul", "gemm"),
        ("aten::topk", "other"),
    ],
)
def test_operators_by_what_they_do(name, category):
    assert op_category(name) == category
    assert category in CATEGORIES


@pytest.mark.parametrize(
    ("file", "at_most"),
    [
        ("rocm/rocprofv3/rocpd/mi300x_ck_gemm_28_results.db.gz", 0.0),
        ("rocm/rocprofv3/rocpd/mi300x_batched_gemm_16_results.db.gz", 0.0),
        ("rocm/rocprofv3/csv/gfx1151_decode_kernel_trace.csv", 0.05),
        ("kineto/mi3xx_rocprofv3_aorta_908_results.json.gz", 0.002),
    ],
)
def test_little_kernel_time_of_recorded_files_has_no_category(shared, file, at_most):
    kernels = readers.read(shared / "fixtures" / file)
    times = Counter()
    for code, dur_ns in zip(
        kernels.kernels.name.tolist(), kernels.kernels.dur_ns.tolist(), strict=True
    ):
        times[kernel_category(kernels.strings[code])] += dur_ns
    assert times["other"] <= at_most * times.total()


def test_norms_of_a_recorded_file_are_reductions(shared):
    trace = readers.read(shared / "fixtures/kineto/sampled_rank0of128.json.gz")
    rows = {row.name: row.category for row in by_op(trace).rows}
    assert rows["aten::linalg_vector_norm"] == rows["aten::linalg_norm"] == "reduction"
    assert rows["aten::layer_norm"] == "normalisation"


@pytest.mark.parametrize(
    "part", ["cutlass::Kernel<", "ck_tile::kentry<", "elementwise<", "multi_tensor_apply<"]
)
def test_a_long_name_takes_time_in_proportion_to_its_length(part: str) -> None:
    """It took time with the square: ten seconds for a name of this length."""
    began = time.process_time()
    kernel_category(part * 8_000)
    assert time.process_time() - began < 1
