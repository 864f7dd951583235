#!/usr/bin/env python3
"""`stillpoint bench` starts this. In a checkout it can be run alone, finds the build beside it, and has the other benchmarks too:
python3 bench/run.py NAME (driver/registry.py lists them)."""

import sys

from driver.registry import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
