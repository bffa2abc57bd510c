"""Runs the recorded calls of operators that a plan names, each alone, and writes what they took.

    python replay_torch.py --plan FILE

The plan is one JSON object, and the results are JSON lines in the file that it names: `hello`, then
for each call `begin` and `result` or `refused`, at last `bye`. A call that takes too long, or
crashes, ends the process; the harness sees which one began last and goes on with the others in a
new process. Python 3.8 on, torch and the standard library alone.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import argparse
import json
import re
import resource
import signal
from typing import Any, Dict, List, Optional, Tuple

from profharness_workloads.replay import arguments, measuring, values
from profharness_workloads.replay.overloads import Choice, Unfit, choose
from profharness_workloads.replay.waiting import Waiting

MISSING = 3
SPARE = 2 << 30  # address space beyond the limit: stacks of threads, libraries that come late
NAME = re.compile(r"[A-Za-z_]\w*::\w+")


def schemas(torch: Any, name: str) -> Dict[str, Any]:
    """The schemas of an operator's overloads that have a kernel, by their names. Raises Unfit."""
    if not NAME.fullmatch(name):
        raise Unfit("its name is none of an operator")
    namespace, _, short = name.partition("::")
    found: Dict[str, Any] = {}
    for schema in torch._C._jit_get_schemas_for_operator(name):
        full = name + ("." + schema.overload_name if schema.overload_name else "")
        if torch._C._dispatch_has_kernel(full):
            found[schema.overload_name] = schema
    if not found:
        raise Unfit("this torch has no operator %s in %s" % (short[:80], namespace[:40]))
    return found


def run_of(torch: Any, name: str, overload: str) -> Any:
    """What calls the overload through torch's dispatcher."""
    namespace, _, short = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), short)
    return getattr(packet, overload or "default")


class Session:
    """The torch, the device and the plan that all calls of one process share."""

    def __init__(self, torch: Any, plan: Dict[str, Any]) -> None:
        self.torch, self.plan = torch, plan
        self.place = device(torch, plan["device"])
        self.limit_bytes = int(plan["memory_limit"]) or free_bytes(torch, self.place) // 2
        self._evict: Optional[Any] = None

    def synchronise(self) -> None:
        """Wait until the device is idle."""
        if self.place.type != "cpu":
            self.torch.cuda.synchronize(self.place)

    def evict(self) -> None:
        """Fill the caches with something else."""
        if self._evict is None:
            self._evict = measuring.evictor(self.torch, self.place)
        self._evict()

    def one(self, task: Dict[str, Any]) -> Dict[str, Any]:
        """Make one call and measure it. Raises Unfit, and whatever torch raises."""
        torch, name = self.torch, str(task["name"])
        choice = choose(schemas(torch, name), task["inputs"], str(self.place))
        run = run_of(torch, name, choice.overload)
        list_type = str(task["list_type"])
        self._check_memory(run, name, choice, list_type)
        torch.manual_seed(int(self.plan["seed"]))
        operator = name.partition("::")[2]
        call = arguments.build(torch, operator, choice, list_type, self.place)
        samples = self._measured(self._runner(run, call), name)
        sizes = values.sizes_of(choice.slots)
        return {
            "overload": choice.overload,
            "chosen": list(call.chosen),
            "slots": [self._slot(operator, slot, list_type, sizes) for slot in choice.slots],
            **samples,
        }

    def _check_memory(self, run: Any, name: str, choice: Choice, list_type: str) -> None:
        operator = name.partition("::")[2]
        needed = arguments.bytes_of(self.torch, choice, list_type)
        if needed <= self.limit_bytes:
            needed += arguments.result_bytes(self.torch, run, operator, choice, list_type)
        if needed > self.limit_bytes:
            raise Unfit(
                "it needs %.3g GB of memory, and the limit is %.3g GB (--memory-limit)"
                % (needed / 1e9, self.limit_bytes / 1e9)
            )

    def _runner(self, run: Any, call: arguments.Call) -> measuring.Runner:
        positional, keywords, written = call.positional, call.keywords, call.written

        def make() -> Any:
            return run(*positional, **keywords)

        def restore() -> None:
            for tensor, first in written:
                tensor.copy_(first)

        waiting = Waiting(counts=self.place.type == "cpu")
        return measuring.Runner(make, restore, self.synchronise, bool(written), waiting)

    def _measured(self, runner: measuring.Runner, name: str) -> Dict[str, Any]:
        seconds = float(self.plan["min_seconds"])
        runner.run()  # what cannot run says so before anything is timed
        self.synchronise()
        if self.plan.get("count"):
            return {"windows": measuring.windows(runner, int(self.plan["count"]))}
        warm = measuring.warm(runner, seconds)
        usual = sorted(warm["ns"])[len(warm["ns"]) // 2]
        calls = min(measuring.MOST_PROFILED, max(5, seconds * 1e9 / max(usual, 1.0)))
        options = {key: bool(value) for key, value in self.plan["profiler"].items()}
        return {
            "warm": warm,
            "profiled": measuring.profiled(runner, name, options, (self.place, calls)),
            "cold": measuring.cold(runner, self.evict, seconds),
        }

    def _slot(
        self, operator: str, slot: Any, list_type: str, sizes: values.Sizes
    ) -> Dict[str, Any]:
        """An argument as it was passed, for a script that does the same."""
        made = []
        for one in arguments.tensors_of(slot, list_type):
            what = values.filling(operator, slot.name, one.dtype, sizes)
            made.append(
                {
                    "dims": list(one.dims),
                    "strides": list(one.strides),
                    "dtype": one.dtype,
                    "low": what.low,
                    "high": what.high,
                    "rising": what.rising,
                }
            )
        listed = slot.given is not None and slot.given["kind"] == "tensors"
        return {
            "name": slot.name,
            "keyword": slot.keyword,
            "tensors": made,
            "listed": listed,
            "value": "" if slot.given is not None else repr(slot.value),
        }


def device(torch: Any, wanted: str) -> Any:
    """The device in torch's words; exits with MISSING where it is not there."""
    name = wanted
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name != "cpu" and not torch.cuda.is_available():
        print("--device %s: torch %s sees no GPU" % (wanted, torch.__version__), file=sys.stderr)
        sys.exit(MISSING)
    if name == "cuda":  # memory is asked of a device by its number
        return torch.device(name, torch.cuda.current_device())
    return torch.device(name)


def free_bytes(torch: Any, place: Any) -> int:
    """Memory that is free on the device."""
    if place.type != "cpu":
        return int(torch.cuda.mem_get_info(place)[0])
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file if ":" in line)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 4 << 30


def limit_memory(torch: Any, session: Session) -> None:
    """No call takes much more than the limit, whatever it is: what it asks for beyond that fails as
    if there were no memory.
    """
    if session.place.type != "cpu":
        total = torch.cuda.get_device_properties(session.place).total_memory
        torch.cuda.set_per_process_memory_fraction(
            min(1.0, session.limit_bytes / total), session.place
        )
        return
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    room = mapped + session.limit_bytes + SPARE
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or room < hard:
        resource.setrlimit(resource.RLIMIT_AS, (room, hard))


def work(session: Session, write: Any) -> None:
    """All calls of the plan, one after the other."""
    torch, plan = session.torch, session.plan
    for task in plan["calls"]:
        write({"kind": "begin", "id": task["id"]})
        # the default action of this signal ends the process, even where torch never returns
        signal.setitimer(signal.ITIMER_REAL, float(plan["limit_s"]))
        try:
            with torch.no_grad():
                answer = dict(session.one(task), kind="result", id=task["id"])
        except Unfit as reason:
            answer = {"kind": "refused", "id": task["id"], "error": str(reason)}
        except Exception as error:  # torch says what it does not take in many ways
            text = (str(error).strip() or type(error).__name__).split("\n")[0]
            answer = {"kind": "refused", "id": task["id"], "error": "torch: " + text[:300]}
        signal.setitimer(signal.ITIMER_REAL, 0)
        write(answer)


def main(words: Optional[List[str]] = None) -> int:
    """Run the plan. Returns the exit status: MISSING without torch or the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", required=True)
    with open(parser.parse_args(words).plan) as file:
        plan: Dict[str, Any] = json.load(file)
    try:
        import torch
    except Exception as error:  # a broken installation raises OSError or worse
        print("torch cannot be imported by %s: %s" % (sys.executable, error), file=sys.stderr)
        return MISSING
    if plan["threads"]:
        torch.set_num_threads(int(plan["threads"]))
    session = Session(torch, plan)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with open(plan["results"], "a") as results:

        def write(line: Dict[str, Any]) -> None:
            results.write(json.dumps(line) + "\n")
            results.flush()

        write(_hello(torch, session))
        session.evict()
        limit_memory(torch, session)
        work(session, write)
        write({"kind": "bye"})
    return 0


def _hello(torch: Any, session: Session) -> Dict[str, Any]:
    name, threads = _named(torch, session.place)
    return {
        "kind": "hello",
        "torch": torch.__version__,
        "device": str(session.place),
        "device_name": name,
        "threads": threads,
        "memory_limit": session.limit_bytes,
    }


def _named(torch: Any, place: Any) -> Tuple[str, int]:
    if place.type == "cpu":
        return "", int(torch.get_num_threads())
    return str(torch.cuda.get_device_properties(place).name), 0


if __name__ == "__main__":
    sys.exit(main())
