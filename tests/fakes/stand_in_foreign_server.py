"""A stand-in for a model server of another's: KServe v2 metadata over HTTP, ready some time after
its start. Nothing is computed.

`python stand_in_foreign_server.py PORT [--plain] [--no-config] [--after SECONDS] [--token T]`;
`--plain` knows only /health.
"""

from __future__ import annotations

import argparse
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = {
    "name": "tagger",
    "versions": ["1", "3", "10"],
    "platform": "onnxruntime_onnx",
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2, -1]}],
    "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 8]}],
}
CONFIG = {
    "name": "tagger",
    "backend": "onnxruntime",
    "max_batch_size": 32,
    "instance_group": [{"count": 2, "gpus": [0, 1], "kind": "KIND_GPU"}],
    "dynamic_batching": {"max_queue_delay_microseconds": "250"},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--no-config", action="store_true")
    parser.add_argument("--after", type=float, default=0.0)
    parser.add_argument("--token", default="")
    parser.add_argument("--model-repository", default="")
    asked = parser.parse_args()
    begun = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if time.monotonic() - begun < asked.after:
                self.answer(503, {"error": "loading"})
            elif self.path in ("/health", "/v2/health/ready"):
                self.answer(200, {})
            elif asked.token and self.headers.get("triton-access-token") != asked.token:
                self.answer(403, {"error": "restricted"})
            elif asked.plain:
                self.answer(404, {"error": "no such place"})
            elif self.path == "/v2":
                self.answer(200, {"name": "stand-in", "version": "0", "extensions": []})
            elif self.path == "/v2/models/tagger":
                self.answer(200, MODEL)
            elif self.path == "/v2/models/tagger/config" and not asked.no_config:
                self.answer(200, CONFIG)
            elif self.path == "/v2/models/odd":
                self.answer(200, ["not", "metadata"])
            else:
                self.answer(404, {"error": "no such place"})

        def answer(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    ThreadingHTTPServer(("127.0.0.1", asked.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
