#!/usr/bin/env python3
"""memcached without Stillpoint and memcached whose items survive a crash, measured in one run: `make memcached-bench`.

memcached/command_line.py has the options (--help), bench/README.md says how it measures."""

import sys

from memcached.main import run  # the folder beside this file

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
