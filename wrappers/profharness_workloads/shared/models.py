"""Which model a worker serves: the built-in ParticleNet, exported once and cached, or a file and
what it takes in.

Knows no framework: signatures that only a runtime can read are read by the worker of that runtime.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from profharness_workloads.shared.inputs import TensorSpec, in_order, root_name
from profharness_workloads.shared.protocol import BAD_INPUT, MISSING, Refusal, Spec

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT_IN = "particlenet"
SUFFIXES = {
    "onnxruntime": (".onnx",),
    "deepsparse": (".onnx",),
    "torch": (".pt", ".pth", ".ts"),
    "tensorflow": (".graphdef", ".pb"),
}

TRITON_TYPES = {
    "TYPE_FP64": "float64",
    "TYPE_FP32": "float32",
    "TYPE_FP16": "float16",
    "TYPE_INT64": "int64",
    "TYPE_INT32": "int32",
    "TYPE_INT16": "int16",
    "TYPE_INT8": "int8",
    "TYPE_UINT8": "uint8",
    "TYPE_BOOL": "bool",
}
# The export must not appear in a tool's recording of the worker, nor touch a device.
TOOL_VARIABLES = re.compile(
    r"^(PROFHARNESS_|LD_PRELOAD$|HSA_TOOLS_|ROCP|ROCPROF|ROCTRACER|ROCPROFSYS_|AMD_LOG_|"
    r"CUDA_INJECTION)"
)


def is_built_in(spec: Spec) -> bool:
    return spec.model == BUILT_IN


def model_file(spec: Spec) -> str:
    """The path of the model that the user named. Raises Refusal: no such name or file, or one for
    another backend.
    """
    suffixes = SUFFIXES[spec.backend]
    if not os.path.isfile(spec.model):
        raise Refusal(
            "no model named %r, and no such file" % spec.model,
            "use --model particlenet or a file that ends in %s" % " or ".join(suffixes),
        )
    suffix = os.path.splitext(spec.model)[1].lower()
    if suffix not in suffixes:
        for backend, known_suffixes in SUFFIXES.items():
            if suffix in known_suffixes:
                raise Refusal(
                    "%s is a model for --backend %s, not %s" % (spec.model, backend, spec.backend)
                )
        raise Refusal(
            "%s: --backend %s takes %s files" % (spec.model, spec.backend, " or ".join(suffixes))
        )
    return spec.model


def built_in_file(spec: Spec, kind: str, make: Optional[Callable[[str], None]] = None) -> str:
    """The built-in model as a file of `kind` (onnx, torchscript), exported on first use and kept in
    the cache.

    The key covers the code that makes it, torch's version and the seed. Without `make` the export
    runs in a process of its own, so that this one need not load torch. Raises Refusal when it
    fails.
    """
    digest = hashlib.sha256()
    for name in ("particlenet.py", "inputs.py"):
        with open(os.path.join(HERE, name), "rb") as file:
            digest.update(file.read())
    digest.update(("%s %d %s" % (kind, spec.seed, _version("torch"))).encode())
    name = "particlenet-%s.%s" % (digest.hexdigest()[:16], "onnx" if kind == "onnx" else "pt")
    return cached(spec.cache_dir, name, make or (lambda path: _export(kind, path, spec)))


def cached(cache_dir: str, name: str, make: Callable[[str], None]) -> str:
    """The file `name` in the cache, made by `make(path)` when absent; a kill in between leaves no
    half file.
    """
    folder = cache_dir or os.path.join(os.path.expanduser("~"), ".cache", "profharness")
    path = os.path.join(folder, name)
    if os.path.isfile(path):
        return path
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".", suffix=name, dir=folder)
    os.close(handle)
    try:
        make(temporary)
        os.replace(temporary, path)
    except BaseException:  # Ctrl-C too: no half-written file may stay
        os.unlink(temporary)
        raise
    return path


def _export(kind: str, path: str, spec: Spec) -> None:
    python = sys.executable
    if importlib.util.find_spec("torch") is None and os.path.isfile(spec.exporter):
        python = spec.exporter
    command = [python, os.path.join(HERE, "particlenet.py"), kind, path, str(spec.seed)]
    done = subprocess.run(
        command,
        env=quiet_environment(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        last = (done.stdout.decode("utf-8", "replace").strip().splitlines() or ["no output"])[-1]
        raise Refusal(
            "the built-in model could not be exported to %s: %s" % (kind, last),
            "it needs torch and onnx in %s; or give a file with --model" % python,
            MISSING,
        )


def quiet_environment(environ: Mapping[str, str]) -> Dict[str, str]:
    """The environment without tools, hooks and devices."""
    kept = {name: value for name, value in environ.items() if not TOOL_VARIABLES.match(name)}
    hooks = os.path.join(os.path.dirname(os.path.dirname(HERE)), "hooks")
    if "PYTHONPATH" in kept:
        paths = [p for p in kept["PYTHONPATH"].split(os.pathsep) if os.path.abspath(p) != hooks]
        kept["PYTHONPATH"] = os.pathsep.join(paths)
    kept.update(CUDA_VISIBLE_DEVICES="", HIP_VISIBLE_DEVICES="")
    return kept


def _version(package: str) -> str:
    try:
        from importlib.metadata import version  # Python 3.8 on

        return version(package)
    except (
        Exception
    ):  # a broken metadata folder must not stop a scan; the key is then less specific
        return ""


def triton_inputs(model_path: str) -> Optional[Tuple[TensorSpec, ...]]:
    """Inputs as the Triton config.pbtxt beside the model, or one folder up, declares them; None
    without one.

    Names that end in a position (`x__0`) are put in that order, as Triton's PyTorch backend does.
    With max_batch_size 0 the first declared dimension is the batch. Raises Refusal for a type that
    we cannot make.
    """
    configuration = _triton_configuration(model_path)
    if configuration is None:
        return None
    path, config = configuration
    try:
        return _declared(config, path)
    except (KeyError, TypeError, ValueError) as error:
        raise Refusal(
            "%s: an input lacks its name, type or dimensions" % path, code=BAD_INPUT
        ) from error


def triton_outputs(model_path: str) -> Tuple[str, ...]:
    """Names of the outputs that the model's config.pbtxt declares; none without one."""
    configuration = _triton_configuration(model_path)
    return (
        tuple(
            str(entry["name"][-1])
            for entry in configuration[1].get("output", [])
            if entry.get("name")
        )
        if configuration
        else ()
    )


def _triton_configuration(model_path: str) -> Optional[Tuple[str, Dict[str, List[Any]]]]:
    """The config.pbtxt beside the model or one folder up, and its path."""
    folder = os.path.dirname(os.path.abspath(model_path))
    for candidate in (folder, os.path.dirname(folder)):
        path = os.path.join(candidate, "config.pbtxt")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                return path, parse_pbtxt(file.read(), path)
    return None


def _declared(config: Mapping[str, List[Any]], path: str) -> Tuple[TensorSpec, ...]:
    batched = int(config.get("max_batch_size", ["0"])[-1]) > 0
    specs = []
    for entry in config.get("input", []):
        name, kind = entry["name"][-1], entry["data_type"][-1]
        if kind not in TRITON_TYPES:
            raise Refusal(
                "%s: input %s has type %s, which cannot be generated" % (path, name, kind)
            )
        dims = tuple(None if int(d) < 0 else int(d) for d in entry.get("dims", []))
        specs.append(TensorSpec(name, TRITON_TYPES[kind], dims if batched else dims[1:]))
    positions = [re.search(r"__(\d+)$", spec.name) for spec in specs]
    if specs and all(positions):
        numbers = [int(position.group(1)) for position in positions if position]
        order = sorted(range(len(specs)), key=numbers.__getitem__)
        specs = [specs[i] for i in order]
    return tuple(specs)


def parse_pbtxt(text: str, path: str = "config.pbtxt") -> Dict[str, List[Any]]:
    """Protobuf text format, as far as Triton's configurations use it: each field is the list of its
    values.
    """
    tokens = iter(re.findall(r'#[^\n]*|"(?:\\.|[^"\\])*"|[{}\[\]:,;<>]|[^\s{}\[\]:,;<>#"]+', text))
    kept = (token for token in tokens if not token.startswith("#") and token not in (",", ";"))
    try:
        return _message(kept, "")
    except (StopIteration, RuntimeError) as error:
        raise Refusal("%s: not a readable Triton configuration" % path, code=BAD_INPUT) from error


def _message(tokens: Iterator[str], close: str) -> Dict[str, List[Any]]:
    fields: Dict[str, List[Any]] = {}
    while True:
        name = next(tokens, close if not close else None)
        if name is None:
            raise StopIteration
        if name == close:
            return fields
        token = next(tokens)
        value = next(tokens) if token == ":" else token
        fields.setdefault(name, []).extend(_values(tokens, value))


def _values(tokens: Iterator[str], first: str) -> List[Any]:
    if first == "[":
        values: List[Any] = []
        token = next(tokens)
        while token != "]":
            values += _values(tokens, token)
            token = next(tokens)
        return values
    if first == "{":
        return [_message(tokens, "}")]
    return [first[1:-1] if first.startswith('"') else first]


def named_shapes(
    arguments: Sequence[str], shapes: Mapping[str, Tuple[int, ...]], path: str
) -> Tuple[TensorSpec, ...]:
    """Float32 inputs from --shape alone, in the order of the model's own arguments.

    Where no name matches, the order given counts. Raises Refusal that names what is needed.
    """
    inputs = [TensorSpec(name, "float32", ()) for name in arguments]
    given = {root_name(name): dims for name, dims in in_order(inputs, shapes).items()}
    if given and not set(given) & set(arguments) and len(given) == len(arguments):
        return tuple(TensorSpec(name, "float32", dims) for name, dims in given.items())
    missing = [name for name in arguments if name not in given]
    if missing:
        raise Refusal(
            "%s does not tell the shapes of its inputs: %s" % (path, ", ".join(arguments)),
            "give each without the batch (%s), or put a Triton config.pbtxt beside it"
            % " ".join("--shape %s:d1,d2" % name for name in missing),
        )
    return tuple(TensorSpec(name, "float32", given[name]) for name in arguments)
