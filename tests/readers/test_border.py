"""Whatever reading a foreign file raises is the one error of an unreadable file; our own faults are
not dressed as such.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import struct
import sys
import tarfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from profharness import readers
from profharness.errors import InputError, UsageError
from profharness.readers.border import reading
from tests.steps import calls_of

FILE = Path("foreign.json")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "more memory than there is"),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
        (OverflowError("int too big to convert"), "too large (int too big to convert)"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "no text"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (struct.error("unpack requires 8 bytes"), "(error: unpack requires 8 bytes)"),
        (zlib.error("Error -3"), "(error: Error -3)"),
        (KeyError("ts"), "(KeyError: 'ts')"),
        (IndexError("out of range"), "IndexError"),
        (ValueError("a\nb"), "(ValueError: a b)"),
        (EOFError(), "EOFError"),
    ],
)
def test_what_a_reader_raises_names_the_file_in_one_line(error: Exception, words: str) -> None:
    with pytest.raises(InputError) as caught, reading(FILE, "kineto"):
        raise error
    assert caught.value.message.startswith("foreign.json cannot be read as kineto: ")
    assert words in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.__cause__ is error


def test_the_words_of_a_library_are_cut() -> None:
    with pytest.raises(InputError) as caught, reading(FILE):
        raise ValueError("x" * 100_000)
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    "error",
    [
        InputError("said already"),
        UsageError("said already"),
        ModuleNotFoundError("pyarrow"),
        OSError(errno.ENOSPC, "No space left on device"),
        KeyboardInterrupt(),
    ],
)
def test_what_is_not_the_fault_of_a_file_passes(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, reading(FILE):
        raise error
    assert caught.value is error


def test_what_nobody_could_catch_counts_and_prints_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    class Unlucky:
        def __del__(self) -> None:
            raise ValueError("in a callback")

    before = sys.unraisablehook
    with pytest.raises(InputError, match="in a callback"), reading(FILE):
        Unlucky().__doc__  # noqa: B018  it is gone at once
    assert sys.unraisablehook is before
    assert capfd.readouterr().err == ""


def test_a_beginning_that_breaks_the_look_at_it_is_an_unreadable_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Careless:
        name = "careless"

        @staticmethod
        def sniff(head: bytes, name: str) -> bool:
            return head.decode("ascii") == name

    path = tmp_path / "table.txt"
    path.write_bytes(b"\xff")
    monkeypatch.setattr(readers, "FORMATS", ())
    monkeypatch.setattr(readers, "_foreign", lambda: (Careless(),))
    with pytest.raises(InputError, match=r"table\.txt cannot be read as careless: .*no text"):
        readers.find_reader(path)


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be"])
def test_text_in_utf_16_is_named_as_the_reason(tmp_path: Path, coding: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes('\ufeff{"traceEvents": []}'.encode(coding))
    with pytest.raises(InputError, match=r"t\.json is text in UTF-16, as a Windows shell saves"):
        readers.read(path)


@pytest.mark.parametrize(
    ("pack", "said"),
    [
        (bz2.compress, "compressed by bzip2"),
        (lzma.compress, "compressed by xz"),
        (lambda text: gzip.compress(gzip.compress(text)), "compressed by gzip twice"),
        (lambda text: packed(text, "w"), "a tar archive"),
        (lambda text: packed(text, "w:gz"), "a tar archive"),
        (
            lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            "Git LFS's pointer",
        ),
        (lambda _: b"<!DOCTYPE html>\n<html></html>", "a web page"),
    ],
)
def test_a_packed_file_is_named_for_what_it_is(
    tmp_path: Path, pack: Callable[[bytes], bytes], said: str
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(pack(b'{"schemaVersion": 1, "traceEvents": []}'))
    with pytest.raises(InputError, match=rf"t\.json is {said}.*, which is not read"):
        readers.read(path)


def packed(text: bytes, mode: Any) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        member = tarfile.TarInfo("t.json")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return file.getvalue()


def test_a_file_of_more_devices_than_can_be_measured_is_refused(tmp_path: Path) -> None:
    def write(count: int, padding: int = 0) -> Path:
        path = tmp_path / f"{count}.json"
        events = ",".join(
            f'{{"ph":"X","cat":"kernel","name":"k","pid":{i},"tid":7,"ts":{i},"dur":2,'
            f'"args":{{"device":{i},"stream":{i}}}}}'
            for i in range(count)
        )
        path.write_text(
            f'{{"schemaVersion":1,"traceEvents":[{events}],"padding":"{" " * padding}"}}'
        )
        return path

    for devices, padding in ((512, 0), (1000, 4 << 20)):
        trace = readers.read(write(devices, padding))
        assert [stream.device for stream in trace.streams] == list(range(devices))
        assert trace.kernels.stream.tolist() == list(range(devices))
    with pytest.raises(InputError, match="names 1000 devices, more than the 5"):
        readers.read(write(1000))
    path = write(20_000)

    def refused() -> None:
        with pytest.raises(InputError, match="names 20000 devices, more than the "):
            readers.read(path)

    assert calls_of(refused) < 100 * 20_000  # not a step for each pair of devices


def test_a_file_of_more_names_of_kernels_than_can_be_judged_is_refused(tmp_path: Path) -> None:
    def write(names: Sequence[str]) -> Path:
        path = tmp_path / "names.json.gz"
        events = ",".join(
            f'{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{i},"dur":1,'
            f'"args":{{"device":0,"stream":7}}}}'
            for i, name in enumerate(names)
        )
        path.write_bytes(gzip.compress(f'{{"schemaVersion":1,"traceEvents":[{events}]}}'.encode()))
        return path

    assert len(readers.read(write([f"k{i}" for i in range(20_000)])).kernels) == 20_000
    with pytest.raises(InputError, match="kernels have 40000 different names, more than the 2"):
        readers.read(write([f"k{i}" for i in range(40_000)]))
    long = "f<" * (9 << 10)
    assert len(readers.read(write([f"{long}{i}" for i in range(100)])).kernels) == 100
    with pytest.raises(InputError, match="kernels have names of 18434890 characters, more than"):
        readers.read(write([f"{long}{i}" for i in range(1000)]))


def test_operators_inside_of_one_another_without_end_are_refused(tmp_path: Path) -> None:
    def write(levels: int) -> Path:
        path = tmp_path / f"{levels}.json"
        events = ",".join(
            f'{{"ph":"X","cat":"cpu_op","name":"o","pid":1,"tid":7,"ts":{i},"dur":{90_000 - 2 * i}}}'
            for i in range(levels)
        )
        path.write_text(f'{{"schemaVersion":1,"traceEvents":[{events}]}}')
        return path

    assert readers.read(write(10_000)).ops.depth.max() == 9_999
    with pytest.raises(InputError, match="more than 10000 of its operators lie inside"):
        readers.read(write(10_002))


def test_times_that_cannot_be_summed_up_are_refused(tmp_path: Path) -> None:
    """Two kernels of 146 years fit into 64 bits, their sum does not: it was negative."""
    path = tmp_path / "r_kernel_trace.csv"
    rows = "".join(
        f"KERNEL_DISPATCH,1,1,1,{i},7,k,{i},0,{2**62 - 1},0,0,64,1,1,64,1,1\n" for i in (1, 2, 3)
    )
    path.write_text(
        "Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,"
        "Start_Timestamp,End_Timestamp,Private_Segment_Size,Group_Segment_Size,Workgroup_Size_X,"
        "Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z\n" + rows
    )
    with pytest.raises(InputError, match="kernels together last longer than 292 years"):
        readers.read(path)


def test_a_file_of_more_counters_than_a_device_has_is_refused(tmp_path: Path) -> None:
    def write(counters: int) -> Path:
        path = tmp_path / "a_counter_collection.csv"
        head = (
            "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,"
            "Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,"
            "Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp"
        )
        ids, end = '1,1,"Agent 4",1,10,10,64,1,"k",64,0,0,8,16', "1.0,1000,2000"
        rows = (f'{ids},"C{number}",{end}' for number in range(counters))
        path.write_text("\n".join((head, *rows, "")))
        return path

    assert len(readers.read(write(10_000)).counters) == 10_000
    with pytest.raises(InputError, match="it has 10001 different hardware counters, more than the"):
        readers.read(write(10_001))
