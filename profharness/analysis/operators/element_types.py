"""Element types of tensors: the words by which traces of all generations name them, bytes of an
element, the peak that applies, and torch's promotion.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from profharness.node.devices import Dtype

Family = Literal["bool", "integer", "float", "complex", "other"]
_RANK: dict[Family, int] = {"bool": 0, "integer": 1, "float": 2, "complex": 3}
_LONG_UNSIGNED = {"uint16", "uint32", "uint64"}


class ElementType(msgspec.Struct, frozen=True, gc=False):
    """One element type. `packed` values share one recorded element of `item_bytes`; `peak` is the
    type whose peak a product of such operands is measured against.
    """

    name: str
    item_bytes: int
    family: Family = "other"
    peak: Dtype | None = None
    packed: int = 1


_TYPES = {
    one.name: one
    for one in (
        ElementType("bool", 1, "bool"),
        ElementType("uint8", 1, "integer", "int8"),
        ElementType("int8", 1, "integer", "int8"),
        ElementType("int16", 2, "integer"),
        ElementType("uint16", 2, "integer"),
        ElementType("int32", 4, "integer"),
        ElementType("uint32", 4, "integer"),
        ElementType("int64", 8, "integer"),
        ElementType("uint64", 8, "integer"),
        ElementType("float16", 2, "float", "fp16"),
        ElementType("bfloat16", 2, "float", "bf16"),
        ElementType("float32", 4, "float", "fp32"),
        ElementType("float64", 8, "float", "fp64"),
        ElementType("complex32", 4, "complex", "fp16"),
        ElementType("complex64", 8, "complex", "fp32"),
        ElementType("complex128", 16, "complex", "fp64"),
        ElementType("float8_e4m3fn", 1, "other", "fp8"),
        ElementType("float8_e4m3fnuz", 1, "other", "fp8"),
        ElementType("float8_e5m2", 1, "other", "fp8"),
        ElementType("float8_e5m2fnuz", 1, "other", "fp8"),
        ElementType("float8_e8m0fnu", 1),
        ElementType("float4_e2m1fn_x2", 1, "other", "fp4", 2),
        ElementType("qint8", 1, "other", "int8"),
        ElementType("quint8", 1, "other", "int8"),
        ElementType("qint32", 4),
        ElementType("quint4x2", 1, packed=2),
        ElementType("quint2x4", 1, packed=4),
        ElementType("bits8", 1),
        ElementType("bits16", 2),
    )
}
_WORDS = {
    "bool": "bool",
    "unsigned char": "uint8",
    "signed char": "int8",
    "char": "int8",
    "short": "int16",
    "short int": "int16",
    "unsigned short": "uint16",
    "short unsigned int": "uint16",
    "int": "int32",
    "unsigned int": "uint32",
    "long": "int64",
    "long int": "int64",
    "long long": "int64",
    "long long int": "int64",
    "__int64": "int64",
    "unsigned long": "uint64",
    "long unsigned int": "uint64",
    "unsigned __int64": "uint64",
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "at::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "at::BFloat16": "bfloat16",
    "c10::complex<c10::Half>": "complex32",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e4m3fnuz": "float8_e4m3fnuz",
    "c10::Float8_e5m2": "float8_e5m2",
    "c10::Float8_e5m2fnuz": "float8_e5m2fnuz",
    "c10::Float8_e8m0fnu": "float8_e8m0fnu",
    "c10::Float4_e2m1fn_x2": "float4_e2m1fn_x2",
    "c10::qint8": "qint8",
    "c10::quint8": "quint8",
    "c10::qint32": "qint32",
    "c10::quint4x2": "quint4x2",
    "c10::quint2x4": "quint2x4",
    "c10::bits8": "bits8",
    "c10::bits16": "bits16",
}
BY_WORD: dict[str, ElementType] = {word: _TYPES[name] for word, name in _WORDS.items()}
"""Element types by the C++ name that the profiler writes (compilers spell integers differently)."""

NOT_TENSORS = frozenset(
    (
        "",
        "None",
        "Scalar",
        "ScalarList",
        "SymInt",
        "SymFloat",
        "SymBool",
        # torch 1.8 and 1.9 wrote the tag of the value (aten/src/ATen/core/ivalue.h)
        "Int",
        "Double",
        "Bool",
        "ComplexDouble",
        "String",
        "Device",
        "Stream",
        "Generator",
        "Storage",
        "Object",
        "Tuple",
        "Capsule",
        "Enum",
        "GenericDict",
        "IntList",
        "DoubleList",
        "BoolList",
    )
)
"""Words of arguments that hold no tensor."""

TENSOR_LISTS = frozenset(("TensorList", "GenericList"))
"""Words of lists; 2021's GenericList holds tensors or numbers, and its extents tell which."""

_SCALAR_TYPES = dict(
    enumerate(
        (
            *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
            *("complex32", "complex64", "complex128", "bool", "qint8", "quint8", "qint32"),
            *("bfloat16", "quint4x2", "quint2x4", "bits8", "bits8", "bits8", "bits8", "bits16"),
            *("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"),
            *("uint16", "uint32", "uint64"),
        )
    )
) | {44: "float8_e8m0fnu", 45: "float4_e2m1fn_x2"}


def named(name: str) -> ElementType:
    """The type of torch's name, as `float32`. Raises KeyError."""
    return _TYPES[name]


def names() -> tuple[str, ...]:
    """All names, as torch has them."""
    return tuple(_TYPES)


def by_number(number: int) -> ElementType | None:
    """The type of a recorded ScalarType, which is a number (c10/core/ScalarType.h)."""
    return _TYPES.get(_SCALAR_TYPES.get(number, ""))


def promote(one: ElementType, other: ElementType) -> ElementType | None:
    """The type that both fit in, as `torch.promote_types`; None where torch has none (8-bit floats
    among others, unsigned integers of two bytes and more among others than floats).
    """
    if one is other:
        return one
    low, high = sorted((one, other), key=lambda kind: _RANK.get(kind.family, -1))
    if low.family == "other":
        return None
    if high.family == "float":
        return _float(low, high)
    if {low.name, high.name} & _LONG_UNSIGNED:
        return None
    if high.family == "complex":
        return _complex(low, high)
    return _integer(low, high) if low.family == "integer" else high


def _float(low: ElementType, high: ElementType) -> ElementType:
    if low.family != "float":
        return high
    if {low.name, high.name} == {"float16", "bfloat16"}:
        return _TYPES["float32"]
    return max(low, high, key=lambda kind: kind.item_bytes)


def _complex(low: ElementType, high: ElementType) -> ElementType:
    """The complex type whose halves hold both."""
    needed = low if low.family == "complex" else _TYPES[_COMPLEX_OF.get(low.name, high.name)]
    return max(needed, high, key=lambda kind: kind.item_bytes)


def _integer(low: ElementType, high: ElementType) -> ElementType:
    small, wide = sorted((low, high), key=lambda kind: kind.item_bytes)
    return wide if wide.item_bytes > small.item_bytes else _TYPES["int16"]


def result_type(
    tensors: list[ElementType], zero_dim: list[ElementType], numbers: list[ElementType]
) -> ElementType | None:
    """The type of an elementwise result, as `torch.result_type` with torch's default types.

    `tensors` have extents, `zero_dim` have none, and `numbers` are Python's (as bool, int64,
    float64 or complex128); the later a group stands, the less it counts: it raises the type only
    where its family is higher. None where there is nothing, or no such type.
    """
    result: ElementType | None = None
    for group in (tensors, zero_dim, [_DEFAULT.get(kind.name, kind) for kind in numbers]):
        if not group:
            continue
        joined: ElementType | None = group[0]
        for kind in group[1:]:
            joined = None if joined is None else promote(joined, kind)
        result = joined if result is None or joined is None else _raised(result, joined)
        if result is None:
            return None
    return result


def _raised(result: ElementType, joined: ElementType) -> ElementType | None:
    """A type that meets one of a group that counts less: a real type that becomes complex keeps its
    width (c10 `combine_categories`).
    """
    if _RANK.get(joined.family, -1) <= _RANK.get(result.family, -1):
        return result
    if result.family == "float":
        return _TYPES[_COMPLEX_OF[result.name]]
    return promote(result, joined)


_COMPLEX_OF = {
    "float16": "complex32",
    "bfloat16": "complex64",
    "float32": "complex64",
    "float64": "complex128",
}
_DEFAULT = {"float64": _TYPES["float32"], "complex128": _TYPES["complex64"]}
