"""Inference requests of the KServe v2 protocol, serialised once: a level sends the same few
messages over and over.

Per request only the head is made: it carries the parameter `profharness_seq`, by which the server's
executions are joined to the client's requests. Protobuf concatenates, and HTTP puts its JSON before
the tensors, so in both protocols a message is head + payload. Compression keeps to that: the
payload is compressed beforehand. https://github.com/kserve/open-inference-protocol, with Triton's
extensions for binary tensors and shared memory.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from profharness_workloads.shared.protocol import BAD_INPUT, Refusal

SEQUENCE = "profharness_seq"
GRPC_SERVICE = "/inference.GRPCInferenceService/"
DTYPES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
}
_LEVEL = 1  # the fastest; a client that compresses cannot wait


class Region(NamedTuple):
    """A piece of a shared-memory region that the server knows by name."""

    region: str
    offset: int
    size: int


class Tensor(NamedTuple):
    """One input: its array, and where it lies in shared memory if it does."""

    name: str
    datatype: str
    array: Any
    shared: Optional[Region] = None


def numpy_type(datatype: str) -> str:
    """The numpy name of a KServe type. Raises Refusal for one that is no plain number."""
    if datatype not in DTYPES:
        raise Refusal(
            "the model has an input of type %s, which the load generator cannot make" % datatype,
            code=BAD_INPUT,
        )
    return DTYPES[datatype]


# protobuf, by hand: five wire types of which two are used
# (https://protobuf.dev/programming-guides/encoding)


def varint(value: int) -> bytes:
    """A whole number of at least 0 in protobuf's base-128 form, lowest seven bits first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, body: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(body)) + body


def _parameter(key: str, value: Any) -> bytes:
    """An entry of map<string, InferParameter>: int64_param is its field 2, string_param field 3."""
    inner = field(3, value.encode("utf-8")) if isinstance(value, str) else b"\x10" + varint(value)
    return field(1, key.encode("utf-8")) + field(2, inner)


def _shared_parameters(region: Region, number: int) -> bytes:
    pairs = [("shared_memory_region", region.region), ("shared_memory_byte_size", region.size)]
    if region.offset:
        pairs.append(("shared_memory_offset", region.offset))
    return b"".join(field(number, _parameter(*pair)) for pair in pairs)


def _grpc_input(tensor: Tensor) -> bytes:
    shape = b"".join(varint(n) for n in tensor.array.shape)
    body = (
        field(1, tensor.name.encode("utf-8"))
        + field(2, tensor.datatype.encode("ascii"))
        + field(3, shape)
    )
    return field(5, body + (_shared_parameters(tensor.shared, 4) if tensor.shared else b""))


def grpc_payload(model: str, version: str, tensors: Sequence[Tensor]) -> bytes:
    """A ModelInferRequest without the sequence parameter (grpc_predict_v2.proto)."""
    parts = [field(1, model.encode("utf-8"))]
    if version:
        parts.append(field(2, version.encode("utf-8")))
    parts += [_grpc_input(tensor) for tensor in tensors]
    parts += [field(7, tensor.array.tobytes()) for tensor in tensors if tensor.shared is None]
    return b"".join(parts)


def grpc_outputs(outputs: Mapping[str, Region]) -> bytes:
    """The part of a ModelInferRequest that sends outputs to shared memory."""
    return b"".join(
        field(6, field(1, name.encode("utf-8")) + _shared_parameters(region, 2))
        for name, region in outputs.items()
    )


_KEY = field(1, SEQUENCE.encode("ascii"))


def grpc_sequence(sequence: int) -> bytes:
    """The field `parameters` with the request's number."""
    number = b"\x10" + varint(sequence)
    entry = _KEY + b"\x12" + bytes([len(number)]) + number
    return b'"' + bytes([len(entry)]) + entry


def _http_shared(region: Region) -> Dict[str, Any]:
    parameters: Dict[str, Any] = {
        "shared_memory_region": region.region,
        "shared_memory_byte_size": region.size,
    }
    if region.offset:
        parameters["shared_memory_offset"] = region.offset
    return parameters


def _http_input(tensor: Tensor) -> Dict[str, Any]:
    where = (
        _http_shared(tensor.shared)
        if tensor.shared
        else {"binary_data_size": int(tensor.array.nbytes)}
    )
    return {
        "name": tensor.name,
        "shape": [int(n) for n in tensor.array.shape],
        "datatype": tensor.datatype,
        "parameters": where,
    }


def http_json(tensors: Sequence[Tensor], outputs: Mapping[str, Region]) -> bytes:
    """The JSON part, with `%20d` where the sequence goes: blanks before a number are allowed, so
    the length stays.
    """
    rest: Dict[str, Any] = {"inputs": [_http_input(tensor) for tensor in tensors]}
    if outputs:
        rest["outputs"] = [
            {"name": name, "parameters": _http_shared(region)} for name, region in outputs.items()
        ]
    text = json.dumps(rest, separators=(",", ":")).replace("%", "%%")
    return (
        '{"parameters":{"%s":%%20d,"binary_data_output":true},%s' % (SEQUENCE, text[1:])
    ).encode("utf-8")


class Compressed:
    """A payload compressed once, to which a head compressed per request is put in front (RFC 1950,
    1951, 1952).

    Raw deflate streams may follow each other when the first ends on a byte with its window flushed
    and the second refers to nothing before itself; only the checksum runs over both.
    """

    def __init__(self, method: str, payload: bytes):
        self._gzip = method == "gzip"
        self._payload = payload
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._packed = packer.compress(payload) + packer.flush()

    def joined(self, head: bytes) -> bytes:
        """The whole compressed message."""
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
        if self._gzip:
            check = zlib.crc32(self._payload, zlib.crc32(head))
            opening = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
            ending = struct.pack("<II", check, (len(head) + len(self._payload)) & 0xFFFFFFFF)
        else:
            opening, ending = (
                b"\x78\x01",
                struct.pack(">I", zlib.adler32(self._payload, zlib.adler32(head))),
            )
        return b"".join((opening, first, self._packed, ending))


class Message(NamedTuple):
    """What a client sends: `items` in it, and either protocol's fixed part. `json` is empty for
    gRPC and plain bodies.
    """

    items: int
    payload: bytes
    json: bytes = b""
    packed: Optional[Compressed] = None

    def parts(self, sequence: int) -> Tuple[bytes, bytes, int]:
        """(head, payload, length of the JSON part or -1) of one request; a `sequence` below 0 is
        not sent.
        """
        if self.json:
            head = self.json % sequence
            length = len(head)
        else:
            head, length = (grpc_sequence(sequence) if sequence >= 0 else b""), -1
        if self.packed is not None:
            return self.packed.joined(head), b"", length
        return head, self.payload, length


def grpc_message(
    model: str,
    version: str,
    tensors: Sequence[Tensor],
    outputs: Mapping[str, Region],
    compression: str,
) -> Message:
    """A ModelInferRequest without its sequence parameter; `outputs` names the regions of shared
    memory for answers, `compression` is none, gzip or deflate.
    """
    payload = grpc_payload(model, version, tensors) + grpc_outputs(outputs)
    return Message(_items(tensors), payload, packed=_packed(compression, payload))


def http_message(
    tensors: Sequence[Tensor], outputs: Mapping[str, Region], compression: str
) -> Message:
    """The JSON and the binary tensors of a request over HTTP; tensors in shared memory are only
    named in the JSON.
    """
    payload = b"".join(tensor.array.tobytes() for tensor in tensors if tensor.shared is None)
    return Message(
        _items(tensors), payload, http_json(tensors, outputs), _packed(compression, payload)
    )


def plain_message(body: bytes, items: int, compression: str) -> Message:
    """A body as the user gave it, for servers that do not speak KServe."""
    return Message(items, body, packed=_packed(compression, body))


def _packed(compression: str, payload: bytes) -> Optional[Compressed]:
    return Compressed(compression, payload) if compression != "none" else None


def _items(tensors: Sequence[Tensor]) -> int:
    return int(tensors[0].array.shape[0]) if tensors and tensors[0].array.ndim else 1


def contiguous(arrays: Sequence[Any]) -> List[Any]:
    """The arrays as the wire wants them: C order, little endian."""
    return [np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")) for array in arrays]
