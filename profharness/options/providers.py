"""`--provider`: execution providers of onnxruntime by short names, with their options. Pure.

`migraphx:migraphx_fp16_enable=1,migraphx_model_cache_dir=/tmp/c` is one provider with two options;
commas part options only, and several providers are several texts.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from profharness.errors import UsageError
from profharness.options.declared import TextForm

OPTION = "--provider"
Optimization = Literal["all", "extended", "basic", "off"]


class Known(msgspec.Struct, frozen=True):
    """A provider: its full name in onnxruntime, and how the names of its own options begin."""

    full: str
    begins: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


PROVIDERS = {
    "migraphx": Known(
        "MIGraphXExecutionProvider",
        ("migraphx_",),
        (
            "migraphx_fp16_enable",
            "migraphx_bf16_enable",
            "migraphx_fp8_enable",
            "migraphx_int8_enable",
            "migraphx_int8_calibration_table_name",
            "migraphx_exhaustive_tune",
            "migraphx_mem_limit",
            "migraphx_model_cache_dir",
            "migraphx_save_compiled_model",
            "migraphx_save_model_path",
            "migraphx_load_compiled_model",
            "migraphx_load_model_path",
        ),
    ),
    "rocm": Known("ROCMExecutionProvider"),
    "cuda": Known("CUDAExecutionProvider"),
    "tensorrt": Known(
        "TensorrtExecutionProvider",
        ("trt_", "user_compute_stream", "has_user_compute_stream"),
        (
            "trt_fp16_enable",
            "trt_int8_enable",
            "trt_engine_cache_enable",
            "trt_engine_cache_path",
            "trt_timing_cache_enable",
            "trt_timing_cache_path",
            "trt_max_workspace_size",
        ),
    ),
    "cpu": Known("CPUExecutionProvider"),
}
NAMES = tuple(PROVIDERS)
_DEVICE = "device_id"


class Provider(msgspec.Struct, frozen=True):
    """One asked provider: its short name, and its options as onnxruntime takes them."""

    name: str
    options: dict[str, str] = {}

    @property
    def full(self) -> str:
        """Its name in onnxruntime."""
        return PROVIDERS[self.name].full


def parse(text: str) -> Provider:
    """`NAME` or `NAME:key=value,...`. Raises UsageError that says what is wrong with it."""
    name, colon, rest = text.strip().partition(":")
    if "," in name:
        raise UsageError(
            f"{OPTION}: {text!r} names several",
            "commas part the options of one provider; write a further --provider (in a scan file "
            "a list) for each",
        )
    if name not in PROVIDERS:
        # whoever asks for a gpu does not mean cpu, its nearest name
        asked = "" if name.lower() == "gpu" else name.lower()
        near = difflib.get_close_matches(asked, NAMES, 1)
        raise UsageError(
            f"{OPTION}: there is no provider {name!r}",
            (f"did you mean {near[0]}? " if near else "") + f"known providers: {', '.join(NAMES)}",
        )
    options: dict[str, str] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                f"{OPTION}: {part!r} of {text!r} is not key=value",
                "options stand behind a colon and are parted by commas; another provider is a "
                "further --provider",
            )
        _check_key(name, key.strip(), value.strip())
        options[key.strip()] = value.strip()
    return Provider(name, options)


def _check_key(name: str, key: str, value: str) -> None:
    """Names that no version of the provider can have are refused here; the rest is onnxruntime's
    to judge, since each version adds some.
    """
    known = PROVIDERS[name]
    if key == _DEVICE and name != "cpu":
        if not value.isdigit():
            raise UsageError(
                f"{OPTION} {name}: {_DEVICE}={value} is no device", "count GPUs from 0"
            )
        return
    if name == "cpu" or (known.begins and not key.startswith(known.begins)):
        near = [one for one in known.examples if key in one] or difflib.get_close_matches(
            key, [*known.examples, _DEVICE], 1, 0.5
        )
        raise UsageError(
            f"{OPTION} {name}: it has no option {key!r}",
            "the CPU takes none; --threads sets its threads"
            if name == "cpu"
            else f"its options begin with {known.begins[0]}"
            + (f"; did you mean {near[0]}?" if near else ""),
        )


def check(texts: Sequence[str]) -> None:
    """Raises UsageError for a text that is no provider, and for one that is named twice."""
    names = [parse(text).name for text in texts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{OPTION}: {twice} is named twice", "name each provider once")


def check_optimization(level: str) -> None:
    """Raises UsageError for what is no level."""
    if level not in get_args(Optimization):
        raise UsageError(
            f"--ort-optimization: {level!r} is not one of {', '.join(get_args(Optimization))}",
            "all is the default",
        )


def contradiction(texts: Sequence[str], device: str) -> tuple[str, str] | None:
    """Why these providers and `--device` cannot both be meant, and the way out; None where they
    can.
    """
    asked = [parse(text) for text in texts]
    gpus = [provider for provider in asked if provider.name != "cpu"]
    devices = device.split(",")
    if gpus and devices == ["cpu"]:
        return f"{OPTION} {gpus[0].name} and --device cpu", "leave one of them out"
    if asked and not gpus and devices not in (["auto"], ["cpu"]):
        return f"{OPTION} cpu and --device {device}", "leave one of them out"
    numbers = {one.partition(":")[2] for one in devices if ":" in one}
    named = {provider.options[_DEVICE] for provider in gpus if _DEVICE in provider.options}
    if numbers and named and numbers != named:
        return (
            f"{OPTION}: {_DEVICE}={', '.join(sorted(named))} and --device {device}",
            "name the GPU once",
        )
    return None


def as_settings(texts: Sequence[str]) -> list[dict[str, object]] | None:
    """As the workers' spec holds them; None where none is asked for."""
    asked = [parse(text) for text in texts]
    return [{"name": one.full, "options": one.options} for one in asked] or None


def _listed(value: object, _named: str) -> object:
    return (value,) if isinstance(value, str) else value


TEXT = TextForm(_listed)
"""One provider of a scan file may stand without a list around it."""
