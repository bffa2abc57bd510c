"""profharness: is this accelerator saturated by this workload, and if not, what holds it back?

    run = profharness.open("traces/demo")  # a run; profharness.read("trace.json.gz") for files
    run.verdict, run.hotspots(by="op"), run.metrics(), run.trace().kernels.to_pandas()
    run = profharness.run("particlenet", batch_sizes=[1, 4])  # measures in a process of its own
    with profharness.profile() as recording: ...  # records a block of this one

docs/python.md describes all of it. The package itself imports nothing heavy, so that the telemetry
sampler, `--help` and `import profharness` start fast: each name below is loaded when it is used.
Its types stand in `__init__.pyi`.
"""

__version__ = "0.1.0"

_PLACES = {
    "open": "profharness.understand.session.opening:open_run",
    "read": "profharness.understand.session.opening:read",
    "run": "profharness.cli.notebook.starting:run",
    "profile": "profharness.cli.notebook.block:profile",
    "Run": "profharness.understand.session.recording:Run",
    "Recording": "profharness.understand.session.recording:Recording",
    "Scan": "profharness.understand.session.scan:Scan",
    "ProfharnessError": "profharness.errors:ProfharnessError",
    "UsageError": "profharness.errors:UsageError",
    "OutputExists": "profharness.errors:OutputExists",
    "Unavailable": "profharness.errors:Unavailable",
    "InputError": "profharness.errors:InputError",
    "WorkloadFailed": "profharness.errors:WorkloadFailed",
}

__all__ = ["__version__", *_PLACES]  # noqa: PLE0604  all of them are texts


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module, _, attribute = _PLACES[name].partition(":")
    value: object = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
