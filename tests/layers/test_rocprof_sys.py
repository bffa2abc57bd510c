"""rocprof-sys of every version: what is planned for it, what it then leaves, and which of that is
read. The stand-in decides what is left, by options, variables and its version's defaults.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness import layers
from profharness.errors import UsageError
from profharness.layers import named
from profharness.layers.contract import Where
from profharness.layers.options import TracerOptions
from tests.fakes.amd_tools import rocprof_sys
from tests.fakes.amd_tools.rocprof_sys import Left, Refused
from tests.layers.places import TRAIN, node, planned, where

RELEASES = (*rocprof_sys.OLD_RELEASES, *rocprof_sys.RELEASES)
WITH_ROCPD = RELEASES[RELEASES.index("7.1") :]
FOLDER = "/run/artifacts/rocprof-sys/node1/0/rocprof-sys"


def left_by(release: str, options: TracerOptions) -> Left:
    """What the tool of the release leaves when it is called as planned."""
    command = planned(release, "rocprof-sys", options)
    words = command.argv[1 : command.argv.index("--")]
    variables = {name: value for name, value in command.env.items() if value is not None}
    return rocprof_sys.plan(command.argv[0], release, words, variables)


@pytest.mark.parametrize("mode", ["sample", "run", "python"])
@pytest.mark.parametrize("release", RELEASES)
def test_every_version_leaves_the_same_without_a_warning(release: str, mode: str) -> None:
    options = TracerOptions(rocprof_sys_mode=mode, sys_trace=True, rccl_trace=True)
    left = left_by(release, options)
    assert left == Left(
        perfetto="perfetto-trace.proto",
        rocpd=False,
        text=True,
        path=FOLDER,
        by_pid=True,
        timed=False,
    )


@pytest.mark.parametrize(("asked", "perfetto"), [("rocpd", ""), ("both", "perfetto-trace.proto")])
@pytest.mark.parametrize("release", WITH_ROCPD)
def test_a_database_where_it_is_asked_for(release: str, asked: str, perfetto: str) -> None:
    left = left_by(release, TracerOptions(rocprof_sys_output=asked))
    assert (left.rocpd, left.perfetto, left.warnings) == (True, perfetto, ())


@pytest.mark.parametrize("release", [one for one in RELEASES if one not in WITH_ROCPD])
def test_older_versions_have_no_database(release: str) -> None:
    with pytest.raises(UsageError, match=r"writes no rocpd database") as refused:
        left_by(release, TracerOptions(rocprof_sys_output="both"))
    assert "rocprof-sys 1.2 (ROCm 7.1)" in refused.value.hint


@pytest.mark.parametrize("release", ["7.14", "10.0", "10.1", "10.2"])
def test_the_tools_own_word_for_formats_stands_alone(release: str) -> None:
    words = ("--output-format", "rocpd,json")
    left = left_by(release, TracerOptions(tool_args={"rocprof-sys": words}))
    assert (left.perfetto, left.rocpd, left.text, left.warnings) == ("", True, True, ())
    with pytest.raises(Refused, match="cannot be combined with trace"):
        rocprof_sys.plan("rocprof-sys-sample", release, ["--trace", *words], {})
    with pytest.raises(UsageError, match="both say which files"):
        left_by(
            release,
            TracerOptions(rocprof_sys_output="both", tool_args={"rocprof-sys": words}),
        )


@pytest.mark.parametrize("release", ["6.2", "7.2", "7.13"])
def test_formats_by_the_tools_word_are_refused_before_it_knows_it(release: str) -> None:
    words = ("--output-format", "rocpd")
    with pytest.raises(UsageError, match="does not take it"):
        left_by(release, TracerOptions(tool_args={"rocprof-sys": words}))
    tool = "omnitrace-run" if release == "6.2" else "rocprof-sys-run"
    with pytest.raises(Refused, match="unknown option: --output-format"):
        rocprof_sys.plan(tool, release, words, {})


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("6.2", ("perfetto-trace.proto", False, False)),
        ("7.2", ("perfetto-trace.proto", False, False)),
        ("10.0", ("perfetto-trace.pftrace", False, False)),
        ("10.1", ("", True, False)),
        ("10.2", ("", True, False)),
    ],
)
def test_left_alone_the_versions_differ(release: str, expected: tuple[str, bool, bool]) -> None:
    """So that the table above could fail."""
    tool = "omnitrace-sample" if release == "6.2" else "rocprof-sys-sample"
    left = rocprof_sys.plan(
        tool, release, [], {"ROCPROFSYS_VERBOSE": "1", "OMNITRACE_VERBOSE": "1"}
    )
    assert (left.perfetto, left.rocpd, left.text) == expected
    assert bool(left.warnings) == (release in ("10.0", "10.1", "10.2"))


def test_abbreviated_options_of_the_python_front_end() -> None:
    tool = "rocprof-sys-python"
    rocprof_sys.plan(tool, "10.0", ["--conf", "x"], {})
    with pytest.raises(Refused, match="unrecognized arguments: --conf"):
        rocprof_sys.plan(tool, "10.1", ["--conf", "x"], {})


def files(root: Path, *names: str) -> dict[str, tuple[str, int | None, bool]]:
    """Format, process and whether it is set aside, of files of these names in an execution."""
    folder = root / "artifacts" / "rocprof-sys" / "node1" / "0" / "rocprof-sys"
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (layer,) = named(("rocprof-sys",))
    place = Where(root, "rocprof-sys", Path("/wrappers"), "node1")
    return {
        str((root / found.path).relative_to(folder)): (found.format, found.pid, found.aside)
        for found in layers.collect(layer, place, frozenset())
    }


def test_one_file_of_each_process_is_read(tmp_path: Path) -> None:
    assert files(
        tmp_path,
        "perfetto-trace-7.proto",
        "rocpd-7.db",
        "rocpd-8.db",
        "later/perfetto-trace-9.pftrace",
        "merged.pftrace",
        "wall_clock-7.txt",
        "metadata-7.json",
        "cache-7.db",
    ) == {
        "perfetto-trace-7.proto": ("pftrace", 7, False),
        "rocpd-7.db": ("rocpd", 7, True),
        "rocpd-8.db": ("rocpd", 8, False),
        "later/perfetto-trace-9.pftrace": ("pftrace", 9, False),
        "merged.pftrace": ("pftrace", None, True),
        "wall_clock-7.txt": ("rocprof-sys-txt", 7, True),
        "metadata-7.json": ("rocprof-sys-json", 7, True),
        "cache-7.db": ("rocprof-sys-db", 7, True),
    }


@pytest.mark.parametrize(
    ("release", "words", "cached"),
    [
        ("6.2", (), False),
        ("7.2", (), False),
        ("7.11", (), True),
        ("7.11", ("--trace-legacy",), False),
        ("7.11", ("-L",), False),
        ("10.2", (), True),
    ],
)
def test_a_killed_program_is_warned_of_where_records_are_cached(
    release: str, words: tuple[str, ...], cached: bool
) -> None:
    (layer,) = named(("rocprof-sys",))
    options = TracerOptions(tool_args={"rocprof-sys": words} if words else {})
    place = where(release, "rocprof-sys", options, environment=node(release))
    assert ("/tmp/buffered_storage" in layer.extras(TRAIN, place).if_killed) == cached
