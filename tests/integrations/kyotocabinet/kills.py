#!/usr/bin/env python3
"""Kills the ledger, a program that uses two durable databases of Kyoto Cabinet in threads, again and again; after each kill a second
run of it looks at what came back (ledger.cpp has its invariants), and at what it had acknowledged.

    python3 tests/integrations/kyotocabinet/kills.py --kills 100

`stillpoint crashtest` does the killing and keeps the pool of a failure. The kills are shared out among the database classes, and, where
it was built, the ledger that `stillpoint c++` compiled, with the tracker hooks. Exit code 0: all held; 1: not; 77: not built here.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent
EXIT_SKIPPED = 77
CASES = (("durable", "cache", "auto"), ("durable", "hash", "auto"), ("durable", "tree", "auto"), ("hooks", "cache", "hooks"),
         ("hooks", "hash", "hooks"), ("hooks", "tree", "hooks"))


def crashtest(arguments, ledger, kind, tracker, kills):
    """The report of one `stillpoint crashtest`, and what it said."""
    words = [arguments.binaries / "stillpoint", "crashtest", "--json", "--quiet", "--kills", kills, "--seed", arguments.seed, "--max-ms",
             arguments.longest_ms, "--interval-ms", arguments.interval_ms, "--tracker", tracker, "--durability", "process",
             "--pool-size", "32M", "--moments", "random" if kills < 10 else "both", "--check",
             f"{shlex.quote(str(ledger))} {kind} --verify", "--", ledger, kind]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                          env={**os.environ, "TMPDIR": str(arguments.folder)})
    if not done.stdout.startswith("{"):
        raise SystemExit(f"kills: {' '.join(map(str, words))}: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout), done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="in all (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest-ms", type=int, default=900, help="the longest that a run may live (default %(default)s)")
    parser.add_argument("--interval-ms", type=int, default=20)
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/bin")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/kyotocabinet-kills", help="for the pools")
    arguments = parser.parse_args()
    arguments.folder /= f"kyotocabinet-{arguments.seed}"  # its own: what else lies there is not this program's to delete
    shutil.rmtree(arguments.folder, ignore_errors=True)
    arguments.folder.mkdir(parents=True)
    built = arguments.binaries.parent / "integrations/kyotocabinet"
    cases = [case for case in CASES if (built / case[0] / "ledger").is_file()]
    if not cases:
        print(f"kills: skipped: {built} holds no ledger; integrations/kyotocabinet/build.py makes it")
        return EXIT_SKIPPED
    failed = 0
    for index, (flavour, kind, tracker) in enumerate(cases):
        kills = (index + 1) * arguments.kills // len(cases) - index * arguments.kills // len(cases)
        if kills == 0:
            continue
        facts, messages = crashtest(arguments, built / flavour / "ledger", kind, tracker, kills)
        print(f"kills: {kind}, {flavour}: {facts['kills']} kills, {facts['checker_runs']} checks, result {facts['result']}")
        if facts["result"] != "passed":
            failed += 1
            print(messages)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
