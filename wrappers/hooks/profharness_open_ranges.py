"""Ranges of the script that were open when a recording ended, and whether they have ended since.

Each keeps a pointer into the recording that has ended, so the next one must not start before they have (see
`Window.open_ranges`). torch does not tell when a range ends while nothing is recorded, but its Python object
(`torch.profiler.record_function`; those of DistributedDataParallel, DataLoader and the optimizers are the same) goes
with the end of its `with` block: a weak reference tells.
"""

import gc
import weakref


class Held:
    """The objects of open ranges, by weak references."""

    def __init__(self, ranges=()):
        self._ranges = [weakref.ref(one) for one in ranges]

    def still_open(self):
        """Whether one of them is there yet; a script that keeps the object itself keeps this true."""
        self._ranges = [one for one in self._ranges if one() is not None]
        return bool(self._ranges)


def held(torch, names):
    """The open ranges of these names as Held. None where one of them is no object of Python's: nothing tells of its end.

    `names` None stands for a torch that does not name them. Looking through all objects takes some 30 ms per million.
    """
    if names is None:
        return None
    if not names:
        return Held()
    kind, wanted = torch.autograd.profiler.record_function, set(names)
    found = [one for one in gc.get_objects() if type(one) is kind and one.name in wanted and one.record is not None]
    return Held(found) if wanted == {one.name for one in found} else None
