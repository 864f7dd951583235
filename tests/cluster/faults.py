#!/usr/bin/env python3
"""Rounds of faults on a real Ceph cluster, by a seed: a ledger program owns a pool there, and each round breaks something.

The program or its machine is killed; one OSD, two, or the monitor; the owner is paused and another takes over, and the old one wakes up;
the network between owner and cluster is cut; the cluster is filled. After each round must hold:

  - no acknowledged epoch is lost: each owner finds at its start at least what any owner before it was ever told is durable;
  - there are never two owners that commit: one that was shut out is told of nothing more, and ends with exit code 75;
  - there is never half an epoch: the program's own sums hold at each start, and `stillpoint check` finds the pool sound;
  - acknowledgements go on while the cluster can take writes, stop while it cannot, and go on afterwards.

SIGINT or SIGTERM: the round that runs is the last one, and the summary follows.
Exit code 0: all held. 1: something did not; the line names the seed and the round. 77: Ceph is not installed.
"""

import argparse
import collections
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lanes
from cluster import POOL, Cluster, missing_packages
from machines import Machine, Network, enter_own_network
from owner import LEASE_MS, PROGRAMS, Broken, History, Owner

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parents[2] / "build"))
SKIPPED = 77


class Rounds:
    rounds_of_a_pool = 25

    def __init__(self, options, cluster, network):
        self.options, self.cluster, self.network = options, cluster, network
        self.random = None  # of each pool another
        self.machines = [Machine(network, "alpha"), Machine(network, "beta")]
        self.counts = collections.Counter()
        self.longest = collections.Counter()
        self.pools = options.first_pool - 1
        self.done = 0
        self.is_stopped = False
        self.owner = None
        self.history = None

    def faults(self):
        """name -> (how often, what it does)."""
        all_of = {"kill the program": (4, self.kill_program), "take over from a live owner": (3, self.take_over),
                  "kill an OSD": (3, self.kill_osd), "kill two OSDs": (2, self.kill_two_osds), "kill the monitor": (2, self.kill_monitor),
                  "fill the cluster": (1, self.fill),
                  "standby takes over from a killed program": (2, self.standby_after_kill)}
        if self.network.is_real:
            all_of |= {"standby takes over from a lost machine": (4, self.standby_after_loss),
                       "kill the machine": (4, self.kill_machine), "pause, take over, resume": (4, self.zombie),
                       "kill the agent": (2, self.kill_agent), "pause the agent": (2, self.pause_agent),
                       "cut the network, take over": (3, self.cut_and_take_over), "cut the network for a while": (2, self.cut)}
        if self.history.program.opens_pool:
            all_of = {name: fault for name, fault in all_of.items() if "standby" not in name}
        return {name: fault for name, fault in all_of.items() if not self.options.only or self.options.only in name}

    # The owner.

    def programs(self):
        return list(PROGRAMS)

    def new_pool(self):
        self.end_pool()
        self.pools += 1
        self.random = random.Random(f"{self.options.seed} {self.pools}")  # so a run can begin with any pool
        name = self.options.program or self.random.choice(self.programs())
        folder = self.options.folder / f"pool-{self.pools}"
        environment = {key: value for key, value in self.cluster.environment().items() if key != "CEPH_ARGS"}
        place = f"rados://{POOL}/{name}-{self.options.seed}-{self.pools}?id=stillpoint"
        self.history = History(PROGRAMS[name], place, folder, self.options.binaries, environment)
        self.owner = self.first_owner(self.random.choice(self.machines))
        self.owner.begin()

    def first_owner(self, machine):
        return Owner(self.history, machine)

    def end_pool(self):
        """Kills the owner, and examines the pool at rest."""
        if self.history is None:
            return
        self.owner.kill_machine()
        self.check_at_rest()
        self.counts["(acknowledgements, all kept)"] += sum(owner.told() for owner in self.history.owners)
        shutil.rmtree(self.history.folder)
        self.history = None

    def tool(self, *words):
        command = [str(word) for word in (self.options.binaries / "stillpoint", *words)]
        return subprocess.run(command, env=self.history.environment, capture_output=True, text=True, check=False, timeout=120)

    def check_at_rest(self):
        """Waits until the lease of a dead owner has ended."""
        end = time.monotonic() + 30
        while (done := self.tool("check", self.history.pool)).returncode == 75 and time.monotonic() < end:
            time.sleep(0.1)
        if done.returncode:
            raise Broken(f"check: exit code {done.returncode}: {done.stdout}{done.stderr}")
        epoch = int(done.stdout.split("sound at epoch ")[1].split()[0])
        if epoch < self.history.promised_epoch():
            raise Broken(f"epoch {self.history.promised_epoch()} was acknowledged, the pool is at epoch {epoch}")
        self.history.judge()

    def other(self):
        return next(machine for machine in self.machines if machine is not self.owner.machine)

    def succeed(self, machine, take_over=False):
        """A new owner begins, whatever became of the last one."""
        begin = time.monotonic()
        self.owner = Owner(self.history, machine, take_over)
        self.owner.begin()
        self.history.judge()
        return time.monotonic() - begin

    def note(self, what, seconds):
        self.longest[what] = max(self.longest[what], round(seconds, 2))

    def work_for_a_while(self):
        self.owner.await_acknowledgements(self.random.randint(1, 3))
        time.sleep(self.random.uniform(0, 0.1))

    # Faults.

    def kill_program(self):
        self.owner.kill_program()
        self.note("start on the same machine after the program was killed", self.succeed(self.owner.machine))

    def kill_machine(self):
        self.owner.kill_machine()
        self.note("start elsewhere after the lease", self.succeed(self.random.choice([self.owner.machine, self.other()])))

    def take_over(self):
        old = self.owner
        self.note("take-over from a live owner", self.succeed(self.other(), take_over=True))
        old.must_end_shut_out()

    def zombie(self):
        old = self.owner
        old.machine.pause()
        self.succeed(self.other(), take_over=self.random.random() < 0.5)
        if self.random.random() < 0.5:
            self.owner.await_acknowledgements(1)
        old.machine.resume()
        old.must_end_shut_out()

    def standby(self):
        """A process on the other machine that waits, and perhaps has the pool in memory."""
        standby = Owner(self.history, self.other(), command="standby")
        standby.stand_by(is_warm=self.random.random() < 0.7)
        self.owner.await_acknowledgements(self.random.randint(1, 3))
        if standby.found is not None or standby.told():
            raise Broken(f"{standby.name()} begins while {self.owner.name()} has the pool")
        return standby

    def standby_succeeds(self, standby, what, begin):
        self.owner = standby
        standby.begin()
        self.note(what, time.monotonic() - begin)
        self.history.judge()
        standby.await_acknowledgements(1)

    def standby_after_kill(self):
        standby = self.standby()
        begin = time.monotonic()
        self.owner.kill_program()
        self.standby_succeeds(standby, "standby after a kill of the program", begin)

    def standby_after_loss(self):
        """The machine is dead, stands still or is cut off: each looks alike from the other one, and the lease decides."""
        old, standby = self.owner, self.standby()
        way = self.random.choice(["kill", "pause", "cut"])
        begin = time.monotonic()
        getattr(old.machine, way)()
        try:
            self.standby_succeeds(standby, "standby after the loss of a machine, with its lease", begin)
        finally:
            if way != "kill":
                {"pause": old.machine.resume, "cut": old.machine.join}[way]()
        if way != "kill":
            old.must_end_shut_out()
        else:
            old.process.wait()

    def kill_agent(self):
        """The program lives, and no process writes for it: it is told of nothing more, until it is started again."""
        old = self.owner
        for pid in old.machine.agents():
            os.kill(pid, signal.SIGKILL)
        self.must_stand_still(self.random.uniform(0.1, 0.5), "its agent is dead")
        if self.random.random() < 0.5:
            old.kill_program()
        self.succeed(self.random.choice([old.machine, self.other()]))
        old.kill_program()

    def pause_agent(self):
        """Another takes over while the program runs and its agent stands still."""
        old = self.owner
        agents = old.machine.agents()
        for pid in agents:
            os.kill(pid, signal.SIGSTOP)
        self.succeed(self.other(), take_over=self.random.random() < 0.5)
        for pid in agents:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        old.must_end_shut_out()

    def cut_and_take_over(self):
        old = self.owner
        old.machine.cut()
        try:
            self.succeed(self.other(), take_over=self.random.random() < 0.5)
            time.sleep(self.random.uniform(0, 1))
            self.history.judge()
        finally:
            old.machine.join()
        old.must_end_shut_out()

    def cut(self):
        """Shorter and longer than the lease; no other wants the pool meanwhile."""
        self.owner.machine.cut()
        time.sleep(self.random.uniform(0.1, 3 * LEASE_MS / 1000))
        self.owner.machine.join()
        self.note("acknowledgement after a cut", self.owner.await_acknowledgements(2))

    def kill_osd(self):
        osd = self.random.randrange(3)
        self.cluster.kill(f"osd.{osd}")
        self.note("acknowledgement with one OSD down", self.owner.await_acknowledgements(2))
        self.cluster.start_osd(osd)
        self.owner.await_acknowledgements(1)
        self.cluster.wait_clean()

    def kill_two_osds(self):
        """Fewer replicas than min_size: nothing may be acknowledged once both are gone and what was under way has ended."""
        osds = self.random.sample(range(3), 2)
        for osd in osds:
            self.cluster.kill(f"osd.{osd}")
        self.must_stand_still(self.random.uniform(0.5, 1.5), "two of three OSDs are down")
        if self.random.random() < 0.3:
            self.owner.kill_program()
        for osd in osds:
            self.cluster.start_osd(osd)
        self.go_on("acknowledgement after two OSDs were down")
        self.cluster.wait_clean()

    def must_stand_still(self, seconds, why):
        time.sleep(0.3)  # for what was under way
        before, last = self.owner.told(), self.owner.last()[0]
        time.sleep(seconds)
        if self.owner.told() > before + self.owner.program.under_way:
            raise Broken(f"{self.owner.name()} was told of epochs after {last} while {why}, up to {self.owner.last()[0]}")

    def go_on(self, what):
        """The program was killed meanwhile, or goes on by itself."""
        if self.owner.process.poll() is None:
            self.note(what, self.owner.await_acknowledgements(2))
        else:
            self.succeed(self.owner.machine)

    def kill_monitor(self):
        self.cluster.kill("mon.a")
        try:
            self.note("acknowledgement without the monitor", self.owner.await_acknowledgements(2))
            time.sleep(self.random.uniform(0, 2 * LEASE_MS / 1000))
        finally:
            self.cluster.start_process("mon.a")
        self.note("acknowledgement after the monitor", self.owner.await_acknowledgements(2))
        self.cluster.wait_clean()

    def fill(self):
        self.cluster.fill()
        time.sleep(self.random.uniform(0.2, 1))
        if self.random.random() < 0.3:
            self.owner.kill_program()
        self.cluster.empty()
        if "the Ceph cluster is full" in self.owner.output():
            self.counts["(a full cluster stopped acknowledgements)"] += 1
        self.go_on("acknowledgement after the cluster was full")
        self.cluster.wait_clean()

    # All rounds.

    def close(self):
        """No process of it is left, also after a failure."""
        if self.history is not None:
            self.history.end()
        for machine in self.machines:
            machine.close()

    def stop(self, *_):
        """The round that runs is the last one."""
        self.is_stopped = True

    def run(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.stop)
        begin = time.monotonic()
        for number in range(self.options.rounds):
            if self.is_stopped or (self.options.seconds and time.monotonic() - begin > self.options.seconds):
                break
            name = "a new pool"
            try:
                if number % self.rounds_of_a_pool == 0:
                    self.new_pool()
                self.work_for_a_while()
                faults = self.faults()
                name = self.random.choices(list(faults), [weight for weight, _ in faults.values()])[0]
                if self.options.verbose:
                    print(f"round {number}: {self.owner.name()}: {name}", flush=True)
                faults[name][1]()
                self.history.judge()
            except Exception as error:
                sys.exit(f"faults: seed {self.options.seed}, pool {self.pools}, round {number}, {self.history.program.name}, {name}: {error}\n"
                         f"faults: kept: {self.options.folder}")
            self.counts[name] += 1
            self.done += 1
            if (number + 1) % 50 == 0:
                print(f"faults: {number + 1} rounds in {time.monotonic() - begin:.0f} s, nothing lost", flush=True)
        self.end_pool()
        facts = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        pools = self.pools - self.options.first_pool + 1
        print(f"faults: seed {self.options.seed}, {self.done} rounds on {pools} pools in "
              f"{time.monotonic() - begin:.0f} s, nothing lost: {facts}")
        for what, seconds in sorted(self.longest.items()):
            print(f"faults: longest {what}: {seconds} s")


def main(description=__doc__, rounds_class=Rounds):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0, help="no round begins after so long (default: no limit)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=1, help="so many runs beside each other, with the next seeds")
    parser.add_argument("--first-pool", type=int, default=1, help="go on with this pool of the seed, as a message names it")
    parser.add_argument("--program", choices=list(PROGRAMS), help="default: one of them for each pool")
    parser.add_argument("--only", help="only faults with these words in their names")
    parser.add_argument("--binaries", type=Path, default=BUILD / "bin")
    parser.add_argument("--folder", type=Path, default=BUILD / f"cluster-faults-{os.getpid()}", help="made, and removed where all held")
    parser.add_argument("--verbose", action="store_true", help="name each round")
    options = parser.parse_args()
    missing = missing_packages()
    if missing or not list(options.binaries.glob("stillpoint-rados-agent")):
        print(f"skipped: {', '.join(missing) or 'the agent of pools in Ceph is'} not there; scripts/setup.sh cluster installs what it needs")
        sys.exit(SKIPPED)
    options.folder = options.folder.resolve()
    if options.lanes > 1:
        lanes.run(options)
    enter_own_network()
    options.folder.mkdir(parents=True)
    network = Network()
    rounds = None
    if not network.is_real:
        print("faults: no rounds that lose, pause or cut off a machine: this user may not make namespaces")
    try:
        with Cluster(options.folder / "cluster", address=network.address) as cluster:
            rounds = rounds_class(options, cluster, network)
            rounds.run()
    finally:
        if rounds:
            rounds.close()
    shutil.rmtree(options.folder)


if __name__ == "__main__":
    main()
