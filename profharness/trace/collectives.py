"""What a collective kernel does, as one short text per kind of call: which collective, how much,
over which ranks.

torch records this (`record_param_comms`) on the kernel or on the operator that launched it; all
kernels of one kind of call share the text, so that the column of codes stays small.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec


class Collective(msgspec.Struct, frozen=True, omit_defaults=True):
    """One collective call. Elements are those of one rank's buffers; None (or empty) where not
    recorded.

    `in_splits` and `out_splits` are what an exchange sends to and receives from each rank, where
    parts differ (empty: even parts, or not recorded in full).
    `dtype` is torch's name of the type, `group` the process group by its ranks (and name), `kind`
    as `normalised` gives it.
    """

    kind: str
    in_elements: int | None = None
    out_elements: int | None = None
    dtype: str = ""
    group_size: int | None = None
    group: str = ""
    in_splits: tuple[int, ...] = ()
    out_splits: tuple[int, ...] = ()


_KINDS = (
    ("all_reduce", r"all_?reduce"),
    ("all_gather", r"all_?gather"),
    ("reduce_scatter", r"reduce_?scatter"),
    ("all_to_all", r"all_?to_?all"),
    ("broadcast", r"broadcast|bcast"),
    ("send_recv", r"send_?recv|^send$|^recv|isend|irecv|coalesced"),
    ("scatter", r"scatter"),
    ("gather", r"gather"),
    ("reduce", r"reduce"),
    ("barrier", r"barrier"),
)
UNKNOWN = "collective"
HOST_BACKENDS = ("gloo", "mpi", "ucc")
"""torch's backends whose collectives run on the CPU, and are recorded as ranges of the host."""
UNTOLD = "?"
"""Ends a `group` that stands for several process groups: the file does not tell the calls of one
from those of another.
"""


@lru_cache(maxsize=4096)
def normalised(name: str) -> str:
    """`allreduce`, `_all_gather_base` and `ncclKernel_AllReduce_RING_LL` as all_reduce, all_gather
    ...; `collective` where the name does not say.
    """
    return next((kind for kind, pattern in _KINDS if re.search(pattern, name.lower())), UNKNOWN)


def encode(collective: Collective) -> str:
    """The text of a column's code."""
    return msgspec.json.encode(collective).decode()


def decode(text: str) -> Collective | None:
    """The collective of a text; None for one that is not of this form."""
    try:
        return msgspec.json.decode(text, type=Collective)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
