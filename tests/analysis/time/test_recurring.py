"""What may be unrecorded work and comes again in the steps before the same work."""

from __future__ import annotations

import pytest

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.measurement import measure
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.step_summaries import Selection, step_summaries
from profharness.analysis.time.timeline import add
from profharness.trace.model import Source
from tests.analysis.scene import Scene

MS = 1_000_000


def process(scene: Scene, names: tuple[str, ...], begin: int, pid: int = 7) -> None:
    """A step each 20 ms: 5 ms of one stream, and 10 ms of another that begin 5 ms later, by a name
    for each step.
    """
    source = pid - 7
    for number, name in enumerate(names):
        at = begin + 20 * MS * number
        scene.mark("step", at, at + 20 * MS, f"step {number}", pid=pid, source=source)
        first, second = (
            scene.launch(at + place, at + place + 1, pid=pid, source=source) for place in (1, 3)
        )
        scene.kernel(at + 10, at + 5 * MS, first, stream=2 * source, source=source)
        later = at + 10 * MS, at + 20 * MS
        scene.kernel(*later, second, name=name, stream=2 * source + 1, source=source)


@pytest.mark.parametrize(
    ("names", "again"),
    [
        (("late",) * 4, True),
        (("late", "late", "late", "b", "c"), True),
        (("late", "late", "late", "b", "c", "d"), False),
        (("late", "late"), False),
    ],
)
def test_it_recurs_before_work_of_most_steps_and_of_three(
    names: tuple[str, ...], again: bool
) -> None:
    scene = Scene()
    process(scene, names, 0)
    split = measure(scene.build()).partition
    assert split.idle_or_not_recorded_ns >= (len(names) - 1) * 4 * MS
    assert split.open_recurs is again


def test_every_note_on_a_range_says_what_the_partition_says() -> None:
    scene = Scene()
    process(scene, ("late",) * 4, 0)
    found = summarise_trace(scene.build(), "a.json")
    assert found.partition is not None
    assert "queued or not recorded" in found.partition.why_open
    notes = [one.note for one in found.metrics.values() if "or not recorded" in one.note]
    assert len(notes) > 5
    assert all(found.partition.why_open in note for note in notes)


def test_one_step_on_its_own_says_what_all_steps_do() -> None:
    scene = Scene()
    process(scene, ("late",) * 4, 0)
    trace = scene.build()
    for one in step_summaries(trace, KernelFacts(trace), Selection(1)):
        assert one.partition is not None
        assert one.partition.open_recurs


def test_steps_of_a_second_process_do_not_raise_what_is_needed() -> None:
    """Both run on the device, the second after the first, whose steps come first in the file."""
    scene = Scene(sources=(Source("a", "kineto", pid=7), Source("b", "kineto", pid=8)))
    process(scene, tuple("abcde"), 200 * MS)
    process(scene, ("late",) * 4, 0, pid=8)
    split = measure(scene.build()).partition
    assert split.open_recurs is False
    later = Scene(sources=(Source("a", "kineto", pid=7), Source("b", "kineto", pid=8)))
    process(later, tuple("abc"), 200 * MS)
    process(later, ("late",) * 4, 0, pid=8)
    assert measure(later.build()).partition.open_recurs is True


def test_of_several_files_most_of_the_time_says_whether_it_recurs() -> None:
    scene, other = Scene(), Scene()
    process(scene, ("late",) * 4, 0)
    process(other, tuple("abcdef"), 0)
    again, once = measure(scene.build()).partition, measure(other.build()).partition
    assert (again.open_recurs, once.open_recurs) == (True, False)
    assert add([again, again, once]).open_recurs
    assert not add([again, once]).open_recurs
