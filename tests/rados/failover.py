#!/usr/bin/env python3
"""Fail-over of a large pool in Ceph, measured on a cluster that this starts: from SIGKILL of the owner to the first operation elsewhere.

    python3 tests/rados/failover.py --build build --mib 1024 --rounds 5

Four ways: the program alone is killed (its agent gives the pool back), or the whole machine (program and agent in one namespace: the lease
must end first), each with a warm standby and with an ordinary start. Machines are network and process namespaces; root is needed for them.
What was acknowledged must be found each time.
"""

import argparse
import os
import re
import shutil
import statistics
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "cluster"))

from cluster import POOL, Cluster, missing_packages  # noqa: E402  (the path must be set first)
from machines import Machine, Network, enter_own_network  # noqa: E402

SKIPPED = 77
WAIT_S = 120
IN_USE = 75


class Service:
    """wide_ledger under a command of stillpoint on a machine."""

    def __init__(self, bench, command, machine):
        self.bench, self.machine = bench, machine
        self.output = bench.folder / f"{time.monotonic_ns()}.out"
        options = bench.options
        words = [options.build / "bin" / "stillpoint", command, "--pool", bench.pool, "--interval", "100", "--lease", options.lease_ms,
                 "--pool-size", f"{options.mib}M", "--", options.build / "bin" / "wide_ledger", bench.acknowledged, options.mib]
        self.begun_ns = time.monotonic_ns()
        with self.output.open("wb") as output:
            self.process = machine.start(words, bench.environment, output)

    def text(self):
        return self.output.read_text(errors="replace")

    def await_text(self, pattern, seconds=WAIT_S):
        end = time.monotonic() + seconds
        while (found := re.search(pattern, self.text())) is None:
            if time.monotonic() > end or self.process.poll() not in (None,):
                raise SystemExit(f"failover: \"{pattern}\" did not come, exit code {self.process.poll()}: {self.text()}")
            time.sleep(0.01)
        return found

    def first_operation_ns(self):
        return int(self.await_text(r"first operation at (\d+)\n").group(1))

    def thousandth_operation_ns(self):
        return int(self.await_text(r"thousandth operation at (\d+)\n").group(1))

    def first_acknowledgement_ns(self):
        return int(self.await_text(r"first acknowledgement at (\d+)\n").group(1))

    def found(self):
        return int(self.await_text(r"found (\d+) operations").group(1))

    def kill_program(self):
        pid = self.machine.program_of(self.process)
        begun = time.monotonic_ns()
        os.kill(pid, 9)
        return begun


class Bench:
    def __init__(self, options, cluster, network, folder):
        self.options, self.folder = options, folder
        self.machines = [Machine(network, "alpha"), Machine(network, "beta")]
        self.acknowledged = folder / "acknowledged"
        self.environment = {key: value for key, value in cluster.environment().items() if key != "CEPH_ARGS"}
        self.pool = f"rados://{POOL}/wide?id=stillpoint"
        self.rows = {}

    def last_acknowledged(self):
        lines = [line for line in self.acknowledged.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return int(lines[-1].split()[1]) if lines else 0

    def note(self, what, ns):
        self.rows.setdefault(what, []).append(ns / 1e6)

    def start_again(self, machine):
        """An ordinary start, repeated while the lease runs."""
        while True:
            service = Service(self, "run", machine)
            while service.process.poll() is None and "first operation" not in service.text():
                time.sleep(0.002)
            if service.process.poll() != IN_USE:
                return service

    def change(self, owner, is_warm, kills_machine):
        other = next(machine for machine in self.machines if machine is not owner.machine)
        standby = None
        if is_warm:
            standby = Service(self, "standby", other)
            standby.await_text("warm, ")
            time.sleep(0.5)
        if kills_machine:
            begun = time.monotonic_ns()
            owner.machine.kill()
        else:
            begun = owner.kill_program()
        promised = self.last_acknowledged()
        successor = standby or self.start_again(other)
        what = f"{'standby' if is_warm else 'ordinary start'}, {'machine' if kills_machine else 'program'} killed"
        self.note(f"{what}: first operation", successor.first_operation_ns() - begun)
        self.note(f"{what}: thousand operations on random pages", successor.thousandth_operation_ns() - successor.first_operation_ns())
        self.note(f"{what}: first acknowledgement", successor.first_acknowledgement_ns() - begun)
        if not is_warm:
            self.note("a start that is not refused, from its exec: first operation", successor.first_operation_ns() - successor.begun_ns)
        if successor.found() < promised:
            raise SystemExit(f"failover: {promised} operations were acknowledged, {successor.found()} were found")
        owner.process.wait()
        return successor

    def run(self):
        owner = Service(self, "run", self.machines[0])
        owner.first_acknowledgement_ns()
        for _ in range(self.options.rounds):
            for is_warm in (True, False):
                for kills_machine in (False, True):
                    time.sleep(1)
                    owner = self.change(owner, is_warm, kills_machine)
        for what, times in self.rows.items():
            print(f"{what}: median {statistics.median(times):,.0f} ms, {min(times):,.0f} to {max(times):,.0f} of {len(times)}")
        owner.kill_program()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=SOURCE / "build")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lease-ms", type=int, default=2000)
    options = parser.parse_args()
    options.build = options.build.resolve()
    if missing := missing_packages():
        print(f"skipped: {', '.join(missing)} not installed; scripts/setup.sh cluster installs what a cluster needs")
        sys.exit(SKIPPED)
    enter_own_network()
    network = Network()
    if not network.is_real:
        print("skipped: this user may not make namespaces, and so no machine can be lost")
        sys.exit(SKIPPED)
    folder = options.build / f"failover-{os.getpid()}"
    folder.mkdir()
    bench = None
    try:
        with Cluster(folder / "cluster", address=network.address, osd_bytes=16 << 30) as cluster:
            bench = Bench(options, cluster, network, folder)
            bench.run()
    finally:
        for machine in bench.machines if bench else []:
            machine.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
