"""`--capture` means the same to the harness and to the hooks."""

from __future__ import annotations

import importlib.util

import pytest

from profharness.errors import UsageError
from profharness.rundir.capture import Period, period
from profharness.wrappers_path import wrappers_dir

_SPEC = importlib.util.spec_from_file_location(
    "hooks_capture", wrappers_dir() / "hooks" / "profharness_hooks" / "capture.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
HOOKS = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(HOOKS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("default", None),
        ("all", None),
        ("steps=10:30", None),
        ("after=30s,for=10s", Period(30 * 10**9, 10 * 10**9)),
        ("for=250ms", Period(0, 250_000_000)),
        ("after=2min", Period(120 * 10**9, None)),
        ("after=1.5", Period(1_500_000_000, None)),
    ],
)
def test_what_is_accepted_the_hooks_follow(text: str, expected: Period | None) -> None:
    assert period(text) == expected
    plan = HOOKS.parse(text)
    if expected is not None:
        assert (plan.after_ns, plan.for_ns) == (expected.after_ns, expected.for_ns)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bogus",
        "steps=30:10",
        "steps=5:5",
        "steps=1",
        "steps=-1:3",
        "after=",
        "after=soon",
        "for=0s",
        "after=1s,after=2s",
        "after=1 s",
        "all,for=1s",
    ],
)
def test_what_cannot_be_a_window_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--capture") as caught:
        period(text)
    assert caught.value.hint
