"""Which ranks the process groups of torch.distributed hold, for the sidecar of a recording.

On the CPU (gloo) torch records what a collective moves but not among whom. Scripts destroy their
groups before the recording ends, so the groups are noted just before that.
"""

import functools
import sys

_noted = set()


def watch():
    """From now on note the groups that the script destroys; nothing where torch has no distributed
    part.
    """
    module = _module()
    destroy = getattr(module, "destroy_process_group", None)
    if destroy is None or getattr(destroy, "_profharness", False):
        return

    @functools.wraps(destroy)
    def noting(*args, **kwargs):
        _note()
        return destroy(*args, **kwargs)

    noting._profharness = True  # our own mark
    for place in (module, sys.modules.get("torch.distributed")):
        if getattr(place, "destroy_process_group", None) is destroy:
            place.destroy_process_group = noting


def known():
    """The ranks of each distinct group so far, in order."""
    _note()
    return sorted(list(ranks) for ranks in _noted)


def _note():
    try:
        groups = _module()._world.pg_group_ranks  # torch has no public list of its groups
        _noted.update(tuple(sorted(ranks)) for ranks in groups.values())
    except (
        Exception
    ):  # a torch that keeps its groups in another way: the figures that need them are left out
        pass


def _module():
    return sys.modules.get("torch.distributed.distributed_c10d")
