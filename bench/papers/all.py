#!/usr/bin/env python3
"""Every figure and table of the papers in one page: python3 bench/papers/all.py --markdown docs/measured/tables/papers.md"""

import sys

import nvhooks
import nvthreads
import pmthreads
import program
import pronto
import respct

PAPERS = [pmthreads.PAPER, respct.PAPER, pronto.PAPER, nvhooks.PAPER, nvthreads.PAPER]

if __name__ == "__main__":
    sys.exit(program.main(PAPERS, __doc__))
