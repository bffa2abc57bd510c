"""Sessions of onnxruntime on the providers that a spec asks for, and what they really run on.

onnxruntime leaves out a provider that it cannot load with a warning, and where a provider raises it
goes on with the CPU after some lines on stdout. Here both are a refusal, or, where the spec allows
a fallback, something to say.
"""

from __future__ import annotations

import collections
import os
import re
from time import perf_counter_ns
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from profharness_workloads.shared import providers
from profharness_workloads.shared.protocol import (
    BAD_INPUT,
    MISSING,
    USAGE,
    Provider,
    Refusal,
    Spec,
    plain_reason,
)

LEVELS = {
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_SOURCE = re.compile(r"^\S+\.(?:cc|cpp|h):\d+ .*?\) (?=\S)")
_ASSIGNED = "session.record_ep_graph_assignment_info"  # heeded from onnxruntime 1.24 on


class Opened(NamedTuple):
    """A session and the device that it runs on. `fallback` says what was wanted and is not used,
    "" where nothing is missing; `gpu` is the GPU's index, `made_ns` the time of making the session.
    """

    session: Any
    device: str
    gpu: int
    fallback: str
    made_ns: int = 0

    @property
    def compiles(self) -> bool:
        """Whether the first run of each shape compiles."""
        return any(name in providers.COMPILING for name in self.session.get_providers())


def opened(
    runtime: Any,
    path: str,
    spec: Spec,
    local_rank: int,
    configure: Callable[[Any], None] = lambda _: None,
) -> Opened:
    """A session as the spec asks; `configure` gets its options before it is made.

    Raises Refusal: BAD_INPUT for a file that is no model, USAGE for an option that a provider does
    not know, MISSING for a provider that is not there or left out, unless the spec allows a
    fallback or leaves the choice to us.
    """
    choice = providers.chosen(runtime.get_available_providers(), spec, local_rank)
    may_fall = spec.allow_fallback or (spec.device == "auto" and not spec.providers)
    said = [choice.missing] if choice.missing else []
    left = choice.providers
    while True:
        begin_ns = perf_counter_ns()
        try:
            session = _made(runtime, path, spec, left, configure)
        except Exception as error:  # its exception classes have no common base
            why = _judged(runtime, path, spec, left, error)
            if not may_fall:
                raise Refusal(why, _libraries(left), MISSING) from error
            said.append(why)
            left = left[1:] or [Provider(providers.CPU)]
            continue
        made_ns, got = perf_counter_ns() - begin_ns, session.get_providers()
        lost = [one.name for one in left if one.name not in got]
        if lost:
            why = "onnxruntime left out %s and would run on %s" % (", ".join(lost), got[0])
            if not may_fall:
                raise Refusal(why, _libraries(left), MISSING)
            said.append("onnxruntime left out %s" % ", ".join(lost))
        device = "cpu" if got[0] == providers.CPU else "cuda:%d" % choice.gpu
        words = "%s; it ran on %s instead" % ("; ".join(said), got[0]) if said else ""
        return Opened(session, device, choice.gpu, words, made_ns)


def _made(
    runtime: Any,
    path: str,
    spec: Spec,
    asked: Sequence[Provider],
    configure: Callable[[Any], None],
) -> Any:
    """A session, without onnxruntime's own fallback to the CPU."""
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = getattr(
        runtime.GraphOptimizationLevel, LEVELS[spec.optimization]
    )
    if spec.threads:
        options.intra_op_num_threads = spec.threads
    if any(one.name != providers.CPU for one in asked):
        options.add_session_config_entry(_ASSIGNED, "1")
    configure(options)
    given = [(one.name, dict(one.options)) if one.options else one.name for one in asked]
    return runtime.InferenceSession(path, options, providers=given, enable_fallback=0)


def _judged(
    runtime: Any, path: str, spec: Spec, asked: Sequence[Provider], error: Exception
) -> str:
    """Why the asked providers made no session, in words. Raises Refusal where the fault is the
    model's or an option's.
    """
    option = providers.wrong_option(str(error))
    if option:
        known = providers.VERSIONS.get(option, "")
        raise Refusal(
            "--provider: onnxruntime %s knows no option %s of %s"
            % (runtime.__version__, option, asked[0].name),
            "%s %s; leave it out here" % (option, known)
            if known
            else "look for its name in the provider's documentation for this version",
            USAGE,
        ) from error
    broken: Optional[Exception] = error
    if any(one.name != providers.CPU for one in asked):
        try:
            _made(runtime, path, spec, [Provider(providers.CPU)], lambda _: None)
            broken = None
        except Exception as same:  # its exception classes have no common base
            broken = same
    if broken is not None:
        raise Refusal(
            "%s: onnxruntime cannot load it: %s" % (path, _without(path, plain_reason(broken))),
            "check that the file is whole, and that this onnxruntime knows its opset",
            BAD_INPUT,
        ) from error
    return "onnxruntime made no session on %s: %s" % (asked[0].name, _reason(error))


def _libraries(asked: Sequence[Provider]) -> str:
    return (
        "the libraries of %s for this GPU are missing or do not fit, or it sees no device; what "
        "onnxruntime printed is in the process's log, in control/ of the run" % asked[0].name
    )


def _reason(error: Exception) -> str:
    """What the provider said, without the place in onnxruntime's source that stands before it."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return plain_reason(RuntimeError(_SOURCE.sub("", lines[0])))


def _without(path: str, reason: str) -> str:
    """The reason, without naming the file once more."""
    return reason.replace("Load model from %s failed:" % path, "").strip()


def notes_of(one: Opened, spec: Spec) -> Dict[str, str]:
    """What the session says of itself: its providers, the asked options as it has them, the
    variables that overrule them, how many nodes of the model each provider got (where this
    onnxruntime tells), how long it took to make where it compiles, and the fallback.
    """
    session = one.session
    notes = {"providers": ",".join(session.get_providers()), "optimization": spec.optimization}
    has = session.get_provider_options() if spec.providers else {}
    set_options = [
        "%s=%s" % (name, has.get(asked.name, {}).get(name, value))
        for asked in spec.providers or ()
        for name, value in sorted(asked.options.items())
    ]
    if set_options:
        notes["provider_options"] = ",".join(set_options)
    overruling = providers.variables(session.get_providers(), os.environ)
    if overruling:
        notes["provider_variables"] = overruling
    if one.compiles:
        notes["session_ns"] = str(one.made_ns)
    notes.update(_node_notes(assigned(session)))
    if one.fallback:
        notes["fallback"] = one.fallback
    return notes


def _node_notes(nodes: Dict[str, List[str]]) -> Dict[str, str]:
    if not nodes or list(nodes) == [providers.CPU]:
        return {}
    notes = {"nodes": ", ".join("%s %d" % (name, len(ops)) for name, ops in nodes.items())}
    on_cpu = collections.Counter(nodes.get(providers.CPU, ()))
    if on_cpu:
        notes["nodes_on_cpu"] = ", ".join("%s %d" % pair for pair in on_cpu.most_common())
    return notes


def assigned(session: Any) -> Dict[str, List[str]]:
    """The operator types of the nodes that each provider got; empty where onnxruntime does not
    tell, as those before 1.24.
    """
    ask = getattr(session, "get_provider_graph_assignment_info", None)
    if ask is None:
        return {}
    nodes: Dict[str, List[str]] = {}
    try:
        for part in ask():
            nodes.setdefault(part.ep_name, []).extend(node.op_type for node in part.get_nodes())
    except Exception:  # it was not asked to keep them; the class of what it raises is its own
        return {}
    return nodes
