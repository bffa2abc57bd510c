"""Small ONNX files that tests make: sums of products, dense or with most of their weights zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def two_inputs(path: Path) -> Path:
    """y = x a + mask b with x [N, n, 3] and mask [N, 3]: the middle axis of x is free."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = [
        numpy_helper.from_array(np.ones((3, 5), dtype=np.float32), name) for name in ("a", "b")
    ]
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("MatMul", ["mean", "a"], ["p"]),
        helper.make_node("MatMul", ["mask", "b"], ["q"]),
        helper.make_node("Add", ["p", "q"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "two",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "n", 3]),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["N", 3]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 5])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    return path


def sparse_layers(path: Path, width: int = 256, zeros: float = 0.9, *, int8: bool = True) -> Path:
    """Three layers of `width` whose weights are zero but for `1 - zeros` of them, and, with `int8`,
    quantised as SparseML exports them: QuantizeLinear and DequantizeLinear around each product.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(5)
    tensors, nodes, at = [], [], "x"
    if int8:
        for name, value in (("s_x", np.float32(0.02)), ("s_w", np.float32(0.01))):
            tensors.append(numpy_helper.from_array(np.array(value), name))
        tensors.append(numpy_helper.from_array(np.array(128, np.uint8), "z_x"))
        tensors.append(numpy_helper.from_array(np.array(0, np.int8), "z_w"))
    for layer in range(3):
        kept = rng.random((width, width)) >= zeros
        if int8:
            weights = (rng.integers(-80, 80, (width, width)) * kept).astype(np.int8)
            tensors.append(numpy_helper.from_array(weights, f"w{layer}"))
            nodes += [
                helper.make_node(kind, taken, [given])
                for kind, taken, given in (
                    ("QuantizeLinear", [at, "s_x", "z_x"], f"q{layer}"),
                    ("DequantizeLinear", [f"q{layer}", "s_x", "z_x"], f"d{layer}"),
                    ("DequantizeLinear", [f"w{layer}", "s_w", "z_w"], f"dw{layer}"),
                    ("MatMul", [f"d{layer}", f"dw{layer}"], f"p{layer}"),
                )
            ]
        else:
            weights = (rng.standard_normal((width, width)) * kept / width).astype(np.float32)
            tensors.append(numpy_helper.from_array(weights, f"w{layer}"))
            nodes.append(helper.make_node("MatMul", [at, f"w{layer}"], [f"p{layer}"]))
        at = f"r{layer}" if layer < 2 else "y"
        nodes.append(helper.make_node("Relu", [f"p{layer}"], [at]))
    graph = helper.make_graph(
        nodes,
        "sparse",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", width])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    return path
