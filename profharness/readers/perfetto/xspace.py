"""XSpace files (`*.xplane.pb`), which the profilers of TensorFlow and JAX write: told apart from
Perfetto traces, whose first bytes look the same, and refused.

An XSpace holds planes in field 1, as a Perfetto trace holds packets. A plane begins with its number
(field 1, a varint, left out where it is 0) and its name (field 2): `/host:CPU`, `/device:GPU:0`,
`Task Environment` (tsl/profiler/protobuf/xplane.proto). No packet of Perfetto begins so: its field
1 is no varint, and its field 2 is a process tree, whose bytes are no such text.
"""

from __future__ import annotations

import re
from pathlib import Path

from profharness.errors import InputError

_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_FIRST_PLANE = re.compile(
    rb"\x0a" + _VARINT + rb"(?:\x08" + _VARINT + rb")?\x12[\x01-\x7f]"
    rb"(?:/(?:host|device):|Task Environment)"
)
_SUFFIXES = (".xplane.pb", ".xplane.pb.gz")


def is_xspace(head: bytes, name: str) -> bool:
    """Whether a file that begins so, or is called so, is an XSpace."""
    return _FIRST_PLANE.match(head) is not None or (
        name.endswith(_SUFFIXES) and head.startswith(b"\x0a")
    )


def refusal(path: Path) -> InputError:
    """The error for such a file."""
    return InputError(
        f"{path} is an XSpace (xplane.pb), as the profilers of TensorFlow and JAX write it: "
        "profharness does not read this format",
        "open it in XProf or TensorBoard, or record the program by "
        "`profharness run --profile rocprofv3 -- COMMAND`",
    )
