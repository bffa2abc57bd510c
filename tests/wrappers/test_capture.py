"""The capture policy, without torch: what is opened and closed when."""

from __future__ import annotations

import ast
import importlib.util
import mmap
import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .running import WRAPPERS

S = 10**9


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"under_test_{name}", WRAPPERS / "hooks" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


capture = load("profharness_hooks/capture")
resident_bytes = load("profharness_hooks/safe_point").resident_bytes


def policy(text: str, max_events: int = 1000):
    return capture.Policy(capture.parse(text), max_events)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("30s", 30 * S),
        ("1.5", 1_500_000_000),
        ("250ms", 250_000_000),
        ("7us", 7000),
        ("2min", 120 * S),
        ("0.000000001s", 1),
    ],
)
def test_durations_are_exact(text: str, ns: int) -> None:
    assert capture.duration_ns(text) == ns


@pytest.mark.parametrize(
    "text",
    ["steps=3:3", "steps=5:2", "steps=1-2", "after=soon", "some", "after=1s;for=2s", "", "for=-1s"],
)
def test_nonsense_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        capture.parse(text)


def drive(
    text: str, steps: int, *, probed: int = 1, max_events: int = 1000
) -> list[tuple[str, str, int]]:
    """(action, mode, steps done) over a run of so many steps."""
    plan = policy(text, max_events)
    log = [(action, plan.mode, 0)] if (action := plan.device_work(0)) else []
    for done in range(1, steps + 1):
        action = plan.step(done)
        if action:
            log.append((action, plan.mode, done))
        if action == "open":
            plan.opened(done, probed)
        if action == "close":
            plan.exported(10, cut=False)
            plan.ended()
    return log


def test_default_replaces_its_early_stretch_by_twenty_steps_after_warm_up() -> None:
    assert drive("default", 40) == [
        ("open", "early", 0),
        ("open", "probe", 4),
        ("open", "main", 5),
        ("close", "main", 25),
    ]


@given(st.integers(0, 30), st.integers(1, 30), st.integers(0, 80))
def test_a_window_of_steps_holds_exactly_those(first: int, length: int, steps: int) -> None:
    log = drive(f"steps={first}:{first + length}", steps)
    opened = [at for action, mode, at in log if (action, mode) == ("open", "main")]
    closed = [at for action, mode, at in log if action == "close"]
    assert opened == ([first] if steps >= first else [])
    assert closed == ([first + length] if steps >= first + length else [])
    probes = [at for action, mode, at in log if mode == "probe"]
    assert probes == ([first - 1] if first and steps >= first - 1 else [])


def test_the_probe_limits_the_steps_to_the_cap() -> None:
    log = drive("steps=5:25", 40, probed=300, max_events=1000)
    assert log[-1] == ("close", "main", 8)
    assert drive("steps=5:25", 40, probed=9000, max_events=1000)[-1] == ("close", "main", 6)


def test_a_capped_window_says_so() -> None:
    plan = policy("steps=1:9", 100)
    plan.device_work(0)
    plan.step(1)
    plan.opened(1, 60)
    assert plan.truncated
    assert plan.reason == "60 events a step: capped at 100 events (PROFHARNESS_MAX_EVENTS)"


def test_time_window() -> None:
    plan = policy("after=30s,for=10s")
    assert plan.device_work(5 * S) is None
    assert (plan.due(29 * S, 0), plan.tick(29 * S, 0)) == (False, None)
    assert plan.due(30 * S, 0)
    assert plan.tick(30 * S, 0) == "open"
    plan.opened(30 * S)
    assert (plan.due(39 * S, 0), plan.tick(39 * S, 0)) == (False, None)
    assert (plan.due(40 * S, 0), plan.tick(40 * S, 0)) == (True, "close")
    plan.exported(5, cut=False)
    plan.ended()
    assert plan.finished
    assert plan.step(1) is None


def test_default_without_steps_ends_by_the_clock_and_still_waits_for_steps() -> None:
    plan = policy("default")
    assert plan.device_work(1 * S) == "open"
    plan.opened(2 * S)
    assert plan.tick(12 * S - 1, 0) is None
    assert plan.tick(12 * S, 0) == "close"
    assert not plan.exported(50, cut=False)
    plan.ended()
    assert [plan.step(done) for done in range(1, 6)] == [None, None, None, "open", "open"]


def test_default_that_saw_nothing_starts_again() -> None:
    plan = policy("default")
    plan.device_work(0)
    plan.opened(0)
    assert plan.tick(10 * S, 0) == "close"
    assert plan.exported(0, cut=False)
    assert plan.device_work(10 * S) == "open"
    plan.opened(10 * S)
    assert plan.deadline_ns == 20 * S


def test_a_cut_does_not_lengthen_a_time_window() -> None:
    plan = policy("for=10s", 1000)
    assert plan.device_work(0) == "open"
    plan.opened(1 * S)
    assert plan.tick(5 * S, 2000) == "cut"
    assert plan.exported(10, cut=True)
    plan.opened(6 * S)
    assert plan.tick(11 * S, 0) == "close"


def test_growth_cuts_until_the_cap_is_reached() -> None:
    plan = policy("all", 1000)
    assert plan.device_work(0) == "open"
    assert plan.tick(1, 999) is None
    assert plan.tick(1, 1000) == "cut"
    assert plan.exported(300, cut=True)
    assert plan.tick(2, 1000) == "cut"
    assert not plan.exported(600, cut=True)
    assert plan.truncated


def test_marks_that_take_over_start_the_count_again() -> None:
    plan = policy("steps=2:4")
    plan.device_work(0)
    assert [plan.step(1), plan.step(2)] == ["open", "open"]
    assert [plan.step(1), plan.step(2), plan.step(3), plan.step(4)] == [
        "open",
        "open",
        None,
        "close",
    ]


def test_a_default_capture_that_cannot_begin_at_its_step_has_all_its_steps_later() -> None:
    plan = policy("default")
    assert plan.device_work(0) == "open"
    plan.opened(0)
    for done in range(1, 4):
        assert plan.step(done) is None
    for done in range(4, 31):  # a call of torch's is under way at every step until the thirtieth
        assert plan.step(done) == "open"
        if done < 30:
            plan.postponed()
    plan.opened(0, probed_events=1)
    assert next(done for done in range(31, 80) if plan.step(done) == "close") == 50
    assert not plan.truncated


def test_steps_asked_for_by_number_that_could_not_be_recorded_are_said_to_miss() -> None:
    plan = policy("steps=2:6")
    plan.device_work(0)
    assert [plan.step(1), plan.step(2)] == ["open", "open"]
    plan.postponed()
    assert plan.step(3) == "open"
    plan.opened(0, probed_events=1)
    assert (plan.truncated, plan.reason) == (
        True,
        "begun at step 3: recording could not start before",
    )
    assert [plan.step(4), plan.step(5), plan.step(6)] == [None, None, "close"]


def test_an_early_stretch_that_cannot_begin_again_is_asked_for_by_the_clock() -> None:
    plan = policy("default")
    plan.device_work(0)
    plan.opened(0)
    assert plan.tick(10 * S, 0) == "close"
    assert plan.exported(0, cut=False)
    assert plan.device_work(10 * S) == "open"
    plan.postponed()
    assert plan.needs_clock
    assert plan.due(10 * S, 0)
    assert plan.tick(10 * S, 0) == "open"


def test_a_capped_early_stretch_says_nothing_of_the_steps_after_it() -> None:
    plan = policy("default", 1000)
    plan.device_work(0)
    plan.opened(0)
    assert plan.tick(1, 1000) == "cut"
    assert not plan.exported(900, cut=True)
    assert plan.truncated
    plan.ended()
    assert [plan.step(done) for done in range(1, 6)] == [None, None, None, "open", "open"]
    plan.opened(2, probed_events=10)
    assert (plan.truncated, plan.reason, plan.events) == (False, "", 0)


def test_a_cut_that_has_to_wait_for_a_call_goes_on_by_the_clock() -> None:
    plan = policy("all", 1000)
    plan.device_work(0)
    plan.opened(0)
    assert plan.tick(1, 1000) == "cut"
    assert plan.exported(10, cut=True)
    plan.postponed()
    assert plan.due(2, 0)
    assert plan.tick(2, 0) == "open"
    assert plan.events == 10


def test_a_cut_early_stretch_goes_on_with_a_step_or_after_a_rest() -> None:
    for steps in (0, 5):
        plan = policy("default", 1000)
        plan.device_work(0)
        plan.opened(0)
        assert plan.tick(1 * S, 1000) == "cut"
        assert plan.exported(10, cut=True)
        assert plan.goes_on(1 * S, cut=True) is None
        assert not plan.due(3 * S - 1, 0)
        assert plan.tick(3 * S - 1, 0) is None
        if steps:
            opened = [plan.step(done) for done in range(1, steps + 1)]
            assert opened == [None, None, None, "open", "open"]
        else:
            assert plan.due(3 * S, 0)
            assert (plan.tick(3 * S, 0), plan.mode) == ("open", "early")


def test_a_cut_window_that_was_asked_for_goes_on_at_once() -> None:
    plan = policy("all", 1000)
    plan.device_work(0)
    plan.opened(0)
    assert plan.tick(1, 1000) == "cut"
    assert plan.exported(10, cut=True)
    assert plan.goes_on(1, cut=True) == "open"


def test_memory_of_files_is_not_taken_for_events(tmp_path) -> None:
    size = 40 << 20
    path = tmp_path / "library"
    path.write_bytes(bytes(size))
    before = resident_bytes()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
        read = sum(pages[at] for at in range(0, size, 4096))
        with_file = resident_bytes()
        # pages of their own: an allocator may give what it has kept from other tests
        with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as events:
            events.write(b"x" * size)
            with_events = resident_bytes()
    assert read == 0
    assert with_file - before < size // 2 < with_events - with_file


@pytest.mark.parametrize(
    "path",
    sorted((*WRAPPERS.glob("*.py"), *(WRAPPERS / "hooks").rglob("*.py"))),
    ids=lambda path: path.name,
)
def test_runs_on_old_pythons_without_our_dependencies(path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    names = {
        alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    names |= {
        node.module.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
    }
    ours = {other.stem for other in WRAPPERS.glob("*.py")} | {
        "sitecustomize",
        "profharness_hooks",
        "profharness_steps",
        "profharness_ranges",
    }
    assert names - set(sys.stdlib_module_names) - ours <= {"torch", "onnxruntime", "numpy"}
    assert "profharness" not in names
