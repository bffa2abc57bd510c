"""A model's description over gRPC alone, for servers whose HTTP side is not open: printed as in a
server-ready file.

    python grpc_model.py HOST:PORT MODEL [--ca FILE | --tls] [--headers]

With --headers the requests' headers stand on standard input, as a JSON object: on a command line
others could read a token. A process of its own: a gRPC library keeps threads, and the load worker
forks.
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
import subprocess
from typing import Any, Dict, List, Mapping, Sequence

LIMIT_S = 20.0
UNREACHABLE = "UNAVAILABLE"  # gRPC's status where nothing answers
_NAMED = 10


def describe(argv: Sequence[str]) -> int:
    """Print one JSON object; 0, or 1 with a sentence on stderr."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("model")
    parser.add_argument("--ca", default="")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--headers", action="store_true")
    asked = parser.parse_args(argv)
    try:
        import tritonclient.grpc as triton
    except ImportError as error:
        print("asking for a model over gRPC needs tritonclient (%s)" % error, file=sys.stderr)
        return 1
    headers = (
        {str(name): str(value) for name, value in json.load(sys.stdin).items()}
        if asked.headers
        else {}
    )
    tls: Dict[str, Any] = (
        {"ssl": True, "root_certificates": asked.ca or None} if asked.ca or asked.tls else {}
    )
    client = triton.InferenceServerClient(asked.address, **tls)
    try:
        config = client.get_model_config(
            asked.model, headers=headers, as_json=True, client_timeout=LIMIT_S
        )["config"]
    except Exception as error:  # whatever the library raises is the answer to the question
        listing = "" if UNREACHABLE in str(error) else _model_listing(client, headers)
        print(str(error).splitlines()[0] + listing, file=sys.stderr)
        return 1
    finally:
        client.close()
    print(json.dumps(model_of(config)))
    return 0


def _model_listing(client: Any, headers: Mapping[str, str]) -> str:
    """`; it has a, b`: the models that the server lists, for the message about a missing one."""
    try:
        listed = client.get_model_repository_index(
            headers=headers, as_json=True, client_timeout=LIMIT_S
        ).get("models", ())
    except Exception:  # the list is a courtesy: without it the answer stands as it is
        return ""
    names = sorted(str(model.get("name")) for model in listed)
    return (
        "; it has %s" % ", ".join(names[:_NAMED])
        + (" and %d more" % (len(names) - _NAMED) if len(names) > _NAMED else "")
        if names
        else ""
    )


def model_of(config: Mapping[str, Any]) -> Dict[str, Any]:
    """Triton's configuration as the ready file writes it; a dimension in JSON is a text."""

    def tensors(name: str) -> List[Dict[str, Any]]:
        return [
            {
                "name": tensor["name"],
                "dtype": str(tensor.get("data_type", ""))
                .replace("TYPE_", "")
                .replace("STRING", "BYTES"),
                "shape": [int(n) for n in tensor.get("dims", ())],
            }
            for tensor in config.get(name, ())
        ]

    return {
        "name": config["name"],
        "version": "",
        "max_batch_size": int(config.get("max_batch_size", 0)),
        "instances": sum(int(group.get("count", 1)) for group in config.get("instance_group", ()))
        or 1,
        "inputs": tensors("input"),
        "outputs": tensors("output"),
    }


def ask(address: str, model: str, ca: str, tls: bool, headers: Mapping[str, str]) -> Dict[str, Any]:
    """The description, by this file as a process. Raises RuntimeError with what it said."""
    argv = (
        [sys.executable, __file__, address, model]
        + (["--ca", ca] if ca else [])
        + (["--tls"] if tls else [])
    )
    argv += ["--headers"] if headers else []
    headers_json = json.dumps(dict(headers)).encode("ascii")
    done = subprocess.run(
        argv,
        input=headers_json,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=3 * LIMIT_S,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise RuntimeError(lines[-1] if lines else "no answer")
    return dict(json.loads(done.stdout.decode("utf-8")))


if __name__ == "__main__":
    sys.exit(describe(sys.argv[1:]))
