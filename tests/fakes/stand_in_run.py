"""`profharness` with the stand-ins of this folder in place of the model server and the load
generator.
"""

import pathlib
import sys

import profharness.scans.served as served
from profharness.cli import run_cli

FAKES = pathlib.Path(__file__).resolve().parent / "workloads"

if __name__ == "__main__":
    served.SERVER = str(FAKES / "stand_in_server.py")
    served.CLIENT = str(FAKES / "stand_in_client.py")
    sys.exit(run_cli(sys.argv[1:]))
