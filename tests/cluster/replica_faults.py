#!/usr/bin/env python3
"""Rounds of faults with a replica, by a seed: a ledger program owns a pool on its machine's disk, with a replica in a real Ceph cluster.

The program is killed; its machine is lost, and another goes on from the replica, alone or with a pool of its own; the network is cut while
the replica follows; a start is killed while it makes both sides equal. The lost machine comes back. After each round must hold:

  - with replicate=sync every start finds all that was ever acknowledged, on whichever machine, from whichever side;
  - with replicate=async a start on the machine itself does, and one from the replica alone finds all that the replica was seen to have;
  - acknowledgements stop while the replica must have them and cannot be reached, and go on afterwards;
  - a machine that comes back is brought up to date; with async it may be refused as diverged, and then goes on as the message says;
  - there is never half an epoch, and `stillpoint check` finds the replica sound.

Exit code 0: all held. 1: something did not; the line names the seed and the round. 77: Ceph is not installed.
"""

import contextlib
import json
import time

from faults import Rounds, main
from owner import LEASE_MS, PROGRAMS, WAIT_S, Broken, Diverged, Owner

LAGS_MS = (300, 60000)
PAUSE_MS = 40  # with the larger: this cluster follows 130 operations a second, a disk takes seven times as many, the queue would fill up
MODES = (("async", max(LAGS_MS)), ("sync", 0), ("async", min(LAGS_MS)))  # in turn, for each pool another one


class ReplicaRounds(Rounds):
    rounds_of_a_pool = 6

    def faults(self):
        all_of = {"kill the program": (3, self.kill_program), "kill starts": (4, self.kill_starts)}
        if self.network.is_real:
            all_of |= {"lose the machine": (4, self.lose_machine),
                       "lose the machine, kill starts when it is back": (3, self.lose_and_kill_starts),
                       "cut the network for a while": (4, self.cut), "cut the network, kill the program": (3, self.cut_and_kill)}
        return {name: fault for name, fault in all_of.items() if not self.options.only or self.options.only in name}

    # Owners.

    def programs(self):
        return [name for name, program in PROGRAMS.items() if not program.opens_pool]

    def first_owner(self, machine):
        self.mode, self.lag_ms = MODES[(self.pools - 1) % len(MODES)]
        self.counts[f"(pools with {self.mode} and a lag of {self.lag_ms} ms)"] += 1
        return self.both(machine)

    def local(self, machine):
        return self.history.folder / f"{machine.name}.pool"

    def both(self, machine):
        more = ["--replica", self.history.pool, "--replicate", self.mode]
        if self.mode == "async":
            more += ["--replicate-lag-ms", self.lag_ms]
        pause_ms = PAUSE_MS if self.lag_ms == max(LAGS_MS) else 0
        return Owner(self.history, machine, pool=self.local(machine), more=more, pause_ms=pause_ms)

    def go_on_with(self, owner):
        self.owner = owner
        begin = time.monotonic()
        owner.begin()
        self.history.judge()
        return time.monotonic() - begin

    def epoch_of_replica(self):
        done = self.tool("info", "--json", self.history.pool)
        return json.loads(done.stdout)["durable_epoch"] if done.returncode == 0 else 0

    def await_replica(self):
        """Until the replica has what the owner was told last: what it was told. It may have a long way to go, and must not stand still."""
        begin, last = time.monotonic(), self.owner.last()
        epoch, moved = 0, begin
        while epoch < last[0]:
            before, epoch = epoch, self.epoch_of_replica()
            if epoch > before:
                moved = time.monotonic()
            if time.monotonic() - moved > WAIT_S:
                raise Broken(f"the replica stays at epoch {epoch} for {WAIT_S} s, and {self.owner.name()} was told of {last[0]}")
            time.sleep(0.02)
        self.note("until the replica had an acknowledged epoch", time.monotonic() - begin)
        return last

    def lose(self):
        """The machine of the owner ends. What it was told survives, but for the last moments of an asynchronous replica."""
        owner = self.owner
        has_replica = bool(owner.more)
        floor = self.await_replica() if has_replica and self.mode == "async" else None
        self.work_for_a_while()
        owner.kill_machine()
        owner.floor = floor

    def come_back(self, machine):
        """Starts on a machine whose pool may be the older one."""
        try:
            self.note("start of a machine that comes back", self.go_on_with(self.both(machine)))
        except Diverged as refused:
            if self.mode == "sync":
                raise Broken(f"the replica had everything that was acknowledged, and {refused}") from None
            self.counts["(a machine that came back was refused as diverged)"] += 1
            self.local(machine).rename(self.history.folder / f"{machine.name}.old")
            self.go_on_with(self.both(machine))

    def end_pool(self):
        if self.history is not None:
            self.lose()
        super().end_pool()

    # Faults.

    def kill_program(self):
        self.owner.kill_program()
        self.note("start on the same machine after the program was killed", self.go_on_with(self.both(self.owner.machine)))

    def go_on_elsewhere(self):
        """From the replica alone, or with a pool made of it there."""
        machine = self.other()
        if self.random.random() < 0.5:
            successor = Owner(self.history, machine)
        else:
            for name in (self.local(machine), self.history.folder / f"{machine.name}.pool.replica"):
                name.unlink(missing_ok=True)
            successor = self.both(machine)
        self.note("start elsewhere from the replica", self.go_on_with(successor))
        self.work_for_a_while()

    def lose_machine(self):
        first = self.owner.machine
        self.lose()
        self.go_on_elsewhere()
        self.lose()
        self.come_back(first)

    def kill_starts_of(self, machine):
        """Each in the middle, most of them while they make both sides equal."""
        for _ in range(self.random.randint(1, 4)):
            owner = self.owner = self.both(machine)
            owner.start()
            time.sleep(self.random.uniform(0, 0.8))
            owner.kill_machine()
            owner.has_begun()
            owner.judge()

    def kill_starts(self):
        machine = self.owner.machine
        self.owner.kill_machine()
        self.kill_starts_of(machine)
        self.go_on_with(self.both(machine))

    def lose_and_kill_starts(self):
        first = self.owner.machine
        self.lose()
        self.go_on_elsewhere()
        self.lose()
        self.kill_starts_of(first)
        self.come_back(first)

    @contextlib.contextmanager
    def cut_off(self):
        """Shorter and longer than the lease. Acknowledgements go on as long as the replica may lag."""
        machine = self.owner.machine
        machine.cut()
        try:
            if self.mode == "async" and self.lag_ms == max(LAGS_MS):
                self.owner.await_acknowledgements(self.random.randint(1, 5))
            else:
                time.sleep(self.lag_ms / 1000 if self.mode == "async" else 0)
                self.must_stand_still(self.random.uniform(0.1, 1), "the replica cannot be reached")
            time.sleep(self.random.uniform(0, 2 * LEASE_MS / 1000))
            yield
        finally:
            machine.join()

    def cut(self):
        with self.cut_off():
            pass
        self.note("acknowledgement after a cut", self.owner.await_acknowledgements(2))
        self.await_replica()

    def cut_and_kill(self):
        """The next start sends what only the pool here has."""
        machine = self.owner.machine
        with self.cut_off():
            self.owner.kill_machine()
        if self.random.random() < 0.5:
            self.kill_starts_of(machine)
        self.note("start after a cut, which sends what only the pool here has", self.go_on_with(self.both(machine)))


if __name__ == "__main__":
    main(__doc__, ReplicaRounds)
