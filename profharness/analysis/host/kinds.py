"""What kind of thing a row of the host's records is, by its name and table."""

from __future__ import annotations

import re
from enum import IntEnum
from re import Pattern

import numpy as np
import numpy.typing as npt

from profharness.trace import call_names
from profharness.trace.columns.table import NULL
from profharness.trace.model import Api, Marks, Strings, Trace

I8 = npt.NDArray[np.int8]


class Kind(IntEnum):
    """What the host is in. The order is that of the tables that print them; the values are the
    codes in `Timeline.kind`.
    """

    GARBAGE_COLLECTION = 0
    DATA_LOADER = 1
    WRITING = 2
    """Python that writes logs or files. It holds for the Python inside of it alone."""
    SYNCHRONISATION = 3
    COPY_CALL = 4
    ALLOCATOR = 5
    LAUNCH_CALL = 6
    RUNTIME_CALL = 7
    OPERATOR = 8
    OPTIMIZER = 9
    RANGE = 10
    PYTHON = 11
    NOTHING = 12
    """Nothing is recorded here: no operator, no call, no range and no Python frame."""
    COLLECTIVE = 13
    """A collective of the process runs and none of its operators, where no device works. No code in
    `Timeline.kind`: collectives run in threads of their own."""

    @property
    def label(self) -> str:
        """The name that people read; the key of JSON is the lower-case name."""
        return LABELS[self]

    @property
    def key(self) -> str:
        return self.name.lower()


LABELS: dict[Kind, str] = {
    Kind.GARBAGE_COLLECTION: "garbage collection",
    Kind.DATA_LOADER: "DataLoader",
    Kind.WRITING: "writing of logs and files",
    Kind.SYNCHRONISATION: "synchronisation",
    Kind.COPY_CALL: "copy calls",
    Kind.ALLOCATOR: "allocator",
    Kind.LAUNCH_CALL: "launch calls",
    Kind.RUNTIME_CALL: "other calls",
    Kind.OPERATOR: "operators",
    Kind.OPTIMIZER: "optimizer",
    Kind.RANGE: "ranges",
    Kind.PYTHON: "Python",
    Kind.NOTHING: "outside of what is recorded",
    Kind.COLLECTIVE: "collectives",
}

# These hold for all that is called inside of them: an operator of the collate function is part of
# the DataLoader's time, and a stream synchronisation inside of `aten::item` is that of the item.
HOLDING = (
    Kind.GARBAGE_COLLECTION,
    Kind.DATA_LOADER,
    Kind.SYNCHRONISATION,
    Kind.COPY_CALL,
    Kind.ALLOCATOR,
)

_ADDRESS: Pattern[str] = re.compile(r" (object )?at 0x[0-9a-fA-F]+")
_LOADER: Pattern[str] = re.compile(r"^enumerate\(DataLoader\)|DataLoaderIter\b.*__next__")
_OPTIMIZER: Pattern[str] = re.compile(r"^Optimizer\.")
_COLLECTOR: Pattern[str] = re.compile(r"^Python GC|^garbage collection|<built-in function collect>")
_LIBRARIES_THAT_WRITE = r"(?:^|/)(?:logging|torch/utils/tensorboard|tensorboardX?|wandb)/"
_WRITES: Pattern[str] = re.compile(
    _LIBRARIES_THAT_WRITE + r"|(?:^|/)torch/serialization\.py\(\d+\): _?(?:legacy_)?save\b|"
    r"^<built-in (?:method (?:write|writelines|flush|writerows?) of (?:_io\.|_csv\.)|"
    r"method (?:fsync|fdatasync) of |function (?:fsync|fdatasync|print)\b|method print of )"
)
_ALLOCATOR: Pattern[str] = re.compile(
    r"^(cuda|hip)(Host)?(Malloc|Free|Alloc)|^cuMem(Alloc|Free|Create|Map)|"
    r"^hsa_(amd_)?memory_(pool_)?(allocate|free)"
)
# Operators that end only when a value has come from the device.
_READS_A_VALUE: Pattern[str] = re.compile(
    r"^aten::(item|_local_scalar_dense|nonzero|is_nonzero|masked_select|_unique2?|unique_dim|"
    r"unique_consecutive|equal|to_dense)$"
)
_WRITING: tuple[tuple[Pattern[str], Kind], ...] = ((_WRITES, Kind.WRITING),)
_NAMED_KINDS: tuple[tuple[Pattern[str], Kind], ...] = (
    (_COLLECTOR, Kind.GARBAGE_COLLECTION),
    (_LOADER, Kind.DATA_LOADER),
    (_OPTIMIZER, Kind.OPTIMIZER),
)


def without_address(name: str) -> str:
    """The name of a built-in method without the address of the object that it was called on, so
    that calls on all objects are one row: `<built-in method astype of numpy.ndarray>`.
    """
    return _ADDRESS.sub("", name) if " at 0x" in name else name


def writes(place: str) -> bool:
    """Whether a function of a library, as `.../logging/__init__.py(1477): info`, writes logs or
    files.
    """
    return _WRITES.search(place) is not None


def of_marks(strings: Strings, marks: Marks) -> I8:
    """The kind of each mark: a collection, the loader and the optimizer by name, frames are Python
    that writes or other Python, and all else a range.
    """
    frame = strings.find("frame")
    kinds = np.full(len(marks), Kind.RANGE, np.int8)
    is_frame = (marks.kind == frame) & (frame != NULL)
    kinds[is_frame] = Kind.PYTHON
    kinds[is_frame & (_by_name(strings, marks.name, _WRITING) >= 0)] = Kind.WRITING
    named = _by_name(strings, marks.name, _NAMED_KINDS)
    collection = strings.find("gc")
    named[(marks.kind == collection) & (collection != NULL)] = Kind.GARBAGE_COLLECTION
    return np.where(named >= 0, named, kinds).astype(np.int8)


def of_operators(trace: Trace) -> I8:
    """The kind of each operator. Reading a value waits only where there is a device to wait for."""
    named = _NAMED_KINDS
    if len(trace.kernels) or len(trace.copies):
        named = (*named, (_READS_A_VALUE, Kind.SYNCHRONISATION))
    found = _by_name(trace.strings, trace.ops.name, named)
    return np.where(found >= 0, found, Kind.OPERATOR).astype(np.int8)


def of_calls(strings: Strings, calls: Api) -> I8:
    """The kind of each host call by its name; `RUNTIME_CALL` for all others."""
    found = _by_name(
        strings,
        calls.name,
        (
            (call_names.SYNCHRONISE, Kind.SYNCHRONISATION),
            (call_names.COPY_CALL, Kind.COPY_CALL),
            (call_names.LAUNCH, Kind.LAUNCH_CALL),
            (_ALLOCATOR, Kind.ALLOCATOR),
        ),
    )
    return np.where(found >= 0, found, Kind.RUNTIME_CALL).astype(np.int8)


def _by_name(
    strings: Strings, names: npt.NDArray[np.int32], rules: tuple[tuple[Pattern[str], Kind], ...]
) -> I8:
    """The kind of the first rule that finds its pattern in each name, NULL for none; looks at each
    distinct name once.
    """
    codes = np.unique(names)
    of_code = np.full(len(strings) + 1, NULL, np.int8)  # NULL is the last one
    for code in codes.tolist():
        name = strings[code] if code >= 0 else ""
        of_code[code] = next((kind for rule, kind in rules if rule.search(name)), NULL)
    return of_code[names]


__all__ = [
    "HOLDING",
    "LABELS",
    "Kind",
    "of_calls",
    "of_marks",
    "of_operators",
    "without_address",
    "writes",
]
