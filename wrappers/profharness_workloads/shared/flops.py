"""Useful floating-point operations of one item, counted once, at batch 1, outside every timed
region.

Matrix work only (convolutions and matrix products), 2 FLOP per multiply-add, as torch's own counter
counts it. A count that cannot be had is None with a reason, never a guess.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

# Operators that do matrix work and have no formula here: named in the note, since the count is then
# too low.
WITHOUT_FORMULA = frozenset(
    "Einsum LSTM GRU RNN Attention MultiHeadAttention QAttention ConvInteger MatMulInteger "
    "QLinearConv QLinearMatMul "
    "DeformConv If Loop Scan".split()
)


class Count(NamedTuple):
    """`flops` of one item, or None; `note` says what is not in it, or why there is none."""

    flops: Optional[float]
    note: str = ""


def torch_count(run: Callable[[], Any]) -> Count:
    """FLOPs of one eager call by torch.utils.flop_counter (torch 2.1 on)."""
    try:
        from torch.utils import flop_counter

        _without_compiler(flop_counter)
        with flop_counter.FlopCounterMode(display=False) as counter:
            run()
        return Count(int(counter.get_total_flops()))
    except Exception as error:  # a count is an extra: no failure of it may stop the scan
        return Count(
            None, "not counted: %s: %s" % (type(error).__name__, str(error).split("\n")[0][:200])
        )


def _without_compiler(flop_counter: Any) -> None:
    """Keep torch from loading its whole compiler (over a second) at the first counted operator,
    only to say that it stays out.

    torch._disable_dynamo keeps, on the function, what it calls instead; that is the function itself
    here, since nothing is compiled while an eager call is counted. Other versions of torch have
    other insides, and are left as they are.
    """
    mode = getattr(flop_counter, "_FlopCounterMode", flop_counter.FlopCounterMode)
    counted = getattr(getattr(mode, "__torch_dispatch__", None), "__wrapped__", None)
    if counted is not None and not hasattr(counted, "__dynamo_disable"):
        setattr(counted, "__dynamo_disable", counted)


def onnx_count(path: str, feeds: Mapping[str, Any]) -> Count:
    """FLOPs of an ONNX graph for `feeds` (batch 1): one CPU run that also returns the tensors of
    its matrix nodes.

    Shapes inside a graph with neighbour search depend on data, so they are observed, not inferred.
    """
    try:
        import onnx

        model = onnx.load(path)
        nodes = [node for node in model.graph.node if node.op_type in _FORMULAS]
        shapes = _observed(model, nodes, feeds)
        total = sum(_FORMULAS[node.op_type](node, shapes) for node in nodes)
        other = sorted(
            {node.op_type for node in model.graph.node if node.op_type in WITHOUT_FORMULA}
        )
        return Count(
            total, "without a formula, not in the count: " + ", ".join(other) if other else ""
        )
    except Exception as error:  # a count is an extra: no failure of it may stop the scan
        return Count(
            None, "not counted: %s: %s" % (type(error).__name__, str(error).split("\n")[0][:200])
        )


def _observed(
    model: Any, nodes: Sequence[Any], feeds: Mapping[str, Any]
) -> Dict[str, Tuple[int, ...]]:
    """Shapes of all tensors that the nodes read and write."""
    import onnxruntime
    from onnx import helper

    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    shapes.update({name: tuple(array.shape) for name, array in feeds.items()})
    wanted: List[str] = []
    for name in [tensor for node in nodes for tensor in list(node.input) + list(node.output)]:
        if name and name not in shapes and name not in wanted:
            wanted.append(name)
    declared = {value.name for value in model.graph.output}
    model.graph.output.extend(
        helper.ValueInfoProto(name=name) for name in wanted if name not in declared
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    for name, array in zip(wanted, session.run(wanted, dict(feeds))):
        shapes[name] = tuple(array.shape)
    return shapes


def _product(dims: Sequence[int]) -> int:
    total = 1
    for d in dims:
        total *= int(d)
    return total


def _convolution(node: Any, shapes: Mapping[str, Tuple[int, ...]]) -> int:
    """2 x output elements x (input channels of a group x kernel)."""
    return 2 * _product(shapes[node.output[0]]) * _product(shapes[node.input[1]][1:])


def _transposed(node: Any, shapes: Mapping[str, Tuple[int, ...]]) -> int:
    """2 x input elements x (output channels of a group x kernel)."""
    return 2 * _product(shapes[node.input[0]]) * _product(shapes[node.input[1]][1:])


def _product_of_matrices(node: Any, shapes: Mapping[str, Tuple[int, ...]]) -> int:
    """2 x output elements x inner dimension; MatMul's first operand ends in the inner dimension."""
    return 2 * _product(shapes[node.output[0]]) * shapes[node.input[0]][-1]


def _gemm(node: Any, shapes: Mapping[str, Tuple[int, ...]]) -> int:
    transposed = any(a.name == "transA" and a.i for a in node.attribute)
    return 2 * _product(shapes[node.output[0]]) * shapes[node.input[0]][0 if transposed else 1]


_FORMULAS: Dict[str, Callable[[Any, Mapping[str, Tuple[int, ...]]], int]] = {
    "Conv": _convolution,
    "ConvTranspose": _transposed,
    "MatMul": _product_of_matrices,
    "Gemm": _gemm,
}
