"""Execution providers of onnxruntime: which ones a spec asks for, which of them are there, and what
their options and caches are called. Imports no framework.

Names of options: microsoft/onnxruntime, core/providers/migraphx/migraphx_execution_provider_info.h,
and the pages of the execution providers on onnxruntime.ai.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from profharness_workloads.shared.protocol import MISSING, Provider, Refusal, Spec

CPU = "CPUExecutionProvider"
MIGRAPHX = "MIGraphXExecutionProvider"
ROCM = "ROCMExecutionProvider"
CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
PREFERRED = (MIGRAPHX, ROCM, CUDA)  # the best that is there, where nothing is asked for
GPUS = (*PREFERRED, TENSORRT)
COMPILING = (MIGRAPHX, TENSORRT)  # the first call of a shape compiles
CACHE_OPTIONS = (
    "migraphx_model_cache_dir",
    "migraphx_save_model_path",
    "trt_engine_cache_path",
    "trt_timing_cache_path",
)
PACKAGES = {
    MIGRAPHX: "onnxruntime-migraphx",
    ROCM: "onnxruntime-rocm, up to 1.22 (newer ones have MIGraphX only)",
    CUDA: "onnxruntime-gpu",
    TENSORRT: "onnxruntime-gpu and TensorRT's libraries",
}
VERSIONS = {
    "migraphx_save_compiled_model": "is of onnxruntime 1.19 to 1.22",
    "migraphx_save_model_path": "is of onnxruntime 1.19 to 1.22",
    "migraphx_load_compiled_model": "is of onnxruntime 1.19 to 1.22",
    "migraphx_load_model_path": "is of onnxruntime 1.19 to 1.22",
    "migraphx_exhaustive_tune": "came with onnxruntime 1.20",
    "migraphx_bf16_enable": "came with onnxruntime 1.23",
    "migraphx_model_cache_dir": "came with onnxruntime 1.23",
}
"""Where an option of MIGraphX is known; from 1.23 on a cache folder takes the place of saving."""

VARIABLES = {
    MIGRAPHX: tuple(
        "ORT_MIGRAPHX_%s" % name
        for name in (
            "FP16_ENABLE",
            "BF16_ENABLE",
            "FP8_ENABLE",
            "INT8_ENABLE",
            "EXHAUSTIVE_TUNE",
            "MODEL_CACHE_PATH",
            "CACHE_PATH",
            "SAVE_COMPILED_MODEL",
            "SAVE_COMPILE_PATH",
            "LOAD_COMPILED_MODEL",
            "LOAD_COMPILE_PATH",
            "MAX_DYNAMIC_BATCH",
        )
    ),
    TENSORRT: tuple(
        "ORT_TENSORRT_%s" % name
        for name in ("FP16_ENABLE", "INT8_ENABLE", "ENGINE_CACHE_ENABLE", "CACHE_PATH")
    ),
}
"""Variables that take the place of a provider's options, whatever these say
(core/providers/migraphx/migraphx_execution_provider.h).
"""

_WRONG_OPTION = re.compile(r"(?:Invalid \w+ EP option|Unknown provider option)\W*(\w+)")


class Choice(NamedTuple):
    """The providers to ask for, best first, with the GPU's index in their options. `missing` says
    which wanted ones this onnxruntime does not have, "" where all are there.
    """

    providers: List[Provider]
    gpu: int
    missing: str = ""


def chosen(available: Sequence[str], spec: Spec, local_rank: int) -> Choice:
    """What to ask of an onnxruntime that has `available`.

    Without asked ones: MIGraphX, ROCm, CUDA, CPU in this order; the CPU stays last for operators
    that the others lack. Raises Refusal (MISSING) for what is not there, unless the spec allows a
    fallback.
    """
    kind, _, index = spec.device.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (index and not index.isdigit()):
        raise Refusal("no device %r" % spec.device, "use auto, cpu, cuda or cuda:INDEX")
    where = int(index) if index else _turn(local_rank, os.environ)
    if spec.providers:
        return _asked(available, spec, where)
    gpus = [name for name in PREFERRED if name in available]
    if kind == "cpu" or (kind == "auto" and not gpus):
        return Choice([Provider(CPU)], 0)
    if gpus:
        return Choice([_placed(Provider(gpus[0]), where), Provider(CPU)], where)
    message = "--device %s: this onnxruntime has no GPU provider (it has %s)" % (
        spec.device,
        ", ".join(available),
    )
    if spec.allow_fallback:
        return Choice([Provider(CPU)], 0, message)
    raise Refusal(
        message,
        "install onnxruntime-migraphx, onnxruntime-rocm or onnxruntime-gpu, or use --device cpu",
        MISSING,
    )


def _asked(available: Sequence[str], spec: Spec, where: int) -> Choice:
    asked = spec.providers or ()
    absent = [one.name for one in asked if one.name not in available]
    there = [_placed(one, where) for one in asked if one.name in available]
    message = "this onnxruntime has no %s (it has %s)" % (", ".join(absent), ", ".join(available))
    if absent and not spec.allow_fallback:
        wanted = [PACKAGES[name] for name in absent if name in PACKAGES]
        raise Refusal(
            message,
            "install %s, or name another --provider" % " and ".join(wanted)
            if wanted
            else "name another --provider",
            MISSING,
        )
    first = next((one for one in there if one.name in GPUS), None)
    return Choice(
        there or [Provider(CPU)],
        0 if first is None else int(first.options["device_id"]),
        message if absent else "",
    )


def _placed(provider: Provider, index: int) -> Provider:
    """With the GPU's index, unless its options name one."""
    if provider.name not in GPUS:
        return provider
    return provider._replace(options={"device_id": str(index), **provider.options})


def _turn(local_rank: int, environ: Mapping[str, str]) -> int:
    """Ranks of a node take its GPUs in turn, among those that the environment leaves visible."""
    for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        if environ.get(name):
            return local_rank % len(environ[name].split(","))
    return local_rank


def visible_devices(available: Sequence[str], index: int) -> List[Dict[str, Any]]:
    """The CPU, and one GPU per provider: onnxruntime itself cannot list or name them."""
    devices: List[Dict[str, Any]] = [{"index": 0, "kind": "cpu", "name": "cpu"}]
    devices += [
        {"index": index, "kind": "cuda" if name in (CUDA, TENSORRT) else "rocm", "name": name}
        for name in GPUS
        if name in available
    ]
    return devices


def cache_places(asked: Sequence[Provider]) -> Tuple[str, ...]:
    """Folders and files that the providers' own options name for what they compile."""
    return tuple(
        one.options[name] for one in asked for name in CACHE_OPTIONS if one.options.get(name)
    )


def variables(names: Sequence[str], environ: Mapping[str, str]) -> str:
    """Those of VARIABLES that are set for these providers, as `NAME=VALUE,...`."""
    return ",".join(
        "%s=%s" % (variable, environ[variable])
        for name in names
        for variable in VARIABLES.get(name, ())
        if environ.get(variable)
    )


def wrong_option(reason: str) -> str:
    """The option that onnxruntime says it does not know, in its message; "" for another message."""
    found = _WRONG_OPTION.search(reason)
    return found.group(1) if found else ""
