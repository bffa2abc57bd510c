"""Makes every optimizer of torch report its steps, outside of the optimizer's own range, and
backward passes of programs that have none.
"""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def watch(torch: Any, seen: Callable[[Any], None]) -> None:
    """Call `seen(optimizer)` after each step of each optimizer made from now on.

    torch's own post-step hooks run inside the optimizer's range, where a recording must not be
    restarted (see windows), so the step method of each optimizer class is wrapped once instead,
    from outside.
    """
    Optimizer = torch.optim.Optimizer  # noqa: N806 - a class
    original = Optimizer.__init__

    @functools.wraps(original)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        kind = type(self)
        if not getattr(kind.step, "_profharness", False):
            kind.step = _reporting(kind.step, seen)

    Optimizer.__init__ = made


def watch_backward(torch: Any, seen: Callable[[], None], is_wanted: Callable[[], bool]) -> None:
    """Call `seen()` after each backward pass that the program asks for, as long as that is wanted;
    passes inside of another one (of checkpoints) are part of it.
    """
    original = torch.autograd.backward
    open_ = [0]

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        open_[0] += 1
        try:
            result = original(*args, **kwargs)
        finally:
            open_[0] -= 1
        if not open_[0]:
            seen()
            if not is_wanted() and torch.autograd.backward is backward:
                torch.autograd.backward = original
        return result

    torch.autograd.backward = backward


def _reporting(step: Any, seen: Callable[[Any], None]) -> Any:
    @functools.wraps(step)
    def reporting_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = step(self, *args, **kwargs)
        seen(self)
        return result

    reporting_step._profharness = True  # type: ignore[attr-defined]  # our own mark
    return reporting_step
