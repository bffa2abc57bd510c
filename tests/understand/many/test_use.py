"""How well the devices of several files were used: read one by one, and the same as of all at
once.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

import profharness
from profharness.analysis.use.records import FilesUse, UseRow
from profharness.errors import InputError
from profharness.understand.device_use import use_of
from profharness.understand.load import load
from profharness.understand.many import use as uses
from profharness.understand.many.jobs import FileGroup
from tests.needs import packages
from tests.readers.kineto.kineto_files import document, kernel, launch, op, write

SQUARE = {"Input_Dims": [[512, 512], [512, 512]], "Input_type": ["float", "float"]}


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def rank(folder: Path, number: int) -> Path:
    """A product whose kernel takes a time of its own, on an A100 of its own."""
    events = [
        op("aten::mm", 0, 30, 1, **SQUARE),
        launch("cudaLaunchKernel", 5, 2, 1, External_id=1),
        kernel("gemm", 10, 20 + number, correlation=1, External_id=1),
    ]
    device = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "computeMajor": 8}
    return write(folder / f"rank{number}.json", document(events, deviceProperties=[device]))


@pytest.mark.usefixtures("no_collection")
def test_each_file_is_let_go_before_the_next_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, read, load_files = [rank(tmp_path, number) for number in range(4)], [], uses.load_files

    def watched(paths, **asked):
        assert [trace() for trace in read] == [None] * len(read)
        loaded = load_files(paths, **asked)
        read.append(weakref.ref(loaded.trace))
        return loaded

    monkeypatch.setattr(uses, "load_files", watched)
    used = profharness.read(*files).device_use
    assert isinstance(used, FilesUse)
    assert (used.files, len(read)) == (4, 4)


def test_the_use_is_that_of_all_files_at_once(tmp_path: Path) -> None:
    files = [rank(tmp_path, number) for number in range(3)]
    found, whole = profharness.read(*files).device_use, use_of(load(files, allow_unaligned=True))
    assert found is not None
    assert whole is not None
    (row,), (expected,) = found.operators, whole.operators
    assert (found.device_ns, row.name, row.calls) == (63_000, "aten::mm", 3)
    for name in UseRow.__struct_fields__:
        assert getattr(row, name) == pytest.approx(getattr(expected, name)), name
    assert (found.device_ns, found.roofs, found.known) == (
        whole.device_ns,
        whole.roofs,
        whole.known,
    )


def test_files_of_one_device_are_read_together() -> None:
    """Their device time overlaps, so that it cannot be added."""
    names = {"a.json": "GPU-1", "b.json": "GPU-2", "c.json": "GPU-1"}
    read = [
        uses._GroupUse(FileGroup((Path(name),)), None, frozenset({("host", device)}))
        for name, device in names.items()
    ]
    assert uses._sharing(read) == [FileGroup((Path("a.json"), Path("c.json")))]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    broken = write(tmp_path / "broken.json", "{")
    with pytest.raises(InputError, match=r"broken\.json"):
        uses.use_of_files([rank(tmp_path, 0), broken])


def test_a_roofline_is_drawn_of_several_files(tmp_path: Path) -> None:
    packages("matplotlib", "mplhep")
    files = [rank(tmp_path, number) for number in range(2)]
    figure = profharness.read(*files).plot("roofline")
    assert figure.axes
