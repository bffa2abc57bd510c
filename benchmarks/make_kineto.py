"""A Kineto trace of any size, with the truth beside it: `python benchmarks/make_kineto.py --kernels
N -o TRACE.json [--truth FILE] [--seed S]`.

It holds what torch.profiler writes for a training loop on ROCm, six events per kernel: two nested
operators with shapes, the launching call, the kernel with its launch arguments, and the two ends of
a flow; a step every 2000 kernels, two streams. The truth (exact, in ns) is computed while writing,
without profharness.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

BASE_NS = 1_751_410_836_000_000_000
PID, TID, STREAMS, STEP = 4711, 4711, (0, 3), 2_000
FIRST_ID = 100_000  # as in a capture that began in the middle of a run
# as long as the names that torch's own templates have
KERNELS = tuple(
    "void at::native::(anonymous "
    f"namespace)::elementwise_kernel_{number:02d}<{'float, ' * (3 * number % 17)}c10::BFloat16, "
    "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
    "at::native::binary_internal::MulFunctor<float> >, "
    f"at::detail::Array<char*, {2 + number % 3}>, TrivialOffsetCalculator<{1 + number % 2}, "
    f"unsigned int> >({'long, ' * 3}int)"
    for number in range(24)
)
OP = (
    '{"ph": "X", "cat": "cpu_op", "name": "%s", "pid": %d, "tid": %d, "ts": %s, "dur": %s, '
    '"args": {"External id": %d, "Record function id": 0, '
    '"Concrete Inputs": ["", "", ""], "Input type": ["c10::BFloat16", "c10::BFloat16", '
    '"c10::BFloat16"], '
    '"Input Strides": [[4096, 1], [4096, 1], [1]], "Input Dims": [[%d, 4096], [4096, 4096], '
    '[4096]], "Ev Idx": %d}}'
)
CALL = (
    '{"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": %d, "tid": %d, "ts": '
    '%s, "dur": %s, "args": {"External id": %d, '
    '"cbid": 211, "correlation": %d, "kernel": "%s", "grid": [%d, 1, 1], "block": [256, 1, 1], '
    '"shared memory": 0}}'
)
KERNEL = (
    '{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": %d, "ts": %s, "dur": %s, '
    '"args": {"External id": %d, "device": 0, '
    '"stream": %d, "correlation": %d, "kind": "Dispatch Kernel", "grid": [%d, 1, 1], "block": '
    "[256, 1, 1]}}"
)
FLOW = '{"ph": "%s", "id": %d, "pid": %d, "tid": %d, "ts": %s, "cat": "ac2g", "name": "ac2g"%s}'
MARK = (
    '{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": %d, "tid": %d, '
    '"ts": %s, "dur": %s, "args": {"External id": 1}}'
)


class Truth:
    """Totals by name, and the union of all kernels: they come nearly in order, so that a short
    buffer sorts them.
    """

    def __init__(self) -> None:
        self.totals: dict[str, list[int]] = {}
        self.spans: list[tuple[int, int]] = []

    def add(self, name: str, start: int, dur: int) -> None:
        row = self.totals.setdefault(name, [0, 0])
        row[0] += 1
        row[1] += dur
        self.spans.append((start, start + dur))

    def document(self) -> dict[str, object]:
        busy, reach = 0, -1
        for start, end in sorted(self.spans):
            busy += max(end - max(start, reach), 0)
            reach = max(reach, end)
        first = min(start for start, _ in self.spans)
        return {
            "kernels": len(self.spans),
            "busy_union_ns": busy,
            "span_ns": reach - first,
            "by_name": [
                {"name": name, "count": count, "total_ns": total}
                for name, (count, total) in self.totals.items()
            ],
        }


def microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def events(kernels: int, seed: int, truth: Truth) -> Iterator[str]:
    draw = random.Random(seed)
    now, free = 2_241_346_127_000_000, dict.fromkeys(STREAMS, 0)
    begun, step = now, 5
    for count in range(1, kernels + 1):
        number = FIRST_ID + count
        name = KERNELS[int(draw.random() ** 2 * len(KERNELS))]
        stream, rows, length = (
            STREAMS[draw.random() < 0.02],
            1 << draw.randrange(11),
            900 + int(draw.expovariate(1 / 9_000)),
        )
        outer, call = 6_000 + draw.randrange(3_000), now + 2_500 + draw.randrange(900)
        start = max(free[stream], call + 4_000 + draw.randrange(1_500))
        free[stream] = start + length + 300
        truth.add(name, start, length)
        us = microseconds
        yield OP % ("aten::linear", PID, TID, us(now), us(outer), 2 * number, rows, 2 * number)
        yield OP % (
            "aten::addmm",
            PID,
            TID,
            us(now + 500),
            us(outer - 900),
            2 * number + 1,
            rows,
            2 * number + 1,
        )
        yield CALL % (PID, TID, us(call), us(1_800), 2 * number + 1, number, name[:40], rows)
        yield FLOW % ("s", number, PID, TID, us(call), "")
        yield KERNEL % (name, stream, us(start), us(length), 2 * number + 1, stream, number, rows)
        yield FLOW % ("f", number, 0, stream, us(start), ', "bp": "e"')
        now += outer + 400
        if count % STEP == 0 or count == kernels:
            now = max(now, *free.values())
            yield MARK % (step, PID, TID, us(begun), us(now - begun))
            begun, step = now, step + 1


def write(out: TextIO, kernels: int, seed: int) -> Truth:
    truth = Truth()
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X", "numSms": 304}],
        "roctracer_version": 4.1,
        "hip_runtime_version": 60443483,
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
        "baseTimeNanoseconds": BASE_NS,
    }
    out.write(json.dumps(head, indent=1)[:-2] + ',\n "traceEvents": [\n')
    out.writelines(
        f",\n{event}" if number else event
        for number, event in enumerate(events(kernels, seed, truth))
    )
    out.write("\n]}\n")
    return truth


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--truth", type=Path)
    options = parser.parse_args()
    with options.out.open("w", buffering=1 << 20) as out:
        truth = write(out, options.kernels, options.seed)
    if options.truth is not None:
        options.truth.write_text(json.dumps(truth.document()))


if __name__ == "__main__":
    main()
