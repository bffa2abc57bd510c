"""Model servers: what our own one reports when it is ready, and how to ask a foreign one.

The server itself is a worker in another process
(wrappers/profharness_workloads/serving/triton_server.py). Nothing here imports a client library:
KServe's HTTP endpoints and Triton's configuration files are read with urllib and protobuf.
"""
