"""What may get into a profiler's way on this node: one that is attached already, a second copy of
its library that torch brings along, locks that somebody left. Nothing is imported or loaded.

Standard library only, Python 3.8 on; part of `probe.py`.
"""

from __future__ import annotations

import glob
import os
import re

from probe_devices import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping


# libraries of profilers, by how their file names begin. A variable that names others is not told:
# LD_PRELOAD is often an allocator, and ROCP_TOOL_LIBRARIES may be a helper that counts nothing.
PROFILERS = (
    ("librocprofiler-sdk-tool", "rocprofv3"),
    ("librocprof-sys", "rocprof-sys"),
    ("libomnitrace", "omnitrace"),
    ("librocprofiler-compute", "rocprof-compute"),
    ("librocprofiler_tool", "rocprofv2"),
    ("librocprof-tool", "rocprof"),
    ("libtracer_tool", "rocprof"),
    ("libroctracer_tool", "rocprof"),
    ("libToolsInjection64", "nsys"),
)
# the runtime loads these as tools only where HSA_TOOLS_LIB names them
HSA_TOOLS = (("librocprofiler64", "rocprof"), ("libroctracer64", "rocprof"))
VARIABLES = ("LD_PRELOAD", "ROCP_TOOL_LIBRARIES", "HSA_TOOLS_LIB", "CUDA_INJECTION64_PATH")
REGISTER = "ROCPROFILER_REGISTER_LIBRARY"
LOCKS = "/tmp/rocprof-compute-benchmark"  # a fixed name: rocprof-compute puts them there
SDK = "librocprofiler-sdk.so*"


def profilers(tools: Mapping[str, Mapping[str, str]], locks: str = LOCKS) -> Dict[str, Any]:
    """The facts, with the vendor tools as `probe_tools.tools` found them; `locks` is the folder of
    rocprof-compute's locks.
    """
    torch = torch_files()
    place = tools.get("rocprofv3", {}).get("path", "")
    return {
        "attached": attached(os.environ),
        "register_library": os.environ.get(REGISTER, ""),
        "torch": torch,
        "tool_sdk": _one_name(sdk_of_tool(place), torch["sdk"]) if place else "",
        "locks": foreign_locks(locks),
    }


def attached(variables: Mapping[str, str]) -> List[Dict[str, str]]:
    """The profilers that the environment puts into every program, each once per variable."""
    found: List[Dict[str, str]] = []
    for variable in VARIABLES:
        known = PROFILERS + (HSA_TOOLS if variable == "HSA_TOOLS_LIB" else ())
        for path in re.split(r"[:\s]+", variables.get(variable, "")):
            library = os.path.basename(path)
            name = next((name for start, name in known if library.startswith(start)), "")
            if name and (variable, name) not in [(one["variable"], one["name"]) for one in found]:
                found.append({"variable": variable, "library": library, "name": name})
    return found


def torch_files() -> Dict[str, str]:
    """What the torch of this Python brings along: the real path of its rocprofiler-sdk ("" for none
    that is seen), "yes" where it has a roctracer of its own, and its HIP version.

    Torch from AMD's wheels has no such library itself: its first lines load the one of the wheel
    rocm-sdk-core.
    """
    folder = _folder_of("torch")
    if not folder:
        return {"folder": "", "sdk": "", "roctracer": "", "hip": ""}
    sdk = _first(os.path.join(glob.escape(folder), "lib", SDK))
    if not sdk and "rocprofiler" in read(os.path.join(folder, "_rocm_init.py")):
        packages = glob.escape(os.path.dirname(folder))
        sdk = _first(os.path.join(packages, "_rocm_sdk_core*", "lib", SDK))
    own = _first(os.path.join(glob.escape(folder), "lib", "libroctracer64*.so*"))
    hip = re.search(
        r"^hip\b[^=\n]*=\s*['\"]([^'\"]+)", read(os.path.join(folder, "version.py")), re.M
    )
    return {
        "folder": folder,
        "sdk": sdk,
        "roctracer": "yes" if own else "",
        "hip": hip.group(1) if hip else "",
    }


def sdk_of_tool(place: str) -> str:
    """The real path of the rocprofiler-sdk that a rocprofv3 loads; "" where it is not seen.

    It is that of the tree in which the program lies. In a Python's bin folder lies only a small
    program, which starts the one of the wheel rocm-sdk-devel, or else of rocm-sdk-core.
    """
    root = os.path.dirname(os.path.dirname(os.path.realpath(place)))
    for folder in ("lib", "lib64"):
        found = _first(os.path.join(glob.escape(root), folder, SDK))
        if found:
            return found
    return next(
        (
            sdk
            for tree in trees_of_wheels(place)
            for sdk in [_first(os.path.join(glob.escape(tree), "lib", SDK))]
            if sdk
        ),
        "",
    )


def trees_of_wheels(place: str) -> List[str]:
    """The trees with a rocprofv3 in the wheels of the Python in whose bin folder `place` lies, in
    the order in which the program there takes them.
    """
    packages = packages_of(os.path.dirname(os.path.dirname(os.path.realpath(place))))
    return [
        tree
        for name in ("_rocm_sdk_devel*", "_rocm_sdk_core*")
        for tree in sorted(glob.glob(os.path.join(packages, name)))
        if os.path.exists(os.path.join(tree, "bin", "rocprofv3"))
    ]


def packages_of(prefix: str) -> str:
    """A pattern of the folders with the packages of the Pythons below `prefix`. A distribution's
    own Python has dist-packages below /usr/local, or lib64.
    """
    return os.path.join(glob.escape(prefix), "lib*", "python3*", "*-packages")


def beside_torch(place: str) -> str:
    """The rocprofv3 that loads the same library as torch does, where the one at `place` would start
    that of another wheel; else `place` itself.

    Where it would first unpack the wheel rocm-sdk-devel, which takes minutes and must not be broken
    off, it is the one of rocm-sdk-core.
    """
    trees = trees_of_wheels(place)
    if trees and _would_unpack(place):
        return os.path.join(trees[0], "bin", "rocprofv3")
    sdk = torch_files()["sdk"]
    if not sdk or _one_name(sdk_of_tool(place), sdk) == sdk:
        return place
    for tree in trees:
        program = os.path.join(tree, "bin", "rocprofv3")
        own = _first(os.path.join(glob.escape(tree), "lib", SDK))
        if _one_name(own, sdk) == sdk and os.access(program, os.X_OK):
            return program
    return place


def _would_unpack(place: str) -> bool:
    """Whether the wheel rocm-sdk-devel is installed in the Python in whose bin folder `place` lies,
    and has not been unpacked yet.
    """
    packages = packages_of(os.path.dirname(os.path.dirname(os.path.realpath(place))))
    installed, unpacked = (
        glob.glob(os.path.join(packages, name)) for name in ("rocm_sdk_devel", "_rocm_sdk_devel*")
    )
    return bool(installed) and not unpacked


def foreign_locks(folder: str) -> List[Dict[str, str]]:
    """Locks that this user can neither open nor remove, with their owners."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    found: List[Dict[str, str]] = []
    for name in names:
        path = os.path.join(folder, name)
        try:
            owner = os.stat(path).st_uid
        except OSError:
            continue
        if owner != os.getuid() and not os.access(path, os.R_OK | os.W_OK):
            found.append({"path": path, "owner": _user(owner)})
    return found


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _folder_of(package: str) -> str:
    """Where a package lies that this Python would import; it is not imported."""
    from importlib import util

    try:
        spec = util.find_spec(package)
    except (ImportError, ValueError):
        return ""
    places = list(spec.submodule_search_locations or ()) if spec else []
    return os.path.realpath(places[0]) if places else ""


def _first(pattern: str) -> str:
    return next((os.path.realpath(path) for path in sorted(glob.glob(pattern))), "")


def _one_name(path: str, other: str) -> str:
    """`other` where both are one file: the loader knows a library by its inode."""
    try:
        return other if path and other and os.path.samefile(path, other) else path
    except OSError:
        return path
