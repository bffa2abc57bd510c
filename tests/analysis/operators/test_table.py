"""Tables of formulas: ours against torch's schemas, wrong ones, further ones of users and packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profharness import families
from profharness.analysis.operators import entries, table
from profharness.analysis.operators.engine import Engine
from profharness.analysis.operators.records import NOTHING
from profharness.errors import InputError
from tests import needs
from tests.steps import calls_of

MINE = """
[[formula]]
match = "mine::gemm"
kind = "matmul"
a = 1
b = 0
transposed_b = true

[[formula]]
match = "aten::mm"
kind = "expression"
flops = "7"

[[formula]]
match = '/^my_gemm_(\\d+)x(\\d+)x(\\d+)$/'
kernel = true
kind = "expression"
flops = "2 * g[0] * g[1] * g[2]"
dtype = "fp8"
"""
MM = (json.dumps([[3, 5], [5, 7]]), json.dumps(["float", "float"]))


def engine_of(tmp_path: Path, text: str) -> Engine:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return Engine(table.load(table.read_texts([path])))


def test_a_users_table_adds_and_wins(tmp_path):
    engine = engine_of(tmp_path, MINE)
    shapes = json.dumps([[7, 5], [3, 5]])
    assert engine.work("mine::gemm", shapes, MM[1]).flops == 2 * 3 * 5 * 7
    assert engine.work("aten::mm", *MM).flops == 7
    assert Engine(table.load()).work("aten::mm", *MM).flops == 210


def test_of_several_tables_the_latest_wins(tmp_path):
    paths = []
    for flops in (1, 2):
        paths.append(tmp_path / f"{flops}.toml")
        paths[-1].write_text(
            f'[[formula]]\nmatch = "aten::mm"\nkind = "expression"\nflops = "{flops}"\n'
        )
    assert Engine(table.load(table.read_texts(paths))).work("aten::mm", *MM).flops == 2
    assert Engine(table.load(table.read_texts(paths[::-1]))).work("aten::mm", *MM).flops == 1


def test_kernels_have_entries_of_their_own(tmp_path):
    engine = engine_of(tmp_path, MINE)
    work = engine.kernel_work("my_gemm_64x32x16")
    assert (work.flops, work.dtype, work.matrix) == (2 * 64 * 32 * 16, "fp8", True)
    assert engine.kernel_work("my_gemm_64x32") == engine.kernel_work("aten::mm") == NOTHING
    assert engine.work("my_gemm_64x32x16", *MM).flops is None


def test_an_entry_that_does_not_fit_yields_nothing_and_is_named(tmp_path):
    engine = engine_of(
        tmp_path,
        '[[formula]]\nmatch = "aten::mm"\nkind = "matmul"\na = 0\nb = 4\n'
        '[[formula]]\nmatch = "aten::bmm"\nkind = "matmul"\na = 0\nb = 1\nsince = 3\n'
        '[[formula]]\nmatch = "aten::dot"\nkind = "expression"\nflops = "d[0][1]"\n',
    )
    for name, place in (("aten::mm", 1), ("aten::dot", 3)):
        work = engine.work(name, json.dumps([[5], [5]]), MM[1])
        assert (work.flops, work.low_bytes, work.reason) == (None, None, "formula does not fit")
        assert work.misfit == f"{tmp_path / 'mine.toml'}, entry {place} ({name})"
    both = engine.work("aten::bmm", json.dumps([[1, 3, 5], [1, 5, 7]]), MM[1])
    assert (both.flops, both.misfit) == (210, "")  # another entry expects as many arguments


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[formula]", "no TOML"),
        ("[formulas]\na = 1", "has [[formula]] entries, and no formulas"),
        ("formula = 3", "has [[formula]] entries"),
        ("formula = [3]", "entry 1 (...): Expected `object`, got `int`"),
        ('[[formula]]\nkind = "matmul"\na = 0\nb = 1', "missing required field `match`"),
        ('[[formula]]\nmatch = "x"\na = 0', "missing required field `kind`"),
        ('[[formula]]\nmatch = "x"\nkind = "magic"', "entry 1 (x): Invalid value 'magic' - at `$.kind`"),
        ('[[formula]]\nmatch = "x"\nkind = "matmul"\na = 0', "entry 1 (x): Object missing required field `b`"),
        ('[[formula]]\nmatch = "x"\nkind = "matmul"\na = 0\nb = -1', "Expected `int` >= 0 - at `$.b`"),
        ('[[formula]]\nmatch = "x"\nkind = "matmul"\na = 0\nb = 1\nc = 2', "contains unknown field `c`"),
        ('[[formula]]\nmatch = "x"\nkind = "matmul"\na = 0\nb = 1\nout = "f"', "out: no type is called f"),
        ('[[formula]]\nmatch = "x"\nkind = "matmul"\na = 0\nb = 1\ndtype = "fp5"', "`$.dtype`"),
        ('[[formula]]\nmatch = "/(/"\nkind = "outer"', "match: missing )"),
        ('[[formula]]\nmatch = ""\nkind = "outer"', "match: an empty name"),
        ('[[formula]]\nmatch = "x"\nkind = "expression"', "flops or bytes is needed"),
        ('[[formula]]\nmatch = "x"\nkind = "expression"\nflops = "2 *"', "flops: '2 *', character 4: the end"),
        ('[[formula]]\nmatch = "x"\nkind = "outer"\nkernel = true', "only kind = 'expression' fits kernels"),
        ('[[formula]]\nmatch = "x"\nkind = "conv_backward"\ngrad = 0\nmask = [true]', "`mask` holds three"),
        ('[[formula]]\nmatch = "x"\nkind = "attention"\nq = 0\nk = 1\nv = 2\nlayout = "hsbd"', "`$.layout`"),
    ],
)  # fmt: skip
def test_a_wrong_table_says_which_entry_and_key(tmp_path, text, said):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        table.load(table.read_texts([path]))
    assert error.value.message.startswith(str(path))
    assert said in error.value.message


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path):
    with pytest.raises(InputError, match=r"gone\.toml: cannot be read"):
        table.load(table.read_texts([tmp_path / "gone.toml"]))


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that adds two tables of formulas, one of them wrong, and one object that is none."""
    folder = tmp_path / "site"
    info = folder / "formula_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: formula-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[profharness.formulas]\n"
        "good = formula_plugin:GOOD\nnone = formula_plugin:NONE\nwrong = formula_plugin:WRONG\n"
    )
    (folder / "formula_plugin.py").write_text(
        "from pathlib import Path\n"
        "GOOD = Path(__file__).with_name('good.toml')\n"
        "WRONG = Path(__file__).with_name('wrong.toml')\n"
        "NONE = 3\n"
    )
    (folder / "good.toml").write_text(MINE)
    (folder / "wrong.toml").write_text('[[formula]]\nmatch = "x"\nkind = "magic"\n')
    monkeypatch.syspath_prepend(str(folder))
    families.foreign.cache_clear()
    families._groups.cache_clear()
    yield folder
    families.foreign.cache_clear()
    families._groups.cache_clear()
    families._SEEN.pop(table.GROUP, None)


def test_an_installed_package_adds_a_table(installed, tmp_path, capsys):
    found = table.load()
    engine = Engine(found)
    assert engine.work("aten::mm", *MM).flops == 7
    (refused,) = found.refused
    assert (refused.group, refused.name) == ("profharness.formulas", "wrong")
    assert refused.why.startswith("the plug-in wrong, entry 1 (x): Invalid value 'magic'")
    said = capsys.readouterr().err
    assert "the plug-in none of profharness.formulas cannot be used (TypeError" in said
    assert "the table of formulas of the plug-in wrong cannot be used" in said
    last = tmp_path / "last.toml"
    last.write_text('[[formula]]\nmatch = "aten::mm"\nkind = "expression"\nflops = "9"\n')
    assert (
        Engine(table.load(table.read_texts([last]))).work("aten::mm", *MM).flops == 9
    )  # a user's comes after it


NAMES = {
    "q": ("query",), "k": ("key",), "v": ("value",), "stride": ("stride",), "x": ("input", "self"),
    "padding": ("padding",), "dilation": ("dilation",), "groups": ("groups",), "tf32": ("allow_tf32",),
    "output_padding": ("output_padding",), "causal": ("is_causal",), "mask_type": ("custom_mask_type",),
    "cu_q": ("cum_seq_q", "cu_seqlens_q"), "cu_k": ("cum_seq_k", "cu_seqlens_k"),
    "max_q": ("max_q", "max_seqlen_q"), "max_k": ("max_k", "max_seqlen_k"), "beta": ("beta",),
    "mode": ("mode",), "hidden": ("hidden_size",), "proj": ("proj_size",), "layers": ("num_layers",),
    "bidirectional": ("bidirectional",), "added": ("self",),
}  # fmt: skip
LATER = {
    "bias": ("bias", "attn_bias", "attn_mask"), "transposed": ("transposed",), "mask": ("output_mask",),
    "grad": ("grad_output", "grad_out", "grad_out_", "self"), "w": ("weight",), "out": ("out", "out_dtype"),
    "lse": ("logsumexp", "compute_log_sumexp"),
}  # fmt: skip


@needs.TORCH_HERE
def test_positions_are_those_of_torchs_schemas():
    """Each key that names an argument stands where some overload of torch has an argument of that
    name, for every operator that this torch knows.
    """
    needs.packages("torch")
    import torch

    checked = 0
    for row in table.own():
        schemas = {
            name: torch._C._jit_get_schemas_for_operator(name)
            for name in row.entry.names
            if name.startswith("aten::")
        }
        for name, overloads in schemas.items():
            if not overloads:
                continue
            for key, words in (NAMES | LATER).items():
                place = getattr(row.entry, key, None)
                if type(place) is not int or (key == "out" and name in ("aten::mm", "aten::bmm")):
                    continue
                at = {s.arguments[place].name for s in overloads if place < len(s.arguments)}
                assert at & set(words), (row.label, name, key, at)
                checked += 1
            if isinstance(row.entry, entries.AttentionShape) and row.entry.window:
                at = {
                    s.arguments[row.entry.window[0]].name
                    for s in overloads
                    if len(s.arguments) > 15
                }
                assert "window_size_left" in at
    assert checked > 250


def test_every_entry_of_ours_says_what_it_is_for():
    rows = table.own()
    assert len(rows) > 100
    assert len({row.label for row in rows}) == len(rows)


def test_a_name_costs_the_rows_that_search_in_it_and_not_every_row():
    ours = table.load()
    searched = sum(len(row.patterns) for row in ours.rows if row.entry.kernel)
    ours.meant_for("some_kernel", kernel=True)
    cost = calls_of(lambda: ours.meant_for("another_kernel", kernel=True))
    assert cost < 20 + 6 * searched < len(ours.rows)


def test_a_table_nested_without_end_is_no_toml(tmp_path):
    with pytest.raises(InputError, match=r"mine\.toml: no TOML"):
        engine_of(tmp_path, "x = " + "[" * 20_000)
