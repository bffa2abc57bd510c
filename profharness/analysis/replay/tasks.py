"""Hot calls as tasks of a replay, and why some are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from profharness.analysis.replay.arguments import NO_SHAPES, arguments_of
from profharness.analysis.replay.hottest import HotCall
from profharness.analysis.replay.refusals import refusal
from profharness.trace.calls.plan import CallTask, Given, TensorGiven, TensorsGiven

_FLOATS = ("float32", "bfloat16", "float16", "float64")
USUAL = "float32"


@dataclass(frozen=True)
class Tasks:
    """What is to be run, by the position of its call, and the reasons of the others."""

    tasks: tuple[CallTask, ...]
    refused: dict[int, str]


def tasks_of(calls: Sequence[HotCall], allowed: Collection[str] = ()) -> Tasks:
    """The tasks of these calls. `allowed` are namespaces beside torch's own. Lists of tensors get
    the floating-point type that most tensors of these calls have.
    """
    tasks: dict[int, tuple[Given, ...]] = {}
    refused: dict[int, str] = {}
    for number, call in enumerate(calls):
        reason = refusal(call.name, allowed)
        given = None if reason else arguments_of(call.texts)
        if given is None:
            refused[number] = reason or NO_SHAPES
        else:
            tasks[number] = given
    usual = _usual_type(list(tasks.values()))
    return Tasks(
        tuple(
            CallTask(number, calls[number].name, given, _own_type(given) or usual)
            for number, given in tasks.items()
        ),
        refused,
    )


def has_list(task: CallTask) -> bool:
    """Whether the type of some of its tensors is chosen."""
    return any(isinstance(given, TensorsGiven) for given in task.inputs)


def narrower(task: CallTask) -> tuple[str, ...]:
    """Types with fewer bytes that tensors of its lists may have had."""
    return ("bfloat16",) if has_list(task) and task.list_type in ("float32", "float64") else ()


def _own_type(given: Sequence[Given]) -> str:
    """The type of the first tensor of the call itself, where that is a floating-point one."""
    kinds = [one.dtype for one in given if isinstance(one, TensorGiven) and one.dtype in _FLOATS]
    return kinds[0] if kinds else ""


def _usual_type(calls: Sequence[Sequence[Given]]) -> str:
    kinds = Counter(kind for given in calls if (kind := _own_type(given)))
    return kinds.most_common(1)[0][0] if kinds else USUAL
