"""The sampler process: `python -m profharness.telemetry --spec FILE`, one per node beside a run.

It imports the standard library only, so that it starts in a few milliseconds and can run where
nothing else is installed. What it leaves under the run's `telemetry/` folder:

    <host>.ready.json    written once it samples: its pid, and each metric with its rate or why it
                         is missing
    <host>.samples.bin   the samples (`profharness.telemetry.records`), readable after `kill -9` up
                         to the last second
    <host>.clocks.jsonl  one reading of the node's clocks per second, and one before and after
                         (`clocks`)
    <host>.done.json     written at a regular end: rows, missed ticks, failed reads, its own CPU
                         time

Turning these into a trace is `profharness.rundir.telemetry`.
"""
