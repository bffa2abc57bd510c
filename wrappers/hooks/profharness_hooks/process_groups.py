"""Which ranks the process groups of torch.distributed hold, for the sidecar of a recording.

On the CPU (gloo) torch records what a collective moves but not among whom. Scripts destroy their
groups before the recording ends, so the groups are noted just before that.
"""

from __future__ import annotations

import functools
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_noted: set[tuple[int, ...]] = set()


def watch() -> None:
    """From now on note the groups that the script destroys; nothing where torch has no distributed
    part.
    """
    module = _module()
    destroy = getattr(module, "destroy_process_group", None)
    if destroy is None or getattr(destroy, "_profharness", False):
        return

    @functools.wraps(destroy)
    def noting(*args: Any, **kwargs: Any) -> Any:
        _note()
        return destroy(*args, **kwargs)

    noting._profharness = True  # type: ignore[attr-defined]  # our own mark
    places: tuple[Any, ...] = (module, sys.modules.get("torch.distributed"))
    for place in places:
        if getattr(place, "destroy_process_group", None) is destroy:
            place.destroy_process_group = noting


def known() -> list[list[int]]:
    """The ranks of each distinct group so far, each list sorted and the lists in order."""
    _note()
    return sorted(list(ranks) for ranks in _noted)


def in_use() -> bool:
    """Whether the script has process groups now, whose collectives run in threads of torch's
    own.
    """
    try:
        return bool(_module().is_initialized())
    except AttributeError:  # torch.distributed is not there
        return False


def _note() -> None:
    try:
        groups = _module()._world.pg_group_ranks  # torch has no public list of its groups
        _noted.update(tuple(sorted(ranks)) for ranks in groups.values())
    except (
        Exception
    ):  # a torch that keeps its groups in another way: the figures that need them are left out
        pass


def _module() -> Any:
    return sys.modules.get("torch.distributed.distributed_c10d")
