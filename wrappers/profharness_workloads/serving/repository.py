"""A Triton model repository of the models that are served, so that Triton itself batches requests
of different lengths.

    NAME/config.pbtxt   dynamic batching; where requests may differ in length allow_ragged_batch at
                        each input with a free dimension
    NAME/1/model.py     repository_model.py, which needs NumPy and the runtime only
    NAME/1/model.pt ... the model's file; of the built-in model the code that makes it

`Triton.bind` has no field for ragged batches, which is why PyTriton is given the folder. Format:
triton-inference-server/server, docs/user_guide/model_repository.md and ragged_batching.md.
"""

from __future__ import annotations

import os
import shutil
from typing import Any, Dict, List, Mapping, NamedTuple

from profharness_workloads.serving import executions_file, repository_model
from profharness_workloads.serving.plan import Plan, Served, dtype_name, is_sleep
from profharness_workloads.serving.runner import Offered, Runner, Signature
from profharness_workloads.shared import inputs, models
from profharness_workloads.shared.protocol import BAD_INPUT, Refusal

FOLDER = "repository"  # of a run
CONFIG = "config.pbtxt"
VERSION = "1"
PACKAGE = "profharness_workloads"
CODE = ("__init__.py", "shared/__init__.py") + tuple(
    "shared/%s.py" % name for name in ("particlenet", "inputs", "protocol")
)
"""What the built-in model is made from, as far as it stands alone."""


class Store(NamedTuple):
    """The folder of the models, and that in which their processes note what they executed, "" for
    none.
    """

    repository: str
    executions: str

    @classmethod
    def of(cls, plan: Plan, run_dir: str, control_dir: str) -> "Store":
        """Both folders, made. A repository that is named by no whole path lies in the run's."""
        store = cls(
            os.path.abspath(os.path.join(run_dir, FOLDER, plan.repository)),
            os.path.join(os.path.abspath(control_dir), "executions") if plan.records else "",
        )
        os.makedirs(store.repository, exist_ok=True)
        if store.executions:
            shutil.rmtree(store.executions, ignore_errors=True)  # of a server before this one
            os.makedirs(store.executions)
        return store

    def tidy(self) -> None:
        """Remove what Triton's Python left beside the models' code."""
        for place, _, _ in os.walk(self.repository):
            shutil.rmtree(os.path.join(place, "__pycache__"), ignore_errors=True)


class InRepository(Offered):
    """A model that Triton's own processes run; `loaded` told what it takes and gives."""

    def __init__(self, model: Served, loaded: Runner, folder: str, executions: str):
        self.signature, self.backend = loaded.signature, loaded.backend
        self.device, self.fallback = loaded.device, loaded.fallback
        self.versions = loaded.versions
        self._notes = loaded.level_notes()
        self._level: List[executions_file.Execution] = []
        self._open = False
        self._follower = executions_file.Follower(executions, model.name)
        write(folder, model, loaded)

    def executions(self) -> List[executions_file.Execution]:
        """What ran since the last call."""
        news = self._follower.news()
        if self._open:
            self._level += news
        return news

    def open_window(self, key: str) -> None:  # noqa: ARG002  executions tell their own times
        """What ran before is the warm-up."""
        self._level, self._open = [], True

    def close_window(self, key: str) -> None:  # noqa: ARG002  the level that is open
        """What runs from here on is nobody's."""
        self._open = False

    def level_notes(self) -> Dict[str, str]:
        """How full the level's executions were."""
        return {**self._notes, **executions_file.notes(self._level)}


def write(folder: str, model: Served, loaded: Runner) -> str:
    """Make the model's folder in the repository, in place of one that was there; its path. Raises
    Refusal for a model that cannot be written or whose requests cannot differ.
    """
    own = os.path.join(folder, model.name)
    version = os.path.join(own, VERSION)
    shutil.rmtree(own, ignore_errors=True)
    os.makedirs(version)
    parameters = {
        "runtime": loaded.backend,
        "join": joining(loaded),
        **_runtime(version, model, loaded),
    }
    text = config_text(model, loaded.signature, parameters)
    with open(os.path.join(own, CONFIG), "w", encoding="utf-8") as file:
        file.write(text)
    shutil.copyfile(repository_model.__file__, os.path.join(version, "model.py"))
    return own


def joining(loaded: Runner) -> str:
    """How requests of different lengths become one batch of the model: padded where a mask goes
    with every input of free length and no output has one, else those of one length together.
    """
    if loaded.backend == "sleep":
        return "apart"
    signature = loaded.signature
    families = {_family(spec) for spec in signature.inputs if None in spec.dims}
    masked = {
        _family(spec) for spec in signature.inputs if inputs.root_name(spec.name).endswith("_mask")
    }
    fixed = all(None not in spec.dims for spec in signature.outputs)
    return "pad" if fixed and families <= masked else "group"


def _family(spec: inputs.TensorSpec) -> str:
    return inputs.root_name(spec.name).split("_")[0]


def config_text(model: Served, signature: Signature, parameters: Mapping[str, str]) -> str:
    """The configuration as Triton's own message writes it. Raises Refusal where requests are to
    differ in length, and no input has a free dimension.
    """
    # PyTriton brings the message, and makes its own configurations from it
    from google.protobuf import json_format, text_format
    from tritonclient.grpc import model_config_pb2

    ragged = model.ragged == "triton"
    if ragged and not any(None in spec.dims for spec in signature.inputs):
        raise Refusal(
            "%s has no input with a free dimension, so that its requests cannot differ in length"
            % model.name,
            "leave --ragged out, or export the model with a dynamic axis",
            BAD_INPUT,
        )
    batching: Dict[str, Any] = {"maxQueueDelayMicroseconds": model.queue_delay_us}
    if model.preferred:
        batching["preferredBatchSize"] = list(model.preferred)
    message = json_format.ParseDict(
        {
            "name": model.name,
            "backend": "python",
            "maxBatchSize": model.max_batch_size,
            "input": [
                _tensor(spec, ragged=ragged and None in spec.dims) for spec in signature.inputs
            ],
            "output": [_tensor(spec, ragged=False) for spec in signature.outputs],
            # the model finds its device itself: Triton's own kinds know NVIDIA's GPUs only
            "instanceGroup": [{"count": model.instances, "kind": "KIND_CPU"}],
            "dynamicBatching": batching,
            "parameters": {key: {"stringValue": value} for key, value in parameters.items()},
        },
        model_config_pb2.ModelConfig(),
    )
    return str(text_format.MessageToString(message))


def _tensor(spec: inputs.TensorSpec, *, ragged: bool) -> Dict[str, Any]:
    dims = [-1 if one is None else one for one in spec.dims] or [1]
    tensor: Dict[str, Any] = {
        "name": spec.name,
        "dataType": "TYPE_%s" % dtype_name(spec.dtype),
        "dims": dims,
    }
    if ragged:
        tensor["allowRaggedBatch"] = True
    return tensor


def _runtime(version: str, model: Served, loaded: Runner) -> Dict[str, str]:
    """Put the model's file into its version's folder; the parameters of its runtime."""
    spec = model.spec
    if is_sleep(spec.model):
        from profharness_workloads.serving import sleep_runner

        return {"sleep_ns": str(round(sleep_runner.seconds(spec.model) * 1e9))}
    told = {**loaded.recipe(), **({"threads": str(spec.threads)} if spec.threads else {})}
    if loaded.backend == "torch":
        if models.is_built_in(spec) and not spec.torchscript:
            _copy_code(version)
            return {**told, "built_in": spec.model, "seed": str(spec.seed)}
        kind = "torchscript"
    elif loaded.backend == "onnxruntime":
        kind = "onnx"
    else:
        raise Refusal(
            "a repository serves models of torch and onnxruntime, and %s is of %s"
            % (model.name, loaded.backend),
            "use --ragged padded or grouped",
        )
    path = models.built_in_file(spec, kind) if models.is_built_in(spec) else models.model_file(spec)
    name = "model.onnx" if kind == "onnx" else "model.pt"
    shutil.copyfile(path, os.path.join(version, name))
    _copy_beside(path, version)
    return {**told, "file": name}


def _copy_beside(path: str, version: str) -> None:
    """Weights that an ONNX file keeps in files beside it (its external data)."""
    if not path.endswith(".onnx"):
        return
    stem = os.path.basename(path)
    folder = os.path.dirname(os.path.abspath(path))
    for name in os.listdir(folder):
        if name in (stem + ".data", stem + "_data", stem[: -len(".onnx")] + ".data"):
            shutil.copyfile(os.path.join(folder, name), os.path.join(version, name))


def _copy_code(version: str) -> None:
    root = os.path.dirname(models.HERE)
    for name in CODE:
        place = os.path.join(version, PACKAGE, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copyfile(os.path.join(root, name), place)
