#!/usr/bin/env python3
"""`stillpoint bench` starts this. In a checkout it can be run alone: it finds the build beside it."""

import sys

from driver.main import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
