from __future__ import annotations

from profharness.analysis.critical.scope import scopes
from profharness.trace.model import Source
from tests.analysis.scene import Scene


def test_each_file_of_a_process_without_steps_has_a_path_of_its_own() -> None:
    source = Source("a.json", "kineto", host="a", pid=7, pass_name="torch")
    scene = Scene(sources=(source, source))
    for piece, at in enumerate((0, 500)):
        scene.op("aten::mm", at, at + 100, source=piece)
    assert [scope.window_ns for scope in scopes(scene.build())] == [100, 100]


def test_what_another_process_recorded_on_the_device_is_recorded() -> None:
    """A queued kernel begins late, since the kernel of the other process runs until then."""
    ms = 1_000_000
    scene = Scene(sources=(Source("a", "kineto", pid=7), Source("b", "kineto", pid=8)))
    scene.kernel(1 * ms, 2 * ms, scene.launch(900_000, 910_000))
    scene.kernel(100 * ms, 101 * ms, scene.launch(3 * ms, 4 * ms))
    (alone,) = scopes(scene.build())
    assert alone.not_recorded_share > 0.9
    other = scene.launch(4 * ms, 4 * ms + 5, pid=8, source=1)
    scene.kernel(5 * ms, 100 * ms, other, source=1, stream=1)
    assert [scope.not_recorded_share for scope in scopes(scene.build())] == [0, 0]
