"""XSpace files of TensorFlow and JAX begin like Perfetto traces and are refused by name."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from profharness import readers
from profharness.errors import InputError
from profharness.readers.perfetto.xspace import is_xspace
from profharness.writers.perfetto import write
from tests.analysis.scene import Scene


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _plane(name: str, number: int = 0, size: int = 40) -> bytes:
    """A plane with one line of so many bytes, as xplane.proto has it."""
    lead = b"\x08" + _varint(number) if number else b""
    return _field(1, lead + _field(2, name.encode()) + _field(3, b"\x10\x01" * size))


@pytest.mark.parametrize(
    "content",
    [
        _plane("/host:CPU", 1) + _plane("/device:GPU:0", 2) + _field(4, b"node1"),
        _plane("/device:TPU:0") + _field(4, b"node1"),
        _plane("Task Environment", 300, size=300_000),
        _plane("/host:metadata"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_an_xspace_is_refused_by_its_name_with_what_to_do(
    tmp_path: Path, content: bytes, *, packed: bool
) -> None:
    path = tmp_path / ("trace.pb.gz" if packed else "trace.pb")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputError, match=r"is an XSpace \(xplane.pb\)") as refused:
        readers.read(path)
    assert "XProf or TensorBoard" in refused.value.hint


def test_a_plane_without_a_known_name_is_known_by_the_files_name(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(_plane("#Chexagonal", 7) + _plane("more", 8))
    with pytest.raises(InputError, match="is an XSpace"):
        readers.read(path)


def test_a_perfetto_trace_is_none(tmp_path: Path) -> None:
    scene = Scene()
    scene.kernel(10, 20, name="/host:CPU")
    path = tmp_path / "own.pftrace"
    write(scene.build(), path)
    assert not is_xspace(path.read_bytes()[:256], path.name)
    assert len(readers.read(path).kernels) == 1
