from __future__ import annotations

from profharness.analysis.time.device_work import work_of
from profharness.analysis.verdict.steps_by_launch import host_ahead, work_of_others
from tests.analysis.scene import Scene
from tests.analysis.time.test_by_launch import ahead, step


def found(check, scene: Scene):
    trace = scene.build()
    return check(trace, work_of(trace))


def test_it_is_told_by_how_much_the_host_ran_ahead():
    """Marks end at 20, 40, 60 and 80, the steps' work at 105, 205, 305 and 405."""
    (told,) = found(host_ahead, ahead())
    assert (told.id, told.severity) == ("host-ahead", "info")
    assert told.figures == {"ahead_ns": 205, "most_ahead_ns": 325, "step_ns": 100, "steps": 4}
    assert "belong to different steps" in told.message


def test_a_host_that_waits_for_its_steps_did_not_run_ahead():
    scene = Scene()
    for number in range(3):
        at = 100 * number
        step(scene, number, (at, at + 98), (at + 10, at + 20, at + 101))
    assert found(host_ahead, scene) == []


def test_work_that_no_step_launched_is_named_with_its_share():
    """Of 400 ns of the window, 40 ns in which the steps' own work left the device free."""
    scene = ahead()
    for number in range(4):
        scene.kernel(45 + 100 * number, 55 + 100 * number, name="somebody_else", stream=3)
    (told,) = found(work_of_others, scene)
    assert (told.id, told.severity) == ("work-of-others", "info")
    assert told.figures == {"others_share": 0.1, "others_ns": 40, "records": 4}
    assert "somebody_else" in told.message


def test_without_other_work_nothing_is_said():
    assert found(work_of_others, ahead()) == []
    scene = ahead()
    scene.kernel(10, 40, name="beside", stream=3)  # the steps' own work runs meanwhile
    assert found(work_of_others, scene) == []
