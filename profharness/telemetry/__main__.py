"""Entry point of the sampler process; see `profharness.telemetry.sampler`."""

from __future__ import annotations

import sys

from profharness.telemetry.sampler import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
