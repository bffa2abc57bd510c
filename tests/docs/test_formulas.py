"""The table of the document on formulas works as it says, and the document lists every key."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

from profharness.analysis.operators.engine import Engine
from profharness.analysis.operators.entries import AnyEntry, Entry
from profharness.analysis.operators.table import load, read_texts
from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "formulas.md").read_text(encoding="utf-8")
BF16 = json.dumps(["c10::BFloat16"] * 3)


def test_the_example_counts_what_it_says(tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(re.findall(r"^```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[0])
    engine = Engine(load(read_texts([table])))
    said = re.findall(r"`(mylib::\w+)` on (.*?) does\s(\d+) FLOPs", TEXT.replace("\n", " "))
    assert [name for name, _, _ in said] == ["mylib::fused_linear", "mylib::route_top2"]
    for name, operands, flops in said:
        dims = [json.loads(text) for text in re.findall(r"`(\[[\d, ]+\])`", operands)]
        work = engine.work(name, json.dumps(dims), BF16)
        assert work.flops == int(flops), name
        assert work.low_bytes
    assert engine.kernel_work("my_gemm_64x32x16").flops == 2 * 64 * 32 * 16


def test_every_key_and_kind_is_described() -> None:
    shared = set(Entry.__struct_fields__)
    for key in shared:
        assert re.search(rf"^\| .*`{key}`.* \|", TEXT, re.MULTILINE), key
    for kind in get_args(AnyEntry):
        row = re.search(rf"^\| `{kind.__struct_config__.tag}` \| (.*) \|$", TEXT, re.MULTILINE)
        assert row, kind
        if kind.__struct_config__.tag != "attention_backward":
            missing = {
                key for key in set(kind.__struct_fields__) - shared if f"`{key}`" not in row[1]
            }
            assert not missing, kind
