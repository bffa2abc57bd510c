"""Mark steps and phases of your own script for profharness. A few lines of standard library, safe
to leave in.

    import profharness_mark

    for batch in loader:
        with profharness_mark.range("forward"):
            ...
        profharness_mark.step(items=len(batch))   # at the end of each step
    profharness_mark.value("accuracy", accuracy)  # a figure that a scan may require

Under `profharness run` the steps are logged with their times and items, `--capture steps=10:30`
counts them, and steps and ranges stand in the traces of the tools that record (torch.profiler,
roctx for AMD's, NVTX for NVIDIA's). Without profharness none of these does anything; under it no
installation is needed, since its hooks make this module importable. To run without profharness too,
copy this file beside the script or guard the import. Once step() is called, it defines what a step
is; otherwise each step of the first torch optimizer counts as one.
"""

from __future__ import annotations

import contextlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator


def step(items: int | None = None) -> None:
    """A step of the workload ends here; `items` is how many samples, events or tokens it
    processed.
    """
    process = _process()
    if process is not None:
        import profharness_steps

        profharness_steps.mark(process, items)


def value(name: str, number: float) -> None:
    """A figure of this run of the script by its name, such as its accuracy; of several with one
    name the last counts. `profharness run --scan ... --require "accuracy>=0.7"` asks for it.
    """
    process = _process()
    if process is not None:
        import profharness_steps

        profharness_steps.value(process, name, number)


@contextlib.contextmanager
def range(label: object) -> Iterator[None]:  # noqa: A001 - the word that all the tools use for it
    """A named phase, as a context manager; ranges may nest."""
    process = _process()
    if process is None:
        yield
        return
    import profharness_ranges

    with profharness_ranges.everywhere("profharness.range:%s" % label):
        yield


def _process() -> Any:
    hook = sys.modules.get("profharness_hook")
    return hook.process() if hook is not None else None
