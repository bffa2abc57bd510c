"""Has every optimizer of torch report its steps, from outside of the optimizer's own range."""

import functools


def watch(torch, seen):
    """Call `seen(optimizer)` after each step of each optimizer made from now on.

    torch's own post-step hooks run inside the optimizer's range, where a recording must not be
    restarted (see windows), so the step method of each optimizer class is wrapped once instead,
    from outside.
    """
    Optimizer = torch.optim.Optimizer  # noqa: N806 - a class
    original = Optimizer.__init__

    @functools.wraps(original)
    def made(self, *args, **kwargs):
        original(self, *args, **kwargs)
        kind = type(self)
        if not getattr(kind.step, "_profharness", False):
            kind.step = _reporting(kind.step, seen)

    Optimizer.__init__ = made


def _reporting(step, seen):
    @functools.wraps(step)
    def reporting_step(self, *args, **kwargs):
        result = step(self, *args, **kwargs)
        seen(self)
        return result

    reporting_step._profharness = True  # our own mark
    return reporting_step
