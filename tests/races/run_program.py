#!/usr/bin/env python3
"""Runs races_program, or an engine's ledger (--mode ledger), once under ThreadSanitizer; fails if it reports a race (or, with
--expect-race, if it does not)."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

RACE_FOUND = 66  # ThreadSanitizer's exit code
UNSUPPORTED = 4  # races_program's
SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent


def options():
    """The library has its own handlers of signals in front of the sanitizer's, which are not ready when it sets them."""
    words = [f"handle_{signal}=0" for signal in ("segv", "sigbus", "abort", "sigill", "sigfpe")]
    words.append(f"suppressions={HERE / 'suppressions.txt'}")
    for name in ("llvm-symbolizer-19", "llvm-symbolizer"):
        found = shutil.which(name)
        if found:
            words.append(f"external_symbolizer_path={found}")
            break
    return ":".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--seconds", default="0.5")
    parser.add_argument("--tracker", default="uffd", help="uffd or hooks")
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--engine", default="respct", help="of the ledger")
    parser.add_argument("--expect-race", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    pool = arguments.folder / "races.pool"
    pool.unlink(missing_ok=True)
    if "external_symbolizer_path" not in options():
        print("run_program: skipped: there is no llvm-symbolizer, by whose names suppressions are matched")
        sys.exit(SKIPPED)
    # Not mprotect: its faults would come inside the sanitizer's own code.
    words, more = [arguments.program, arguments.mode, str(pool)], {}
    if arguments.mode == "ledger":
        acknowledged = arguments.folder / "acknowledged"
        acknowledged.unlink(missing_ok=True)
        more = {"STILLPOINT_POOL": str(pool), "STILLPOINT_ENGINE": arguments.engine, "STILLPOINT_INTERVAL_MS": "2",
                "STILLPOINT_DURABILITY": "process"}
        words = [arguments.program, str(acknowledged), "4", "20000"]
    text = f"interval_ms=1 durability=process pool_size_mb=8 tracker={arguments.tracker}"
    if not more:
        words += [text, arguments.seconds]
    outcome = subprocess.run(words, check=False, env=dict(os.environ, TSAN_OPTIONS=options(), **more), timeout=600)
    pool.unlink(missing_ok=True)
    if outcome.returncode == UNSUPPORTED:
        print("run_program: skipped: this kernel or sandbox refuses userfaultfd")
        sys.exit(SKIPPED)
    wanted = RACE_FOUND if arguments.expect_race else 0
    if outcome.returncode != wanted:
        sys.exit(f"run_program: {arguments.mode} ended with {outcome.returncode}, not {wanted}")


if __name__ == "__main__":
    main()
