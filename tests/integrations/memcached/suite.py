#!/usr/bin/env python3
"""Runs memcached's own tests on the stock server and on the durable one with a pool, and compares the two.

    python3 tests/integrations/memcached/suite.py                        # all of t/*.t, testapp, sizes (15 minutes)
    python3 tests/integrations/memcached/suite.py --only cas,lru         # those files
    python3 tests/integrations/memcached/suite.py --short                # what `ctest -R integrations.memcached.suite` runs
    python3 tests/integrations/memcached/suite.py --tls                  # those that it runs over TLS (needs libio-socket-ssl-perl)

Each server that a durable test starts gets a new pool, unless its options exclude one (-e, -L, -k, extstore, the proxy): such a server
runs without, and the table says so. A test must end on the durable server as on the stock one. Where it does not, the difference
must be in EXPLAINED, with its reason. Exit codes: 0; 1 where a difference is not explained; 77 where the servers are not built.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
BUILT = pathlib.Path(os.environ.get("STILLPOINT_BUILD", ROOT / "build")) / "integrations/memcached"
SKIPPED = 77
SHORT = ["cas", "chunked-items", "flags", "getset", "incrdecr", "lru", "slabs-reassign-chunked"]
# Tests that need the source's repository or looks at its text.
NO_TESTS_OF_THE_SERVER = {"whitespace", "line-lengths"}
EXPLAINED = {
    "stats": "it counts the lines of `stats`: with a pool there are three more (stillpoint_start, stillpoint_epoch, stillpoint_durable_epoch)",
}

WRAPPER = """#!/bin/sh
# {program}, with a new pool where its options allow one.
for word in "$@"; do
    case "$word" in
    -e*|-L*|-k|*ext_path*|*proxy_config*|*memory-file*|-h|-V|-i|--help|--version) exec {program} "$@" ;;
    esac
done
touch {pools}/$$.started
exec {program} "$@" -o pool={pools}/$$.pool -o "pool_options=durability=process interval_ms={interval_ms} {options}quiet"
"""


def prepare(variant: str, folder: pathlib.Path, interval_ms: int, options: str) -> None:
    """A folder like the one that memcached was built in, whose memcached-debug has a pool."""
    built = BUILT / variant
    folder.mkdir(parents=True)
    for entry in built.iterdir():
        if entry.name != "memcached-debug":
            (folder / entry.name).symlink_to(entry)
    if variant == "stock":
        (folder / "memcached-debug").symlink_to(built / "memcached-debug")
        return
    wrapper = folder / "memcached-debug"
    wrapper.write_text(WRAPPER.format(program=built / "memcached-debug", pools=folder / "pools", interval_ms=interval_ms,
                                      options=options))
    (folder / "pools").mkdir()
    wrapper.chmod(0o755)


def run_one(name: str, folder: pathlib.Path, limit_s: int, tls: bool) -> dict:
    """One test: how it ended, and its numbers of lines `ok` and `not ok`."""
    command = [f"./{name}"] if name in ("testapp", "sizes") else ["perl", "-It/lib", f"t/{name}.t"]
    environment = {**os.environ, "SSL_TEST": "1"} if tls else {name: value for name, value in os.environ.items() if name != "SSL_TEST"}
    began = time.monotonic()
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", timeout=limit_s,
                              check=False)
    except subprocess.TimeoutExpired:
        return {"end": "timed out", "ok": 0, "not_ok": 0, "seconds": time.monotonic() - began, "failed": []}
    lines = done.stdout.splitlines()
    failed = [line for line in lines if re.match(r"not ok\b", line)]
    passed = sum(bool(re.match(r"ok\b", line)) for line in lines)
    skipped = next((line for line in lines if re.match(r"1\.\.0 # ?SKIP", line, re.IGNORECASE)), None)
    end = "skipped" if skipped else "passed" if done.returncode == 0 and not failed else f"failed ({done.returncode})"
    if missing := re.search(r"Can't locate (\S+)\.pm", done.stderr):
        end = f"needs {missing.group(1).replace('/', '::')}"
    problems = failed + [line for line in done.stderr.splitlines() if "at t/" in line]
    return {"end": end, "ok": passed, "not_ok": len(failed), "seconds": time.monotonic() - began, "failed": problems[:5]}


def run_variant(variant: str, names: list[str], arguments: argparse.Namespace) -> dict[str, dict]:
    home = pathlib.Path(tempfile.mkdtemp(prefix=f"memcached-suite-{variant}-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        def one(name: str) -> tuple[str, dict]:
            folder = home / name
            prepare(variant, folder, arguments.interval_ms, arguments.options)
            result = run_one(name, folder, arguments.limit_s, arguments.tls)
            result["pools"] = len(list(folder.glob("pools/*.started")))
            shutil.rmtree(folder, ignore_errors=True)
            if sys.stderr.isatty() or arguments.verbose:
                print(f"{variant:8} {name:26} {result['end']:14} {result['seconds']:6.1f} s", file=sys.stderr)
            return name, result

        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            return dict(pool.map(one, names))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def chosen_tests(arguments: argparse.Namespace) -> list[str]:
    if arguments.only:
        return arguments.only.split(",")
    if arguments.short:
        return SHORT
    if arguments.tls:
        text = (BUILT / "stock/Makefile").read_text()
        rule = re.search(r"^test_basic_tls:.*?\n((?:\t.*\n)+)", text, re.MULTILINE)
        patterns = re.findall(r"t/([\w*-]+)(?:\.t)?", rule.group(1) if rule else "")
        named = {path.stem for word in patterns for path in (BUILT / "stock/t").glob(f"{word}.t")}
        return ["testapp", *sorted(named)]
    names = sorted(path.stem for path in (BUILT / "stock/t").glob("*.t"))
    return ["sizes", "testapp", *(name for name in names if name not in NO_TESTS_OF_THE_SERVER)]


def report(names: list[str], variant: str, results: dict[str, dict[str, dict]]) -> int:
    """Prints what differs, and a summary. Returns how many differences are unexplained."""
    unexplained = 0
    print(f"{'test':28}{'stock':>16}{variant:>16}{'pools':>7}")
    for name in names:
        stock, durable = results["stock"][name], results[variant][name]
        same = stock["end"].split()[0] == durable["end"].split()[0] and stock["not_ok"] == durable["not_ok"]
        note = "" if same else EXPLAINED.get(name, "DIFFERS: " + " / ".join(durable["failed"] or stock["failed"]))
        unexplained += not same and name not in EXPLAINED
        print(f"{name:28}{stock['end']:>16}{durable['end']:>16}{durable['pools']:>7}  {note}")
    counts = [sum(result["end"] == "passed" for result in results[which].values()) for which in ("stock", variant)]
    pools = sum(result["pools"] for result in results[variant].values())
    checks = sum(result["ok"] for result in results[variant].values())
    print(f"\n{len(names)} tests: stock passes {counts[0]}, {variant} {counts[1]} ({checks} checks, {pools} servers with a pool); "
          f"{unexplained} differences without a reason")
    return unexplained


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", choices=("durable", "hooks"), default="durable", help="which durable server (default: %(default)s)")
    parser.add_argument("--only", help="names of tests, with commas between them")
    parser.add_argument("--short", action="store_true", help="some quick ones")
    parser.add_argument("--tls", action="store_true", help="over TLS")
    parser.add_argument("--interval-ms", type=int, default=10, help="of the pools (default: %(default)s)")
    parser.add_argument("--options", default="", help="more options of the pools, with a blank after each")
    parser.add_argument("--jobs", type=int, default=2, help="tests at once (default: %(default)s)")
    parser.add_argument("--limit-s", type=int, default=300, help="for one test (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="each test as it ends")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there")
    arguments = parser.parse_args()
    for variant in ("stock", arguments.variant):
        if not (BUILT / variant / "memcached-debug").exists():
            print(f"suite: {BUILT / variant} has no memcached-debug: python3 integrations/memcached/build.py --with-tests", file=sys.stderr)
            return SKIPPED
    names = chosen_tests(arguments)
    results = {variant: run_variant(variant, names, arguments) for variant in ("stock", arguments.variant)}
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if report(names, arguments.variant, results) else 0


if __name__ == "__main__":
    sys.exit(main())
