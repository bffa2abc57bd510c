"""TensorFlow models as one callable: frozen graphs (GraphDef) in a session, SavedModels by their
serving signature.

The published DeepMET scans run frozen graphs of TensorFlow 1 through `tf.compat.v1.Session`; so
does this.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from profharness_workloads.shared import flops, inputs, models
from profharness_workloads.shared.protocol import BAD_INPUT, MISSING, Refusal, Spec, plain_reason

SAVED = "saved_model.pb"
SIGNATURE = "serving_default"
NO_RESULTS = (
    "Assert",
    "NoOp",
    "Const",
    "Placeholder",
    "PlaceholderWithDefault",
    "SaveV2",
    "RestoreV2",
)
MATRIX = ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
CONVOLUTIONS = ("Conv2D", "Conv3D", "DepthwiseConv2dNative")
WITHOUT_FORMULA = (
    "Einsum",
    "CudnnRNN",
    "CudnnRNNV3",
    "While",
    "StatelessWhile",
    "If",
    "StatelessIf",
    "Conv2DBackpropInput",
)

Call = Callable[[Sequence[Any]], Tuple[Any, ...]]


class Loaded(NamedTuple):
    """A model: its inputs in order, the names of its outputs, `call(arrays) -> arrays` in NumPy,
    and its operations.

    `operations(specs)` imports the graph anew for inputs of full shape, batch 1, so that shapes are
    inferred.
    """

    inputs: Tuple[inputs.TensorSpec, ...]
    outputs: Tuple[str, ...]
    call: Call
    operations: Callable[[Sequence[inputs.TensorSpec]], List[Any]]
    form: str


def import_tensorflow() -> Any:
    """Raises Refusal (MISSING) when it cannot be imported in this Python."""
    os.environ.setdefault(
        "TF_CPP_MIN_LOG_LEVEL", "2"
    )  # else every start prints what it was built with
    try:
        import tensorflow
    except Exception as error:  # a broken installation raises OSError or worse
        raise Refusal(
            "tensorflow cannot be imported by %s: %s" % (sys.executable, str(error).split("\n")[0]),
            "pip install 'profharness[tensorflow]' there, or name another interpreter with "
            "--python",
            MISSING,
        ) from error
    return tensorflow


def chosen_device(tf: Any, asked: str, local_rank: int) -> str:
    """`cpu` or `cuda:INDEX` as profharness names devices. Raises Refusal (MISSING) for one that
    TensorFlow does not see.
    """
    kind, _, index = asked.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (index and not index.isdigit()):
        raise Refusal(
            "no device %r" % asked, "use auto, cpu, cuda or cuda:INDEX (cuda is also ROCm's name)"
        )
    count = len(tf.config.list_physical_devices("GPU"))
    if kind == "cpu" or (kind == "auto" and not count):
        return "cpu"
    if not count:
        raise Refusal(
            "--device %s: tensorflow %s sees no GPU" % (asked, tf.__version__),
            "install tensorflow with CUDA, or tensorflow-rocm, or use --device cpu",
            MISSING,
        )
    if index and int(index) >= count:
        raise Refusal(
            "--device %s: tensorflow sees %d GPU(s), counted from 0" % (asked, count), code=MISSING
        )
    return "cuda:%d" % (int(index) if index else local_rank % count)


def place_of(device: str) -> str:
    """TensorFlow's own name of a device."""
    return "/CPU:0" if device == "cpu" else "/GPU:%s" % device.partition(":")[2]


def visible_devices(tf: Any) -> List[Dict[str, Any]]:
    """The CPU and the GPUs that TensorFlow sees."""
    kind = "rocm" if tf.test.is_built_with_rocm() else "cuda"
    devices: List[Dict[str, Any]] = [{"index": 0, "kind": "cpu", "name": "cpu"}]
    gpus = tf.config.list_physical_devices("GPU")
    devices += [{"index": i, "kind": kind, "name": gpu.name} for i, gpu in enumerate(gpus)]
    return devices


def load(tf: Any, spec: Spec, device: str) -> Loaded:
    """A frozen graph file or a SavedModel folder. Raises Refusal for anything else."""
    if os.path.isdir(spec.model):
        if not os.path.isfile(os.path.join(spec.model, SAVED)):
            raise Refusal(
                "%s holds no %s" % (spec.model, SAVED),
                "name a SavedModel folder or a frozen graph",
                BAD_INPUT,
            )
        return _saved(tf, spec.model, device)
    return _frozen(tf, models.model_file(spec), spec, device)


def _frozen(tf: Any, path: str, spec: Spec, device: str) -> Loaded:
    definition = tf.compat.v1.GraphDef()
    try:
        with open(path, "rb") as file:
            definition.ParseFromString(file.read())
        graph = tf.Graph()
        with graph.as_default(), graph.device(place_of(device)):
            tf.import_graph_def(definition, name="")
    except Exception as error:  # DecodeError and TensorFlow's own errors have no common base
        raise Refusal(
            "%s: not a frozen graph: %s" % (path, plain_reason(error)),
            "freeze the model to a GraphDef, or name a SavedModel folder",
            BAD_INPUT,
        ) from error
    if not definition.node:
        raise Refusal("%s: a graph without nodes" % path, code=BAD_INPUT)
    specs = models.triton_inputs(path) or _placeholders(graph, path)
    specs = tuple(_with_graph(graph, tensor, path) for tensor in specs)
    fetched = [_tensor(graph, name, path) for name in models.triton_outputs(path)] or _outputs(
        graph
    )
    session = tf.compat.v1.Session(graph=graph, config=_session_options(tf, spec))
    feeds = [_tensor(graph, tensor.name, path) for tensor in specs]
    run = session.make_callable(fetched, feeds)

    def operations(full: Sequence[inputs.TensorSpec]) -> List[Any]:
        return _sized(tf, definition, full)

    return Loaded(
        specs,
        tuple(t.op.name for t in fetched),
        lambda arrays: tuple(run(*arrays)),
        operations,
        "frozen graph",
    )


def _sized(tf: Any, definition: Any, specs: Sequence[inputs.TensorSpec]) -> List[Any]:
    """The operations of a frozen graph, imported for inputs of full shape with one item."""
    graph = tf.Graph()
    with graph.as_default():
        given = {
            tensor.name + ":0": tf.compat.v1.placeholder(tensor.dtype, (1, *tensor.dims))
            for tensor in specs
        }
        tf.import_graph_def(definition, input_map=given, name="")
    return list(graph.get_operations())


def _session_options(tf: Any, spec: Spec) -> Any:
    options = tf.compat.v1.ConfigProto(
        allow_soft_placement=True
    )  # operations without a GPU kernel run on the CPU
    options.gpu_options.allow_growth = True
    if spec.threads:
        options.intra_op_parallelism_threads = spec.threads
        options.inter_op_parallelism_threads = 1
    return options


def _placeholders(graph: Any, path: str) -> Tuple[inputs.TensorSpec, ...]:
    placeholders = [op for op in graph.get_operations() if op.type == "Placeholder"]
    if not placeholders:
        raise Refusal("%s: the graph has no placeholder to feed" % path, code=BAD_INPUT)
    return tuple(inputs.TensorSpec(op.name, op.outputs[0].dtype.name, ()) for op in placeholders)


def _with_graph(graph: Any, spec: inputs.TensorSpec, path: str) -> inputs.TensorSpec:
    """The input with the graph's own dimensions, where the graph tells them; the first is the
    batch.
    """
    shape = _tensor(graph, spec.name, path).shape
    if shape.rank is None:
        return spec
    return spec._replace(dims=tuple(shape.as_list()[1:]))


def _tensor(graph: Any, name: str, path: str) -> Any:
    try:
        return graph.get_tensor_by_name(name + ":0")
    except KeyError as error:
        raise Refusal(
            "%s: the graph has no tensor %s" % (path, name),
            "its config.pbtxt may be another model's",
            BAD_INPUT,
        ) from error


def _outputs(graph: Any) -> List[Any]:
    """Tensors that nothing in the graph reads, in graph order: the results of a frozen graph.

    TensorFlow 1 leaves the ends of branches that inference never takes (Switch, and what only
    copies one) unread too.
    """
    read = {tensor.name for op in graph.get_operations() for tensor in op.inputs}
    branches = [op for op in graph.get_operations() if op.type == "Switch"]
    dead = set(branches) | {
        op
        for branch in branches
        for out in branch.outputs
        for op in out.consumers()
        if op.type == "Identity"
    }
    leaves = [op for op in graph.get_operations() if op.type not in NO_RESULTS and op not in dead]
    return [t for op in leaves for t in op.outputs[:1] if t.name not in read]


def _saved(tf: Any, path: str, device: str) -> Loaded:
    try:
        module = tf.saved_model.load(path)
        function = module.signatures[SIGNATURE]
    except Exception as error:  # OSError, KeyError, or one of TensorFlow's own
        raise Refusal(
            "%s: no SavedModel with a signature %s: %s" % (path, SIGNATURE, plain_reason(error)),
            "save it with signatures={'%s': ...}" % SIGNATURE,
            BAD_INPUT,
        ) from error
    entries = sorted(function.structured_input_signature[1].items())
    specs = tuple(
        inputs.TensorSpec(name, t.dtype.name, tuple(t.shape.as_list()[1:])) for name, t in entries
    )
    outputs = tuple(sorted(function.structured_outputs))

    def call(arrays: Sequence[Any], _owner: Any = module) -> Tuple[Any, ...]:
        # a signature holds its variables weakly: the module that owns them must stay
        with tf.device(place_of(device)):
            results = function(
                **{tensor.name: tf.constant(array) for tensor, array in zip(specs, arrays)}
            )
        return tuple(results[name].numpy() for name in outputs)

    def operations(full: Sequence[inputs.TensorSpec]) -> List[Any]:
        # a loaded signature keeps the shapes that it was saved with, its functions too: freezing
        # inlines them
        from tensorflow.python.framework.convert_to_constants import (
            convert_variables_to_constants_v2,
        )

        return _sized(tf, convert_variables_to_constants_v2(function).graph.as_graph_def(), full)

    return Loaded(specs, outputs, call, operations, "SavedModel")


def count(loaded: Loaded, specs: Sequence[inputs.TensorSpec]) -> flops.Count:
    """FLOPs of one item, matrix work only, from the shapes that TensorFlow infers for batch 1."""
    try:
        operations = loaded.operations(specs)
        total = sum(_work(op) for op in operations)
        other = sorted({op.type for op in operations if op.type in WITHOUT_FORMULA})
    except Exception as error:  # a count is an extra: no failure of it may stop the scan
        return flops.Count(None, "not counted: %s" % plain_reason(error))
    if not total:
        return flops.Count(None, "not counted: no matrix operation of known shape")
    return flops.Count(
        total, "without a formula, not in the count: " + ", ".join(other) if other else ""
    )


def _work(op: Any) -> int:
    """2 FLOP per multiply-add."""
    if op.type in MATRIX:
        dims = _known_dims(op.inputs[0])
        transposed = op.get_attr("transpose_a" if op.type == "MatMul" else "adj_x")
        return 2 * _size(op.outputs[0]) * dims[-2 if transposed else -1]
    if op.type in CONVOLUTIONS:
        kernel = _known_dims(
            op.inputs[1]
        )  # height, width, input channels of a group, output channels
        depth = 1 if op.type == "DepthwiseConv2dNative" else kernel[-2]
        window = 1
        for dim in kernel[:-2]:
            window *= dim
        return 2 * _size(op.outputs[0]) * window * depth
    return 0


def _known_dims(tensor: Any) -> List[int]:
    dims: List[Optional[int]] = tensor.shape.as_list()
    if any(dim is None for dim in dims):
        raise ValueError("%s has the shape %s, which depends on data" % (tensor.name, dims))
    return [int(dim) for dim in dims if dim is not None]


def _size(tensor: Any) -> int:
    total = 1
    for dim in _known_dims(tensor):
        total *= dim
    return total
