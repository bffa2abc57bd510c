"""The ready file, as the harness reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.errors import InputError
from profharness.serving import ready


def test_what_is_written_is_read_again(tmp_path: Path):
    said = ready.Ready(
        v=1,
        host="node",
        grpc="127.0.0.1:1",
        opened=True,
        models=(ready.Model("m", inputs=(ready.Tensor("x", "FP32", (-1,)),)),),
    )
    (tmp_path / "r").write_bytes(ready.encode(said))
    assert ready.read(tmp_path / "r") == said
    assert said.reach == "node"


@pytest.mark.parametrize("text", ["", "{", '{"v": 2}', '{"v": 1, "models": [{}]}'])
def test_what_is_none(tmp_path: Path, text: str):
    (tmp_path / "r").write_text(text)
    with pytest.raises(InputError, match="ready file"):
        ready.read(tmp_path / "r")
