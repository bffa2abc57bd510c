"""Shapes as profharness, trtexec and deepsparse.benchmark write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.cli import run_cli
from profharness.errors import UsageError
from profharness.options.settings import COMMAND_LINE, from_mapping, read_scan_file
from profharness.options.shapes import BATCH, read, read_items

DIMS = st.lists(st.integers(1, 4096), min_size=1, max_size=5).map(tuple)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_./]{0,9}(:[0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("words", "shapes"),
    [
        (["a:2,100", "b:7"], {"a": (2, 100), "b": (7,)}),
        (["input:1x3x224x224,mask:1x16"], {"input": (3, 224, 224), "mask": (16,)}),
        (["'input:0':1x3x8", "b:1x4"], {"input:0": (3, 8), "b": (4,)}),
        (["[1,128],[1,128]"], {"[0]": (128,), "[1]": (128,)}),
        (["[1, 3, 224, 224]"], {"[0]": (3, 224, 224)}),
        (["a:8x3,b:8x2"], {"a": (3,), "b": (2,), BATCH: (8,)}),
        (["[16,128],[16,64]"], {"[0]": (128,), "[1]": (64,), BATCH: (16,)}),
        (["a:2,100", "b:4x7"], {"a": (2, 100), "b": (7,), BATCH: (4,)}),
    ],
)
def test_the_three_forms(words: list[str], shapes: dict[str, tuple[int, ...]]) -> None:
    assert read(words) == shapes
    assert read_items(words) == {name: dims for name, dims in shapes.items() if name != BATCH}


@given(st.dictionaries(NAMES, DIMS, min_size=1, max_size=4), st.integers(1, 64))
def test_every_form_of_the_same_shapes_says_the_same(
    shapes: dict[str, tuple[int, ...]], batch: int
) -> None:
    ours = [f"{name}:{','.join(map(str, dims))}" for name, dims in shapes.items()]
    whole = {name: (batch, *dims) for name, dims in shapes.items()}
    trtexec = ",".join(f"{name}:{'x'.join(map(str, dims))}" for name, dims in whole.items())
    deepsparse = ",".join(str(list(dims)) for dims in whole.values())
    expected = {} if batch == 1 else {BATCH: (batch,)}
    assert read(ours) == shapes
    assert read([trtexec]) == {**shapes, **expected}
    assert list(read([deepsparse]).values()) == [*shapes.values(), *expected.values()]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["[1,a]"], "a dimension that is no whole number above 0"),
        (["[1,2],[3"], "not a row of lists"),
        (["[]"], "a dimension that is no whole number"),
        (["a:1x0"], "a dimension that is no whole number above 0"),
        (["a:1x3,:1x4"], "not NAME:1x3x224x224"),
        (["a:2x3,b:4x5"], "these differ: 2, 4"),
        (["a:1x3,b:2x5"], "these differ: 1, 2"),
        (["[1,2]", "a:3"], "some shapes have names"),
        (["a:3", "a:1x4"], "a stands there twice"),
        (["a:1x3,a:1x4"], "a stands there twice"),
        (["1x3x224"], "not NAME:d1,d2"),
    ],
)
def test_what_cannot_be_read_says_what_can(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        read(words)
    assert error.value.hint


def test_the_batch_of_the_shapes_is_measured_where_no_other_was_asked_for() -> None:
    asked = from_mapping({"shape": read(["a:8x3"])}, COMMAND_LINE)
    assert (asked.batch_sizes, asked.shape) == ((8,), {"a": (3,)})
    asked = from_mapping({"shape": read(["a:1x3"]), "batch_sizes": "1,4"}, COMMAND_LINE)
    assert (asked.batch_sizes, asked.shape) == ((1, 4), {"a": (3,)})
    with pytest.raises(UsageError, match="begin with a batch of 8, and --batch-sizes says 1,4"):
        from_mapping({"shape": read(["a:8x3"]), "batch_sizes": "1,4"}, COMMAND_LINE)


def test_a_scan_file_may_hold_the_text(tmp_path: Path) -> None:
    path = tmp_path / "scan.toml"
    path.write_text('shape = "[8,128],[8,64]"\n')
    asked = from_mapping(read_scan_file(path), str(path))
    assert (asked.batch_sizes, asked.shape) == ((8,), {"[0]": (128,), "[1]": (64,)})


@pytest.mark.parametrize(
    "words", [("-shapes", "[16,128],[16,128]"), ("--shapes", "a:16x128,b:16x128")]
)
def test_the_spellings_of_other_tools_reach_the_plan(
    words: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "run"
    command = ["run", "particlenet", "--streams", "1", *words, "--dry-run", "-o", str(target)]
    assert run_cli(command) == 0
    assert "torch-b16-n1" in capsys.readouterr().out
