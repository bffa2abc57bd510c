"""`--provider` and `--ort-optimization`: what they mean, what is wrong, and which backend they want."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness import scans
from profharness.cli import Rest
from profharness.cli.run import build_request
from profharness.errors import UsageError
from profharness.node.probe import Environment
from profharness.options import providers
from profharness.options.settings import COMMAND_LINE, from_mapping
from profharness.workers.standing_server import Offer

HERE = Environment(cpus_allowed=(0, 1))


def settings(**asked: object) -> dict[str, object]:
    """What the first worker of a scan is told."""
    scan = scans.create(from_mapping(asked, COMMAND_LINE), HERE)
    spec = scan.server(scan.backends[0])
    worker = spec.worker if spec is not None else scan.workload(scan.backends[0])
    assert worker is not None
    return dict(worker.settings)


@given(
    st.sampled_from(["migraphx", "tensorrt"]),
    st.dictionaries(
        st.from_regex(r"[a-z0-9_]{1,12}", fullmatch=True),
        st.from_regex(r"[A-Za-z0-9_./:=-]{0,12}", fullmatch=True),
        max_size=4,
    ),
)
def test_a_provider_is_read_as_it_was_written(name: str, options: dict[str, str]) -> None:
    begin = "migraphx_" if name == "migraphx" else "trt_"
    options = {begin + key: value for key, value in options.items()}
    text = name + (":" + ",".join(f"{k}={v}" for k, v in options.items()) if options else "")
    assert providers.parse(text) == providers.Provider(name, options)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"provider": ("migrphx",)}, "no provider 'migrphx' did you mean migraphx? known"),
        ({"provider": ("MIGraphX",)}, "did you mean migraphx?"),
        ({"provider": ("gpu",)}, "no provider 'gpu' known providers: migraphx"),
        ({"provider": ("cpu,cuda",)}, "names several commas part the options of one provider"),
        ({"provider": ("migraphx:fp16",)}, "'fp16' of 'migraphx:fp16' is not key=value"),
        ({"provider": ("migraphx:",)}, "is not key=value"),
        ({"provider": ("migraphx:fp16=1",)}, "did you mean migraphx_fp16_enable?"),
        ({"provider": ("tensorrt:fp16_enable=1",)}, "did you mean trt_fp16_enable?"),
        ({"provider": ("cpu:threads=2",)}, "the CPU takes none; --threads"),
        ({"provider": ("rocm:device_id=first",)}, "device_id=first is no device"),
        ({"provider": ("cpu", "cpu")}, "cpu is named twice"),
        ({"provider": ("migraphx",), "device": "cpu"}, "--provider migraphx and --device cpu"),
        ({"provider": ("cpu",), "device": "cuda:1"}, "--provider cpu and --device cuda:1"),
        ({"provider": ("cuda:device_id=1",), "device": "cuda:0"}, "name the GPU once"),
        ({"provider": ("cpu",), "backend": "torch"}, "--provider is onnxruntime's"),
        ({"ort_optimization": "off", "backend": "torch"}, "--ort-optimization is onnxruntime's"),
        ({"provider": ("cpu",), "backend": "torch", "via": "triton"}, "--provider is onnx"),
        ({"provider": ("cpu",), "backend": "torch", "streams": "1"}, "--provider is onnx"),
        ({"ort_optimization": "most"}, "is not one of all, extended, basic, off"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_the_way_out(
    asked: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        settings(**asked)
    assert words in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("more", [{}, {"via": "triton"}, {"streams": "1"}])
def test_the_worker_is_told_whole_names_in_the_order_of_the_wish(more: dict[str, object]) -> None:
    told = settings(
        provider=("migraphx:migraphx_fp16_enable=1,migraphx_model_cache_dir=/c", "cpu"),
        ort_optimization="basic",
        allow_fallback=True,
        **more,
    )
    assert told["backend"] == "onnxruntime", "the built-in model goes to the runtime spoken of"
    assert told["providers"] == [
        {
            "name": "MIGraphXExecutionProvider",
            "options": {"migraphx_fp16_enable": "1", "migraphx_model_cache_dir": "/c"},
        },
        {"name": "CPUExecutionProvider", "options": {}},
    ]
    assert (told["optimization"], told["allow_fallback"]) == ("basic", True)


def test_nothing_asked_is_all_optimisation_on_the_best_provider() -> None:
    told = settings(backend="onnxruntime")
    assert (told["providers"], told["optimization"], told["allow_fallback"]) == (None, "all", False)
    assert settings()["backend"] == "torch"


def test_a_scan_file_has_one_provider_or_a_list(tmp_path: Path) -> None:
    for line in ('provider = "rocm"', 'provider = ["rocm"]'):
        (tmp_path / "s.toml").write_text(f'{line}\nort_optimization = "off"\n')
        asked = build_request(str(tmp_path / "s.toml"), {}, Rest((), given=False))
        assert asked.provider == ("rocm",)
    (tmp_path / "s.toml").write_text('provider = "rocm,cpu"\n')
    with pytest.raises(UsageError, match="names several"):
        build_request(str(tmp_path / "s.toml"), {}, Rest((), given=False))


@pytest.mark.parametrize(
    ("offer", "words"),
    [
        ({"provider": ("rcm",)}, "did you mean rocm?"),
        ({"ort_optimization": "most"}, "is not one of all"),
        ({"provider": ("rocm",), "device": "cpu"}, "--provider rocm and --device cpu"),
        ({"provider": ("rocm",), "backend": "torch"}, "--provider is onnxruntime's"),
    ],
)
def test_a_standing_server_refuses_the_same(
    tmp_path: Path, offer: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        Offer(models=("particlenet",), **offer).settings(tmp_path)  # type: ignore[arg-type]  # cells
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_a_standing_server_is_told_as_a_scan_is(tmp_path: Path) -> None:
    offer = Offer(models=("particlenet",), provider=("rocm",), ort_optimization="extended")
    told = offer.settings(tmp_path)
    assert (told["backend"], told["optimization"]) == ("onnxruntime", "extended")
    assert told["providers"] == [{"name": "ROCMExecutionProvider", "options": {}}]
