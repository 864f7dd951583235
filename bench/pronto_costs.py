#!/usr/bin/env python3
"""What pronto costs, and whether it reaches its bars: makes docs/measured/tables/pronto.md.

pronto_costs/command_line.py has the options (--help), bench/README.md says how it measures."""

import sys

from pronto_costs.main import run  # the folder beside this file

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
