"""Stand-in for onnxruntime with execution providers of GPUs, as far as the workers use it.

Every .onnx file is the same model, y = 2 x with x [batch, 4] of six nodes; one whose text is
"broken" is none. Variables say how it behaves:

    STAND_IN_ORT            the version, 1.23.2 where it is not set
    STAND_IN_ORT_PROVIDERS  what get_available_providers() gives, parted by commas
    STAND_IN_ORT_LEFT_OUT   of these a provider whose library cannot be loaded: a warning, no error
    STAND_IN_ORT_RAISES     PROVIDER=MESSAGE: making it raises, as without a device
    STAND_IN_ORT_FAILS_AT   at this run (counted from 1) the session's first provider fails
    STAND_IN_ORT_COMPILE    seconds that MIGraphX and TensorRT take for each shape, unless cached
    STAND_IN_ORT_AGAIN_AT   at this run they compile once more
    STAND_IN_ORT_ON_CPU     how many of the six nodes only the CPU can run
    STAND_IN_ORT_LOG        a file to which each session adds what it was made with, as JSON

The words of errors and of the fallback are those of onnxruntime's
python/onnxruntime_inference_collection.py and python/onnxruntime_pybind_state.cc.
"""

from __future__ import annotations

import enum
import json
import os
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

CPU, MIGRAPHX, TENSORRT = (f"{name}ExecutionProvider" for name in ("CPU", "MIGraphX", "Tensorrt"))
NODES = ("Conv", "Relu", "Conv", "TopK", "Gather", "Gemm")
__version__ = os.environ.get("STAND_IN_ORT", "1.23.2")
_NEW = tuple(map(int, __version__.split(".")[:2])) >= (1, 23)
_MIGRAPHX_OPTIONS = {
    "device_id",
    "migraphx_fp16_enable",
    "migraphx_int8_enable",
    "migraphx_exhaustive_tune",
    *(
        ("migraphx_bf16_enable", "migraphx_fp8_enable", "migraphx_model_cache_dir")
        if _NEW
        else ("migraphx_save_compiled_model", "migraphx_save_model_path")
    ),
}
_ASSIGNED = "session.record_ep_graph_assignment_info"
_CACHE_VARIABLE = "ORT_MIGRAPHX_MODEL_CACHE_PATH"


class EPFail(Exception):  # noqa: N818  onnxruntime's own name
    """A provider failed in a run."""


class GraphOptimizationLevel(enum.Enum):
    """As onnxruntime has it."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


OrtValue = object


class SessionOptions:
    """What a session is made with."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.intra_op_num_threads = self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.entries: dict[str, str] = {}

    def add_session_config_entry(self, name: str, value: str) -> None:
        self.entries[name] = value


def get_available_providers() -> list[str]:
    return os.environ.get("STAND_IN_ORT_PROVIDERS", f"{MIGRAPHX},{CPU}").split(",")


class InferenceSession:
    """A session of the one model that there is."""

    def __init__(
        self,
        path_or_bytes: str | bytes,
        sess_options: SessionOptions | None = None,
        providers: list[Any] | None = None,
        **more: Any,
    ) -> None:
        self._options = sess_options or SessionOptions()
        self._source = path_or_bytes
        self._may_fall = int(more.get("enable_fallback", 1)) == 1
        self._runs, self._shapes, self._events = 0, set(), []
        self._profiling, self._prefix = (
            self._options.enable_profiling,
            self._options.profile_file_prefix,
        )  # a copy, as onnxruntime makes one: the hook puts the user's options back
        self._start_ns = time.time_ns()
        try:
            self._create(providers or [CPU])
        except (ValueError, RuntimeError) as error:
            if not self._may_fall:
                raise
            self._fall(f"EP Error {error} when using {providers}")
        self._log(more)

    def _fall(self, words: str) -> None:
        print(f"{words}\nFalling back to ['{CPU}'] and retrying.")
        self._create([CPU])
        self._may_fall = False

    def _create(self, providers: list[Any]) -> None:
        given = dict(one if isinstance(one, tuple) else (one, {}) for one in providers)
        for name, options in given.items():
            if name not in get_available_providers():
                warnings.warn(
                    f"Specified provider '{name}' is not in available provider names.", stacklevel=2
                )
            if name == MIGRAPHX:
                _check(options)
        if isinstance(self._source, str) and Path(self._source).read_bytes() == b"broken":
            raise RuntimeError(
                f"[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Load model from {self._source} failed:Protobuf parsing failed."
            )
        name, _, words = os.environ.get("STAND_IN_ORT_RAISES", "").partition("=")
        if name in given:
            raise RuntimeError(
                f"/onnxruntime/core/providers/call.cc:123 bool Call(const char *) {words}"
            )
        left_out = os.environ.get("STAND_IN_ORT_LEFT_OUT", "").split(",")
        for name in left_out:
            if name in given:
                print(f"[W:onnxruntime] Failed to create {name}.", file=sys.stderr)
        self._providers = {
            name: options
            for name, options in given.items()
            if name in get_available_providers() and name not in left_out
        } | {CPU: {}}

    def _log(self, more: dict[str, Any]) -> None:
        path = os.environ.get("STAND_IN_ORT_LOG")
        if path and isinstance(self._source, str):
            record = {
                "providers": self._providers,
                "level": self._options.graph_optimization_level.name,
                "enable_fallback": more.get("enable_fallback", 1),
            }
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: dict(options) for name, options in self._providers.items()}

    def get_inputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="x", type="tensor(float)", shape=["N", 4])]

    def get_outputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="y", type="tensor(float)", shape=["N", 4])]

    def get_provider_graph_assignment_info(self) -> list[SimpleNamespace]:
        if self._options.entries.get(_ASSIGNED) != "1":
            raise EPFail(f"'{_ASSIGNED}' must be set to \"1\"")
        return [
            SimpleNamespace(ep_name=name, get_nodes=lambda ops=ops: ops)
            for name, ops in self._assigned().items()
        ]

    def _assigned(self) -> dict[str, list[SimpleNamespace]]:
        first = next(iter(self._providers))
        cut = len(NODES) - int(os.environ.get("STAND_IN_ORT_ON_CPU", "0"))
        nodes = [SimpleNamespace(op_type=op) for op in NODES]
        if first == CPU:
            return {CPU: nodes}
        return {first: nodes[:cut]} | ({CPU: nodes[cut:]} if nodes[cut:] else {})

    def run(
        self, names: list[str] | None, feeds: dict[str, Any], _options: Any = None
    ) -> list[Any]:
        self._runs += 1
        try:
            if self._runs == int(os.environ.get("STAND_IN_ORT_FAILS_AT", "0")):
                raise EPFail("the device was lost")
        except EPFail:
            if not self._may_fall:
                raise
            self._fall("EP Error: the device was lost")
        begin = time.time_ns() - self._start_ns
        self._compile(tuple(array.shape for array in feeds.values()))
        if self._profiling:
            self._record(begin)
        return [2 * array for array in feeds.values()]

    def _compile(self, shape: tuple[Any, ...]) -> None:
        compiling = {MIGRAPHX, TENSORRT} & set(self._providers)
        again = self._runs == int(os.environ.get("STAND_IN_ORT_AGAIN_AT", "0"))
        if not compiling or (shape in self._shapes and not again):
            return
        self._shapes.add(shape)
        options = self._providers[compiling.pop()]
        folder = options.get("migraphx_model_cache_dir") or os.environ.get(_CACHE_VARIABLE)
        file = Path(folder or ".") / f"{shape}-{self._runs if again else 0}.mxr"
        if folder and file.exists():
            return
        time.sleep(float(os.environ.get("STAND_IN_ORT_COMPILE", "0")))
        if folder:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(np.zeros(shape[0], np.float32).tobytes())

    def _record(self, begin: int) -> None:
        at, first = begin // 1000, self._runs == 1
        common = {"pid": os.getpid(), "tid": 1, "ph": "X", "ts": at, "dur": 10}
        self._events.append({"cat": "Session", "name": "model_run", "args": {}, **common})
        for provider, nodes in self._assigned().items():
            for number, node in enumerate(nodes):
                args = {"op_name": node.op_type, "provider": provider, "run": str(first)}
                name = f"{provider}_{number}_kernel_time"
                self._events.append({"cat": "Node", "name": name, **common, "dur": 1, "args": args})

    def get_profiling_start_time_ns(self) -> int:
        return self._start_ns

    def end_profiling(self) -> str:
        path = f"{self._prefix}_now.json"
        Path(path).write_text(json.dumps(self._events))
        return path


def _check(options: dict[str, Any]) -> None:
    for name in options:
        if name not in _MIGRAPHX_OPTIONS:
            raise RuntimeError(
                "/onnxruntime/onnxruntime/python/onnxruntime_pybind_state.cc:966 "
                "std::unique_ptr<onnxruntime::IExecutionProvider> "
                "onnxruntime::python::CreateExecutionProviderInstance(const "
                "onnxruntime::SessionOptions&, const std::string&, const "
                f"onnxruntime::ProviderOptionsMap&) Invalid MIGraphX EP option: {name}"
            )
