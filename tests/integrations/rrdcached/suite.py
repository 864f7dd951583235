"""RRDtool's own tests, through rrdcached: as Debian's, with breeze.patch, and with a pool. Each must give what stock gives.

    suite.py [--short]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parents[3] / "build"))
BUILT = BUILD.joinpath("integrations", "rrdcached")
# Without those that fail with stock, as it is built here: they need graphs, or the import from XML.
TESTS = """list1 modify1 create-from-template-1 modify2 modify3 modify4 modify5 tune1 tune2 rrdcreate create-with-source-1
create-with-source-2 create-with-source-3 create-with-source-and-mapping-1 dcounter1 xport1 pdp-calc1""".split()
SHORT = 2
TEST_S_MAX = 120


def side(folder, variant, words):
    """A folder in which RRDtool's tests find the tool and the daemon, which is given the words too."""
    programs = folder / "src"
    programs.mkdir(parents=True)
    (programs / "rrdtool").symlink_to(BUILT / "stock/rrdtool")
    daemon = programs / "rrdcached"
    daemon.write_text(f'#!/bin/sh\nexec {BUILT / variant / "rrdcached"} "$@" {words}\n')
    daemon.chmod(0o755)
    shutil.copytree(BUILT / "stock/tests", folder / "tests")
    return folder


def passes(folder, name):
    tests = folder / "tests"
    environment = os.environ | {"TESTS_STYLE": "rrdcached", "BASEDIR": str(tests), "BUILDDIR": str(tests), "TOP_BUILDDIR": str(folder)}
    done = subprocess.run(["bash", f"./{name}"], cwd=tests, env=environment, capture_output=True, text=True, timeout=TEST_S_MAX,
                          check=False)
    return done.returncode == 0, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help=f"the first {SHORT}, without stock")
    options = parser.parse_args()
    if not (BUILT / "breeze/rrdcached").exists():
        print(f"suite: {BUILT} has no breeze/rrdcached: python3 integrations/rrdcached/build.py")
        return 77
    failed = []
    with tempfile.TemporaryDirectory(prefix="rrdcached-suite-") as name:
        folder = Path(name)
        sides = {"stock": side(folder / "stock", "stock", ""), "without a pool": side(folder / "without", "breeze", ""),
                 "with a pool": side(folder / "with", "breeze", f"--pool {folder}/updates.pool --pool-mib 16")}
        for test in TESTS[:SHORT] if options.short else TESTS:
            for what, where in list(sides.items())[options.short:]:
                passed, output = passes(where, test)
                print(f"{test:<36} {what:<16} {'passes' if passed else 'FAILS'}", flush=True)
                if not passed:
                    failed.append(f"{test}, {what}:\n{output[-1500:]}")
        if not (folder / "updates.pool").exists():
            failed.append("no daemon has made the pool")
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
