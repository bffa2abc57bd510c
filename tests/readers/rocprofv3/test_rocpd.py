from __future__ import annotations

import contextlib
import gzip
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.time.linking import link_kernels
from profharness.errors import InputError
from profharness.readers.bytes import sqlite_file
from profharness.readers.rocprofv3 import rocpd_reader as rocpd
from profharness.trace.model import Trace
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import Call, Program, program
from tests.readers.rocprofv3.tables_spelled import spelled, totals


def said(trace: Trace, words: str) -> int:
    return next(problem.count for problem in trace.problems if words in problem.message)


def table(path: Path, name: str) -> str:
    """The full name of the first table of a kind."""
    with sqlite3.connect(path) as connection:
        return connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE ?",
            (f"rocpd_{name}_0%",),
        ).fetchone()[0]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database of 60 kernels."""
    return write_rocpd(tmp_path_factory.mktemp("rocpd") / "a.db", program(1, 60)).read_bytes()


def change(path: Path, statement: str) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    return path


def test_plain_and_gzipped_are_alike_and_nothing_is_written(tmp_path: Path) -> None:
    plain = write_rocpd(tmp_path / "a.db", program(2))
    packed = tmp_path / "b.db.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    before = sorted(tmp_path.iterdir())
    assert spelled(readers.read(plain)) == spelled(readers.read(packed))
    assert sorted(tmp_path.iterdir()) == before


def test_a_gzipped_file_is_unpacked_into_a_bounded_file(tmp_path: Path) -> None:
    packed = tmp_path / "b.db.gz"
    packed.write_bytes(gzip.compress(write_rocpd(tmp_path / "a.db", program(2)).read_bytes()))
    with pytest.raises(InputError, match="holds more than"), sqlite_file.opened(packed, 10_000):
        pass


def test_a_read_only_folder_and_file_are_enough(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    path = write_rocpd(folder / "a b?#%.db", program(2))
    path.chmod(0o400)
    folder.chmod(0o500)
    try:
        assert len(readers.read(path).kernels) == 40
    finally:
        folder.chmod(0o700)


def test_a_write_ahead_log_is_read_too(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "a.db", program(2, counters=False))
    name = table(path, "kernel_dispatch")
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute(f'DELETE FROM "{name}" WHERE id > 30')
    writer.commit()
    try:
        assert path.with_name("a.db-wal").stat().st_size > 0
        assert len(readers.read(path).kernels) == 30
    finally:
        writer.close()


def test_several_processes_are_several_sources(tmp_path: Path) -> None:
    one, two = program(1, 10, pid=16, host="a"), program(2, 12, pid=16, host="b")
    trace = readers.read(write_rocpd(tmp_path / "a.db", one, two))
    assert [(source.host, source.pid) for source in trace.sources] == [("a", 16), ("b", 16)]
    assert [int((trace.kernels.source == n).sum()) for n in (0, 1)] == [10, 12]
    links = link_kernels(trace)
    assert links.linked.all()
    assert (trace.api.source[links.api] == trace.kernels.source).all()
    alone = [
        readers.read(write_rocpd(tmp_path / f"{n}.db", given)) for n, given in enumerate((one, two))
    ]
    assert totals(trace) == {
        name: (
            sum(totals(t).get(name, (0, 0))[0] for t in alone),
            sum(totals(t).get(name, (0, 0))[1] for t in alone),
        )
        for name in totals(trace)
    }
    assert len(trace.counters) == sum(len(t.counters) for t in alone)
    assert sorted(trace.counters.value.tolist()) == sorted(
        value for t in alone for value in t.counters.value.tolist()
    )


@pytest.mark.parametrize("comment", ["", "/* of two,\n{} */", "-- without {}"])
def test_tables_that_no_view_shows_are_read_too(tmp_path: Path, comment: str) -> None:
    """A second process that writes into a file finds the views of the first one made."""
    one, two = program(1, 10, pid=16), program(2, 12, pid=28)
    path = write_rocpd(tmp_path / "a.db", one, two)
    whole = readers.read(path)
    with sqlite3.connect(path) as connection:
        views = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'view' AND name LIKE 'rocpd!_%' "
            "ESCAPE '!'"
        ).fetchall()
        assert all("UNION" in text for _, text in views)
        for name, text in views:
            connection.execute(f"DROP VIEW {name}")
            shown, _, hidden = text.partition(" UNION")
            connection.execute(f"{shown} {comment.format(hidden.split()[-1])}")
        kernels = "SELECT sql FROM sqlite_master WHERE name = 'kernels'"
        ((text,),) = connection.execute(kernels).fetchall()
        connection.execute("DROP VIEW kernels")
        connection.execute(f"{text} {comment.format('')}")
        assert connection.execute("SELECT COUNT(*) FROM kernels").fetchone() == (10,)
    connection.close()
    trace = readers.read(path)
    assert [source.pid for source in trace.sources] == [16, 28]
    assert spelled(trace) == spelled(whole)
    assert trace.problems == whole.problems


def test_more_processes_than_a_file_of_its_size_has_are_refused(
    tmp_path: Path, recorded: bytes
) -> None:
    (path := tmp_path / "a.db").write_bytes(recorded)
    processes = table(path, "info_process")
    change(
        path,
        f"WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 2999) "
        f"INSERT INTO {processes} (id, guid, nid, pid) SELECT i, guid, nid, i FROM n, "
        f"(SELECT guid, nid FROM {processes} LIMIT 1)",
    )
    with pytest.raises(InputError, match=r"are of 2\d{3} processes, more than the \d{3} that a"):
        readers.read(path)


def test_the_environment_in_the_file_is_pointed_out_but_not_read(tmp_path: Path) -> None:
    trace = readers.read(
        write_rocpd(
            tmp_path / "a.db", program(1), environment={"TOKEN": "hush-hush", "HOME": "/root"}
        )
    )
    assert said(trace, "environment variables") == 2
    assert not any("hush" in text for text in trace.strings.texts)
    assert "hush" not in repr(trace.sources) + repr(trace.problems)


def test_calls_of_no_length_keep_their_names_if_they_are_markers(tmp_path: Path) -> None:
    given_ = Program(
        symbols=program().symbols,
        kernels=program().kernels,
        calls=(
            Call("MARKER_CORE_RANGE_API", "roctxMarkA", 50, 50, 1, 7, "here"),
            Call("HIP_RUNTIME_API", "hipGetDevice", 60, 60, 2, 7),
            Call("HIP_RUNTIME_API", "hipSetDevice", 70, 75, 3, 7),
        ),
    )
    trace = readers.read(write_rocpd(tmp_path / "a.db", given_))
    assert trace.strings.decode(trace.marks.name) == ["here"]
    assert trace.strings.decode(trace.api.name) == ["hipSetDevice"]
    assert said(trace, "shorter than a nanosecond 1") == 1


def test_kernels_that_the_view_hides_are_counted(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "a.db", program(1, counters=False))
    change(path, f'UPDATE "{table(path, "kernel_dispatch")}" SET kernel_id = 999 WHERE id <= 3')
    trace = readers.read(path)
    assert (len(trace.kernels), said(trace, "does not show")) == (37, 3)


def left_out(trace: Trace) -> list[tuple[str, int, str]]:
    return [
        (problem.severity, problem.count, problem.message.partition("left out: ")[2])
        for problem in trace.problems
    ]


@pytest.mark.slow
def test_of_several_processes_each_counts_its_own(tmp_path: Path) -> None:
    one, two = (
        program(1, 10, host="a"),
        replace(program(2, 12, host="b"), loose=(("TEMP", 7.0),)),
    )
    assert left_out(
        readers.read(write_rocpd(tmp_path / "a.db", one, two, program(3, 10, host="c")))
    ) == [("warning", 1, "counter values of no kernel that the file shows 1")]


def test_a_file_from_before_these_tables_lacks_nothing(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "a.db", program(1, counters=False))
    for view in (
        "memory_allocations",
        "scratch_memory",
        "rocpd_memory_allocate",
        "counters_collection",
        "rocpd_pmc_event",
    ):
        change(path, f"DROP VIEW {view}")
    trace = readers.read(path)
    assert (len(trace.kernels), trace.problems) == (40, ())


def test_counter_values_of_no_kernel_are_counted(tmp_path: Path) -> None:
    """Of a device beside all dispatches, and of a kernel that the file hides; a value of several
    instances stands once per instance.
    """
    given_ = replace(program(1), loose=(("GRBM_COUNT", 5.0), ("TEMPERATURE", 60.0)))
    path = write_rocpd(tmp_path / "a.db", given_)
    trace = readers.read(path)
    assert left_out(trace) == [("warning", 2, "counter values of no kernel that the file shows 2")]
    assert len(trace.counters) == len(
        readers.read(write_rocpd(tmp_path / "b.db", program(1))).counters
    )
    counted = next(k for k in given_.kernels if k.counters)
    change(
        path,
        f'UPDATE "{table(path, "kernel_dispatch")}" SET kernel_id = 999 WHERE id = '
        f"{counted.dispatch}",
    )
    hidden = sum(len(parts) for _, parts in counted.counters)
    assert hidden == 3
    assert left_out(readers.read(path)) == [
        (
            "warning",
            3 + hidden,
            (
                f"counter values of no kernel that the file shows {2 + hidden}, "
                "kernels that the file's own view does not show, or without times 1"
            ),
        )
    ]


def test_counter_values_without_any_kernel_are_counted(tmp_path: Path) -> None:
    trace = readers.read(
        write_rocpd(
            tmp_path / "a.db", Program(loose=(("TEMPERATURE", 60.0), ("TEMPERATURE", 61.0)))
        )
    )
    assert (len(trace.kernels), left_out(trace)) == (
        0,
        [("warning", 2, "counter values of no kernel that the file shows 2")],
    )


@pytest.mark.parametrize(
    ("kind", "change_to", "said_"),
    [
        (
            "memory_copy",
            "name_id = 99999",
            "copies that the file's own view does not show, or without times 2",
        ),
        (
            "region",
            "tid = 99999",
            "host calls that the file's own view does not show, or without times 2",
        ),
    ],
)
def test_copies_and_calls_that_a_view_hides_are_counted(
    tmp_path: Path, kind: str, change_to: str, said_: str
) -> None:
    path = write_rocpd(tmp_path / "a.db", program(1, counters=False))
    name = table(path, kind)
    change(path, f'UPDATE "{name}" SET {change_to} WHERE id IN (SELECT id FROM "{name}" LIMIT 2)')
    assert left_out(readers.read(path)) == [("warning", 2, said_)]


def test_values_that_are_no_numbers_are_not_recorded(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "a.db", program(1, counters=False))
    change(
        path,
        f'UPDATE "{table(path, "kernel_dispatch")}" SET group_segment_size = NULL, '
        "private_segment_size = 'much' WHERE id = 1",
    )
    kernels = readers.read(path).kernels
    assert (kernels.lds_bytes[0], kernels.lds_dynamic_bytes[0], kernels.scratch_bytes[0]) == (
        -1,
        -1,
        -1,
    )
    assert kernels.lds_bytes[1] >= 0


def test_an_empty_run_is_an_empty_trace(tmp_path: Path) -> None:
    trace = readers.read(write_rocpd(tmp_path / "a.db", Program()))
    assert (len(trace.kernels), len(trace.api), trace.problems) == (0, 0, ())


def test_other_databases_are_refused_by_name(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    change(other, "CREATE TABLE things (id INTEGER)")
    with pytest.raises(InputError, match="no rocpd: it has no kernels"):
        readers.read(other)
    for name, strings in (("Nsight Systems", "StringIds"), ("nvprof", "StringTable")):
        nvidia = tmp_path / f"{strings}.sqlite"
        change(nvidia, f"CREATE TABLE {strings} (id INTEGER)")
        change(nvidia, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER)")
        with pytest.raises(InputError, match=f"is a database of {name}, which profharness does no"):
            readers.read(nvidia)
    legacy = tmp_path / "old.rpd"
    change(legacy, "CREATE TABLE rocpd_api (id INTEGER)")
    change(legacy, "CREATE TABLE rocpd_op (id INTEGER)")
    with pytest.raises(InputError, match="rocmProfileData"):
        readers.read(legacy)


def test_a_database_without_a_process_is_refused(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "a.db", program(1))
    change(path, f'DELETE FROM "{table(path, "info_process")}"')
    with pytest.raises(InputError, match="holds no process"):
        readers.read(path)


@settings(max_examples=30)
@given(st.floats(0.001, 0.999))
def test_a_file_cut_anywhere_is_read_or_refused_never_crashes(
    recorded: bytes, tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "b.db"
    path.write_bytes(recorded[: int(len(recorded) * share)])
    wanted = {k.start for k in program(1, 60).kernels}
    try:
        trace = rocpd.read(path)
    except InputError:
        return
    assert set(trace.kernels.start_ns.tolist()) <= wanted
    assert (
        any(problem.severity == "error" for problem in trace.problems) or len(trace.kernels) == 60
    )


@settings(max_examples=30)
@given(st.integers(100, 60_000), st.binary(min_size=1, max_size=300))
def test_a_file_with_damaged_bytes_never_crashes(
    recorded: bytes, tmp_path_factory: pytest.TempPathFactory, place: int, junk: bytes
) -> None:
    path = tmp_path_factory.mktemp("junk") / "b.db"
    path.write_bytes(recorded[:place] + junk + recorded[place + len(junk) :])
    with contextlib.suppress(InputError):
        assert rocpd.read(path).sources


def test_a_cut_gzip_is_read_or_refused_with_its_reason(tmp_path: Path) -> None:
    packed = gzip.compress(write_rocpd(tmp_path / "a.db", program(1, 200)).read_bytes())
    (tmp_path / "b.db.gz").write_bytes(packed[:-200])
    assert said(readers.read(tmp_path / "b.db.gz"), "compressed data ends early") == 1
    (tmp_path / "c.db.gz").write_bytes(packed[: len(packed) // 8])
    with pytest.raises(InputError, match="damaged"):
        readers.read(tmp_path / "c.db.gz")


@pytest.mark.parametrize(
    ("damage", "kernels", "words"),
    [
        ("UPDATE {kernel_dispatch} SET start = NULL WHERE id = 1", 3, "kernels that"),
        ("UPDATE {kernel_dispatch} SET start = 'late' WHERE id = 1", 3, "kernels that"),
        ("UPDATE {pmc_event} SET value = NULL", 4, "counter values without a number"),
        ("DELETE FROM {info_pmc}", 4, "counter values without a number, or that no view"),
        ("DROP VIEW memory_copies", 4, "copies that the file's own view does not show"),
        ("UPDATE {event} SET extdata = '{{message'", 4, "texts of markers, which are no JSON"),
    ],
)
def test_what_a_damaged_table_lacks_is_said(
    tmp_path: Path, damage: str, kernels: int, words: str
) -> None:
    path = write_rocpd(tmp_path / "a.db", program(1, 4))
    whole = int(readers.read(path).kernels.dur_ns.sum())
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = {
            name.removeprefix("rocpd_").partition("_0")[0]: f'"{name}"'
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.execute(damage.format(**tables))
        connection.commit()
    trace = readers.read(path)
    assert len(trace.kernels) == kernels
    assert int(trace.kernels.dur_ns.sum()) <= whole
    assert any(words in message for _, _, message in left_out(trace))
