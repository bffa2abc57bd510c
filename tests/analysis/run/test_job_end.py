"""What the end of a batch job says of its run."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.analysis.run.checks import job_findings
from profharness.errors import InputError
from profharness.rundir.jobs.records import END, end_of_run


def left(run: Path, cause: str) -> None:
    (run / END).write_text(f'{{"job":"7","cause":"{cause}","exit_status":143,"nodes":"n[1-2]"}}')


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ("time-limit", "job 7 came to the end of its time (its nodes: n[1-2])"),
        ("cancelled", "job 7 was cancelled (its nodes: n[1-2])"),
        ("node-lost", "job 7 ended because a node failed (its nodes: n[1-2])"),
    ],
)
def test_what_ended_the_job_is_told(tmp_path: Path, cause: str, message: str) -> None:
    left(tmp_path, cause)
    (found,) = job_findings(end_of_run(tmp_path))
    assert (found.id, found.message) == (cause, message)
    assert found.figures == {"job": "7", "nodes": "n[1-2]"}


@pytest.mark.parametrize(
    ("lost", "said"), [("n2", "because node n2 failed"), ("n2,n3", "because nodes n2, n3 failed")]
)
def test_a_node_that_failed_has_a_name(tmp_path: Path, lost: str, said: str) -> None:
    (tmp_path / END).write_text(
        f'{{"job":"7","cause":"node-lost","exit_status":1,"nodes":"n[1-3]","lost":"{lost}"}}'
    )
    (found,) = job_findings(end_of_run(tmp_path))
    assert found.message == f"job 7 ended {said} (its nodes: n[1-3])"
    assert found.figures == {"job": "7", "nodes": "n[1-3]", "lost": lost}


def test_a_job_that_ended_by_itself_has_none(tmp_path: Path) -> None:
    """Nor has a run that is no job's."""
    assert job_findings(end_of_run(tmp_path)) == ()
    left(tmp_path, "")
    assert job_findings(end_of_run(tmp_path)) == ()


@pytest.mark.parametrize("text", ["", "[]", '{"cause":"moon"}', "{" * 70_000])
def test_a_file_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / END).write_text(text)
    with pytest.raises(InputError, match=r"job\.json"):
        end_of_run(tmp_path)
