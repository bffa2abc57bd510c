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
