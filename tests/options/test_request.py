from __future__ import annotations

from pathlib import Path

import pytest

from profharness.cli import Rest
from profharness.cli.run import build_request
from profharness.errors import InputError, ProfharnessError, UsageError
from profharness.options.settings import COMMAND_LINE, from_mapping, read_scan_file
from profharness.options.shapes import parse_shape

NO_REST = Rest((), given=False)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batchsizes": "1"}, "batch_sizes"),
        ({"batch_sizes": "0"}, "batch_sizes"),
        ({"backend": "tensorrt"}, "torch, onnxruntime"),
        ({"device": "gpu"}, "cuda"),
        ({"model": "/nowhere/model.onnx"}, "/nowhere/model.onnx"),
        ({"inputs": "uniform"}, "hep"),
        ({"trials": 1}, "at least 2"),
        ({"order": "up"}, "order"),
        ({"telemetry_hz": 5000.0}, "1000"),
        ({"trials": "many"}, "trials"),
        ({"warmup": -1}, "negative"),
        ({"backend": "torch,torch"}, "once"),
        ({"threads": 0}, "at least 1"),
    ],
)
def test_a_wrong_setting_is_one_sentence_with_the_way_out(
    settings: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        from_mapping(settings, "scan.toml")
    text = f"{caught.value.message} {caught.value.hint}"
    assert words in text
    assert "\n" not in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"order": "up"}, "order: 'up' is not one of asc, desc, random"),
        ({"warmup": 1.5}, "warmup: 1.5 is not auto or a whole number"),
        ({"trials": "many"}, "trials: 'many' is not a whole number"),
        ({"compile": 3}, "compile: 3 is not true or false"),
        ({"batch_sizes": [1.5]}, "batch_sizes: [1.5] is not a list of whole numbers"),
        ({"threads": "all"}, "threads: 'all' is not a whole number"),
        ({"shape": {"x": "2"}}, "a table of names"),
        ({"launcher": "mpi"}, "launcher: 'mpi' is not one of local, slurm, task"),
    ],
)
def test_a_value_of_a_wrong_type_is_told_in_plain_words(
    settings: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        from_mapping(settings, "scan.toml")
    assert caught.value.message.startswith("scan.toml: ")
    assert words in caught.value.message
    assert not any(jargon in caught.value.message for jargon in ("`$.", "Expected", "enum"))
    with pytest.raises(UsageError, match=r"^--" + next(iter(settings)).replace("_", "-")):
        from_mapping(settings, COMMAND_LINE)


def test_a_flag_is_blamed_rather_than_the_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("trials = 5\n")
    with pytest.raises(UsageError, match=r"^--order"):
        build_request(str(tmp_path / "s.toml"), {"order": "up"}, NO_REST)


@pytest.mark.parametrize("key", ["batch_sizes", "trials", "model", "isolate", "strict", "seed"])
def test_options_of_scans_are_refused_with_a_command(key: str) -> None:
    values = {
        "batch_sizes": "1",
        "trials": 5,
        "model": "particlenet",
        "isolate": True,
        "strict": True,
        "seed": 1,
    }
    with pytest.raises(UsageError, match="--" + key.replace("_", "-")):
        build_request(None, {key: values[key]}, Rest(("true",), given=True))
    assert build_request(None, {key: values[key]}, NO_REST)


@pytest.mark.parametrize(
    ("key", "value"), [("bare", True), ("passes", 2), ("yes", True), ("hook", "exec")]
)
def test_options_of_commands_are_refused_with_a_scan(
    tmp_path: Path, key: str, value: object
) -> None:
    for scan in (None, "particlenet"):
        with pytest.raises(UsageError, match="--" + key):
            build_request(scan, {key: value}, NO_REST)
    (tmp_path / "s.toml").write_text(
        f"{key} = {str(value).lower() if not isinstance(value, str) else repr(value)}\n"
    )
    with pytest.raises(UsageError, match=r"s\.toml: " + key):
        build_request(str(tmp_path / "s.toml"), {}, NO_REST)
    assert build_request(None, {key: value}, Rest(("true",), given=True))


def test_shapes_keep_names_with_colons() -> None:
    assert parse_shape("serving:input:2,100") == ("serving:input", (2, 100))
    for text in ("x", ":1", "x:", "x:0", "x:1,a"):
        with pytest.raises(UsageError):
            parse_shape(text)


def test_flags_win_over_the_scan_file(tmp_path: Path) -> None:
    path = tmp_path / "nightly.toml"
    path.write_text(
        'batch_sizes = "4..16"\ntrials = 50\nprofile = ["torch"]\nwarmup = "auto"\n[shape]\n'
        "pf_points = [2, 50]\n"
    )
    request = build_request(str(path), {"trials": 7}, NO_REST)
    assert (request.batch_sizes, request.trials, request.profile, request.name) == (
        (4, 8, 16),
        7,
        ("torch",),
        "nightly",
    )
    assert request.shape == {"pf_points": (2, 50)}


def test_a_wrong_key_is_blamed_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("batch_size = [1]\n")
    with pytest.raises(UsageError, match=r"s\.toml.*batch_size") as caught:
        build_request(str(path), {}, NO_REST)
    assert "batch_sizes" in caught.value.hint


@pytest.mark.parametrize("content", ["batch_sizes = [1", "\x00\xff", None])
def test_an_unreadable_scan_file_is_an_input_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "s.toml"
    if content is not None:
        path.write_text(content, encoding="latin-1")
    with pytest.raises(InputError):
        build_request(str(path), {}, NO_REST)


@pytest.mark.parametrize(
    ("scan", "rest"),
    [
        ("python", NO_REST),
        ("particlenet", Rest(("python", "x.py"), given=True)),
        (None, Rest((), given=True)),
    ],
)
def test_scan_and_command_are_told_apart(scan: str | None, rest: Rest) -> None:
    with pytest.raises(ProfharnessError, match=r"python|--"):
        build_request(scan, {}, rest)


def test_the_rest_is_the_command() -> None:
    request = build_request(
        None, {"profile": "torch"}, Rest(("python", "train.py", "--", "x"), given=True)
    )
    assert request.command == ("python", "train.py", "--", "x")


def test_a_step_range_that_no_reader_of_the_run_would_use_is_refused_before_it() -> None:
    rest = Rest(("true",), given=True)
    with pytest.raises(UsageError, match="repeats a repetition"):
        build_request(None, {"step_range": r"(?:\w+/)*step (\d+)"}, rest)
    assert build_request(None, {"step_range": r"[\w/]*step (\d+)"}, rest).step_range


def test_a_scan_file_nested_without_end_is_no_toml(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text("x = " + "[" * 20_000)
    with pytest.raises(InputError, match="not a TOML file"):
        read_scan_file(path)
