"""Sentences of the runtime under AMD's tools, and of what several of the tools share: what each
means, and the way out. A tool's own are in its layer's description. Data only.

`SHARED` and `LOST` always count. The known faults (`SIGNS`) count where a pass went wrong
(`supervise.diagnosis`): some of their sentences are harmless in one that recorded what it was for.

Sources: the projects' lists of changes, and reports of users (rocm-systems, TheRock, pytorch, vllm,
TransformerEngine, Apptainer).
"""

from __future__ import annotations

from profharness.layers.contract import Sign

TOO_MANY = r"exceeds\s+the\s+capabilities\s+of\s+the\s+hardware"
"""How rocprofv3 says that a device does not count so much at once."""

SHARED = (
    Sign(
        r"registered more than once",
        "mixed-rocm",
        "two installations of ROCm were loaded into one process, and it aborted",
    ),
    Sign(
        r"could not be locked for profiling due to lack of permissions",
        "counters-inexact",
        "the driver did not give the counters to this user alone (it needs CAP_PERFMON): "
        "their values may include other programs' work",
    ),
    Sign(
        r"Unable to find all counters for agent",
        "counters-refused",
        "this device does not have all of the counters asked for",
    ),
    Sign(TOO_MANY, "counters-refused", "these counters do not fit into one pass on this device"),
    Sign(
        r"/dev/kfd.*(?:Permission denied|No such file|failed to open)|(?:open|access).*?/dev/kfd",
        "no-device-access",
        "the process may not open the device /dev/kfd",
    ),
    Sign(
        r"no ROCm-capable device is detected|hipErrorNoDevice",
        "no-device-access",
        "the HIP runtime saw no device",
    ),
)
LOST = Sign(
    r"(?:rocprof|roctracer|rocprofiler|perfetto|omnitrace)[^\n]*(?:buffer overflow|buffer is "
    r"full|dropped|records? lost)",
    "events-dropped",
    "the tool's buffer was full: it dropped records",
)

_ONE_TREE = (
    "let torch and the profiler come from one ROCm: with ROCm's wheels start the rocprofv3 in "
    "site-packages/_rocm_sdk_core/bin, else use torch's build for the installed release; "
    "or use --profile torch"
)

HANGS: tuple[Sign, ...] = (
    Sign(
        r"registered more than once|inconsistency in registered CommandLine options",
        "mixed-rocm",
        "two copies of ROCm's compiler library were loaded into one process, which aborts or hangs",
        _ONE_TREE,
    ),
    Sign(
        r"Async signal handler still waiting on signal",
        "profiler-hung",
        "the program stands still, since the profiler waits for a signal of a queue that never "
        "comes (known of rocprofiler-sdk 1.3.2 on ROCm 7.2.3)",
        "use the rocprofiler-sdk that came with this ROCm, or --profile torch",
    ),
    Sign(
        r"sysfs nodes path '[^'\n]*/kfd/topology/nodes' does not exist",
        "no-device-access",
        "this node has no /dev/kfd, and rocprofiler-sdk waits for one: with torch 2.13 for ROCm "
        "7.2 already `import torch` hangs",
        "start it where there is an AMD device (in a container: --device=/dev/kfd "
        "--device=/dev/dri), or use torch's build for the CPU",
    ),
)
"""Those after which a process may stand still, until the user ends it."""

SIGNS: tuple[Sign, ...] = (
    *HANGS,
    Sign(
        r"CONFIGURATION_LOCKED|"
        r"Configuration request occurred outside of valid rocprofiler configuration period",
        "mixed-rocm",
        "rocprofiler-sdk was configured before the profiler came: by a second copy of it, as torch "
        "wheels bring one, or by another profiler in the process",
        _ONE_TREE,
    ),
    Sign(
        r"ROCPROFILER_REGISTER_LIBRARY is already set to",
        "mixed-rocm",
        "a process before this one, or a wheel of ROCm, has already named the rocprofiler-sdk that "
        "is to be used, and it is another one",
        f"unset ROCPROFILER_REGISTER_LIBRARY before the run; else {_ONE_TREE}",
    ),
    Sign(
        r"version [`']GLIBC_[\d.]+' not found[^\n]*/\.singularity\.d/libs|"
        r"/\.singularity\.d/libs[^\n]*version [`']GLIBC_[\d.]+' not found|"
        r"rocBLAS error: Cannot read [^\n]*TensileLibrary",
        "mixed-rocm",
        "the host's ROCm libraries stand in front of those of the image",
        "--container-gpu none leaves them out: the image's own are used",
    ),
    Sign(
        r"is an experimental feature\. Use --experimental to enable it",
        "known-fault",
        "this release of rocprof-compute takes an option as an experiment only",
        "add --tool-arg rocprof-compute:--experimental, or leave the option out",
    ),
    Sign(
        r"ROCPROF_OUTPUT_PATH environment variable must be set",
        "known-fault",
        "rocprof-compute before ROCm 7.14 cannot profile a shell script",
        "name the program itself after --, not the script that starts it",
    ),
    Sign(
        r"YAML package is not installed",
        "known-fault",
        "rocprofv3 reads a YAML file only with PyYAML in the Python that runs it",
        "give it a JSON file, or install pyyaml for that Python",
    ),
)
