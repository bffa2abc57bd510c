"""Which operators a trace may make us run: those of torch's namespace, and those that the user
allows. A trace is foreign data, so its names are checked before torch sees them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

TORCH = "aten"
_NAME = re.compile(r"([A-Za-z_]\w{0,63})::(\w{1,128})", re.ASCII)
_NODE = re.compile(
    r"(autograd::engine::evaluate_function: )?(\w+Backward\d*|torch::autograd::\w+)", re.ASCII
)
_DENIED = re.compile(
    r"from_file|save|load|_print|warn|record_stream|set_|set_data|requires_grad_|retain_grad|"
    r"_backward|_version|is_pinned|_?pin_memory|_cufft_\w+|_debug_\w+|_test_\w+|manual_seed|"
    r"_assert_\w+|_functional_assert_\w+|_async_error|sym_\w+|to_mkldnn\w*|_use_cudnn_\w+|"
    r"_cudnn_init_dropout_state|_foobar|_lazy_clone|set|resize_as_sparse_|rename_?|_resize_output_?"
)
"""Operators that read or write files, print, change the process or hold on to streams, that touch
no elements, or whose arguments no trace can hold.
"""


def refusal(name: str, allowed: Collection[str]) -> str:
    """Why the operator of that name is not run; empty where it may be. `allowed` are the user's
    namespaces beside torch's own.
    """
    if _NODE.fullmatch(name):
        return "it is a node of the graph of gradients: its operators are rows of their own"
    match = _NAME.fullmatch(name)
    if match is None:
        return "its name is none of an operator"
    namespace, short = match.groups()
    if namespace != TORCH and namespace not in allowed:
        return f"it is an operator of {namespace}, not of torch (--namespace {namespace} allows it)"
    if namespace == TORCH and _DENIED.fullmatch(short):
        return "it does more than compute, or what it needs is in no trace"
    return ""
