"""Renews ranges that were open when a recording ended, so that the next one can start: see
`Window.open_ranges`.

Ranges of Python objects (`torch.profiler.record_function`, which DistributedDataParallel,
DataLoader and the optimizers use too) are ended while nothing is recorded, which writes nothing,
and begun again at once: the script sees no difference. Ranges of torch's own C++ code and of
compiled code have no Python object. They end with the call that they enclose.
"""

from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


# dynamo's and inductor's ranges around what they have compiled; operators of C++ have a namespace
OF_CALLS = (
    "Torch-Compiled Region",
    "TorchDynamo",
    "Pregraph bytecode",
    "## Call",
    "AOTDispatcher",
    "Compiled",
)
NODE = "autograd::engine::evaluate_function: "
NONE, OPERATORS, UNKNOWN = "none", "operators", "unknown"


def release(torch: Any, names: list[str] | None) -> str:
    """Renew the open ranges of these names, outermost first. Returns what is still tied to the
    ended recording.

    NONE: the next one may start. OPERATORS: a call of C++ code goes on, and we may be inside of it.
    UNKNOWN: nothing tells when it ends. `names` None stands for a torch that does not name them.
    Looking through all objects takes some 30 ms per million.
    """
    if names is None:
        return UNKNOWN
    if not names:
        return NONE
    kind, order = (
        torch.autograd.profiler.record_function,
        {name: place for place, name in enumerate(names)},
    )
    # a range that has ended keeps its record: ending it again does nothing, and it records nothing
    # when begun anew here
    ranges = [
        item for item in gc.get_objects() if type(item) is kind and _can_be_renewed(item, order)
    ]
    ranges.sort(key=lambda open_range: order[open_range.name])
    for open_range in reversed(ranges):
        open_range.__exit__(None, None, None)
    for open_range in ranges:
        open_range.__enter__()
    left = set(order) - {open_range.name for open_range in ranges}
    if not left:
        return NONE
    return OPERATORS if all(_is_call(name, left) for name in left) else UNKNOWN


def _can_be_renewed(open_range: Any, names: dict[str, int]) -> bool:
    """Whether the range was begun under one of the names and ends with its `with` block. A range
    that is just being made has no fields yet.
    """
    fields = open_range.__dict__
    return (
        fields.get("name") in names
        and fields.get("record") is not None
        and fields.get("run_callbacks_on_exit", True)
    )


def _is_call(name: str, names: set[str]) -> bool:
    """Whether the range belongs to an operator, to compiled code, or to a node of the backward
    pass, which has two ranges.
    """
    return "::" in name or name.startswith(OF_CALLS) or NODE + name in names


def in_backward(torch: Any) -> bool:
    """Whether this thread is inside of a backward pass (False for a torch that does not tell).

    autograd restores the thread's state when it returns. That would bring back a recording that
    ended inside, which then never ends, and lose one that started inside.
    """
    try:
        return bool(torch._C._current_graph_task_id() != -1)  # torch has no public name for it
    except AttributeError:
        return False


def being_marked(torch: Any) -> bool:
    """Whether this thread is just beginning or ending a range. The range's object then does not
    show whether it is open.
    """
    kind = torch.autograd.profiler.record_function
    frame: FrameType | None = sys._getframe()
    codes = (kind.__enter__.__code__, kind.__exit__.__code__)
    while frame is not None and frame.f_code not in codes:
        frame = frame.f_back
    return frame is not None
