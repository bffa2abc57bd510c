"""Where the values stand in the driver's `gpu_metrics` file: AMD's binary tables v1.3 to v1.9.

The tables are those of drivers/gpu/drm/amd/include/kgd_pp_interface.h, little endian. The driver
fills a table with ones before it sets anything, so a field of ones in its own width was not set. Up
to v1.8 a table is a fixed structure, known by its revision and its exact size; v1.9 lists
attributes, each with its own type and length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

HEADER = struct.Struct("<HBB")  # size of the table, format and content revision
KIB = 1024
MAX_BYTES = 16384  # of a table; v1.8 has 3872
_TYPES = "BbHhIiQq"  # codes 0 to 7 of an attribute's type, as struct names them


class Field(NamedTuple):
    """`repeat` values one after the other, all of the same struct `code`."""

    offset: int
    code: str
    repeat: int = 1


class Xcps(NamedTuple):
    """Per partition, the busy figures (u32) of its compute dies: where the first partition's begin,
    and how far apart they lie.
    """

    partitions: int
    first: int
    stride: int


class Layout(NamedTuple):
    """Fields by our name for them. `attributes` is how many there must be in a table of attributes,
    else -1.
    """

    size: int
    version: str
    fields: Mapping[str, Field]
    xcps: Xcps | None = None
    attributes: int = -1


def _fixed(
    size: int,
    version: str,
    fields: Mapping[str, tuple[int, str] | tuple[int, str, int]],
    xcps: Xcps | None = None,
) -> Layout:
    return Layout(size, version, {name: Field(*place) for name, place in fields.items()}, xcps)


_MI300 = {
    "temperature_hotspot": (4, "H"),
    "temperature_memory": (6, "H"),
    "power": (10, "H"),
    "gpu": (12, "H"),
    "memory": (14, "H"),
}


def _with_residencies(first: int) -> dict[str, tuple[int, str]]:
    """Six accumulators in a row (v1.6 and later)."""
    names = (
        "accumulation",
        "residency_prochot",
        "residency_power",
        "residency_socket",
        "residency_regulator",
        "residency_hbm",
    )
    return {name: (first + 4 * place, "I") for place, name in enumerate(names)}


FIXED: dict[tuple[int, int], Layout] = {
    (1, 3): _fixed(
        120,
        "1.3",
        {
            "temperature_edge": (4, "H"),
            "temperature_hotspot": (6, "H"),
            "temperature_memory": (8, "H"),
            "gpu": (16, "H"),
            "memory": (18, "H"),
            "power": (22, "H"),
            "energy": (24, "Q"),
            "stamp": (32, "Q"),
            "clock_gpu": (54, "H"),
            "clock_soc": (56, "H"),
            "clock_memory": (58, "H"),
            "throttle_status": (68, "I"),
            "throttle": (112, "Q"),
        },
    ),
    (1, 4): _fixed(
        288,
        "1.4",
        {
            **_MI300,
            "energy": (24, "Q"),
            "stamp": (32, "Q"),
            "throttle_status": (40, "I"),
            "xgmi_read": (104, "Q", 8),
            "xgmi_written": (168, "Q", 8),
            "clock_gpu": (240, "H", 8),
            "clock_soc": (256, "H", 4),
            "clock_memory": (280, "H"),
        },
    ),
    (1, 5): _fixed(
        360,
        "1.5",
        {
            **_MI300,
            "energy": (88, "Q"),
            "stamp": (96, "Q"),
            "throttle_status": (104, "I"),
            "xgmi_read": (176, "Q", 8),
            "xgmi_written": (240, "Q", 8),
            "clock_gpu": (312, "H", 8),
            "clock_soc": (328, "H", 4),
            "clock_memory": (352, "H"),
        },
    ),
    (1, 6): _fixed(
        1664,
        "1.6",
        {
            **_MI300,
            **_with_residencies(32),
            "energy": (16, "Q"),
            "stamp": (24, "Q"),
            "gpu_accumulated": (68, "I"),
            "memory_accumulated": (72, "I"),
            "xgmi_read": (128, "Q", 8),
            "xgmi_written": (192, "Q", 8),
            "clock_gpu": (264, "H", 8),
            "clock_soc": (280, "H", 4),
            "clock_memory": (304, "H"),
            "partitions": (306, "H"),
        },
        Xcps(8, 312, 168),
    ),
    (1, 7): _fixed(
        2208,
        "1.7",
        {
            **_MI300,
            **_with_residencies(40),
            "energy": (24, "Q"),
            "stamp": (32, "Q"),
            "gpu_accumulated": (76, "I"),
            "memory_accumulated": (80, "I"),
            "xgmi_read": (136, "Q", 8),
            "xgmi_written": (200, "Q", 8),
            "clock_gpu": (296, "H", 8),
            "clock_soc": (312, "H", 4),
            "clock_memory": (336, "H"),
            "partitions": (338, "H"),
        },
        Xcps(8, 344, 232),
    ),
}
FIXED[1, 8] = FIXED[1, 7]._replace(size=3872, version="1.8", xcps=Xcps(8, 344, 440))

# Numbers of the attributes of v1.9 that we read.
ATTRIBUTES = {
    0: "temperature_hotspot",
    1: "temperature_memory",
    3: "power",
    4: "gpu",
    5: "memory",
    7: "energy",
    8: "stamp",
    9: "accumulation",
    10: "residency_prochot",
    11: "residency_power",
    12: "residency_socket",
    13: "residency_regulator",
    14: "residency_hbm",
    20: "gpu_accumulated",
    21: "memory_accumulated",
    29: "xgmi_read",
    30: "xgmi_written",
    33: "clock_gpu",
    34: "clock_soc",
    37: "clock_memory",
    38: "partitions",
    40: "busy",
}
_UNIT_BITS, _TYPE_BITS, _ID_BITS = (
    24,
    20,
    10,
)  # unit, type, number and count of values lie in one 64-bit word


def layout_of(data: bytes) -> Layout | str:
    """The layout of a table, or why it is not known."""
    if len(data) < HEADER.size:
        return f"gpu_metrics holds {len(data)} bytes only"
    size, form, content = HEADER.unpack_from(data)
    if size != len(data):
        return f"gpu_metrics v{form}.{content} says {size} bytes and holds {len(data)}"
    if (form, content) == (1, 9):
        return _layout_of_attributes(data)
    fixed = FIXED.get((form, content))
    if fixed is None:
        return f"gpu_metrics v{form}.{content} is not known"
    return (
        fixed
        if fixed.size == size
        else f"gpu_metrics v{form}.{content} has {size} bytes, not {fixed.size}"
    )


def _layout_of_attributes(data: bytes) -> Layout | str:
    """v1.9: a number of attributes, then each as a 64-bit description and its values, packed."""
    try:
        (count,) = struct.unpack_from("<i", data, HEADER.size)
        fields = {
            ATTRIBUTES[number]: field
            for number, field in _attributes(data, count)
            if number in ATTRIBUTES
        }
    except (struct.error, IndexError):
        return "gpu_metrics v1.9 ends within an attribute"
    return Layout(len(data), "1.9", fields, attributes=count)


def _attributes(data: bytes, count: int) -> Iterator[tuple[int, Field]]:
    """Number and place of each attribute. Raises struct.error or IndexError where the table is too
    short or a type is unknown.
    """
    at = HEADER.size + 4
    for _ in range(count):
        (description,) = struct.unpack_from("<Q", data, at)
        code = _TYPES[description >> _TYPE_BITS & 0xF]
        field = Field(at + 8, code, description & 0x3FF)
        at = field.offset + struct.calcsize(code) * field.repeat
        if at > len(data):
            raise IndexError
        yield description >> _ID_BITS & 0x3FF, field
