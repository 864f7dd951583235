"""A program at work on a cluster that becomes full, or of which too few OSDs run. Invariants: the program goes on, nothing is acknowledged,
another start is kept out; when the cluster takes writes again acknowledgements go on by themselves, and all of them hold. Where the option
cluster-wait-max-ms says so it ends instead, with a code of its own, and what was acknowledged is there at the next start. A program that
ends meanwhile says why its end waits, and ends when there is room; no agent is left."""

import contextlib
import re
import time
import unittest
from pathlib import Path

from with_cluster import BUILD, ClusterTest, main

from cluster import POOL, wait_until
from machines import Machine, Network, is_alive
from owner import IN_USE, LEASE_MS, WAIT_S, Bank, History, Owner

AGENT = BUILD / "bin/stillpoint-rados-agent"
FULL, NO_ANSWER = 73, 74


class Growing(Bank):
    """growing.cpp."""

    name = "growing"
    pool_size = "256M"  # what needs the pool to grow waits for the cluster
    start = re.compile(r"growing at the start: (\d+) blocks")
    sound = re.compile(r"growing at the start: (?!.*BROKEN).*\n")

    @staticmethod
    def arguments(acknowledged, _pause_ms=0):
        return [acknowledged, acknowledged.with_suffix(".steps")]


@unittest.skipUnless(AGENT.exists(), "the agent of pools in Ceph was not built: librados-dev was not found")
class Full(ClusterTest):
    def begin(self, name, *more, local=False):
        """An owner at work on a new pool; `local`: on its own disk, with a replica in the cluster."""
        environment = {key: value for key, value in self.cluster.environment().items() if key != "CEPH_ARGS"}
        history = History(Growing, f"rados://{POOL}/{name}?id=stillpoint", self.folder / name, BUILD / "bin", environment)
        self.addCleanup(history.end)
        if local:
            more = ["--replica", history.pool]
        owner = self.start(history, *more, pool=self.folder / f"{name}.pool" if local else None)
        owner.await_acknowledgements(5)
        return owner

    def start(self, history, *more, pool=None):
        owner = Owner(history, Machine(Network(), "alpha"), more=more, pool=pool)
        owner.begin()
        history.judge()
        return owner

    def steps(self, owner):
        data = owner.acknowledgements.with_suffix(".steps").read_bytes()
        return int.from_bytes(data, "little")

    def let_main_return(self, owner):
        owner.acknowledgements.with_suffix(".steps.end").touch()

    def agents(self):
        """The processes that speak to this cluster for a program."""
        found = []
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                is_one = folder.name.isdigit() and AGENT.name in (folder / "cmdline").read_text()
                if is_one and str(self.cluster.configuration) in (folder / "environ").read_text() and is_alive(folder):
                    found.append(int(folder.name))
        return found

    def fill(self):
        self.addCleanup(self.cluster.empty)
        self.cluster.fill()

    def lose_two_osds(self):
        for osd in (1, 2):
            self.addCleanup(self.cluster.start_osd, osd)
            self.cluster.kill(f"osd.{osd}")

    def stands_still_and_goes_on(self, owner, text):
        wait_until(lambda: text in owner.output(), WAIT_S, "the program says why nothing is acknowledged")
        time.sleep(0.3)  # for what was under way
        last, steps = owner.last(), self.steps(owner)
        time.sleep(3 * LEASE_MS / 1000)
        self.assertEqual(owner.last(), last, owner.output())
        self.assertGreater(self.steps(owner), steps + 50)
        self.assertIsNone(owner.process.poll())

    def goes_on_to_acknowledge(self, owner):
        owner.await_acknowledgements(3)
        self.assertIn("takes writes again: acknowledgements go on", owner.output())
        owner.kill_program()
        self.start(owner.history, *owner.more, pool=owner.pool)

    def test_a_full_cluster_stops_acknowledgements_until_it_has_room(self):
        owner = self.begin("full")
        self.fill()
        self.stands_still_and_goes_on(owner, "the Ceph cluster is full: the program goes on")
        other = Owner(owner.history, owner.machine)
        other.start()
        self.assertEqual(other.process.wait(WAIT_S), IN_USE, other.output())
        self.cluster.empty()
        self.goes_on_to_acknowledge(owner)

    def test_a_full_cluster_of_a_replica_stops_acknowledgements_until_it_has_room(self):
        owner = self.begin("replica", local=True)
        self.fill()
        self.stands_still_and_goes_on(owner, "the Ceph cluster is full: the program goes on")
        self.cluster.empty()
        self.goes_on_to_acknowledge(owner)

    def test_too_few_osds_stop_acknowledgements_until_they_are_back(self):
        owner = self.begin("degraded")
        self.lose_two_osds()
        self.stands_still_and_goes_on(owner, "the Ceph cluster takes nothing")
        for osd in (1, 2):
            self.cluster.start_osd(osd)
        self.goes_on_to_acknowledge(owner)

    def ends(self, owner, code, text):
        self.assertEqual(owner.process.wait(WAIT_S), code, owner.output())
        self.assertIn(text, owner.output())

    def test_an_option_ends_the_program_on_a_full_cluster(self):
        owner = self.begin("ends", "--cluster-wait-max", "1500ms")
        self.fill()
        self.ends(owner, FULL, "the Ceph cluster has had no room for")
        self.cluster.empty()
        self.start(owner.history)

    def test_an_option_ends_the_program_where_too_few_osds_run(self):
        owner = self.begin("too_few", "--cluster-wait-max", "1500ms")
        self.lose_two_osds()
        self.ends(owner, NO_ANSWER, "the Ceph cluster has taken nothing for")
        for osd in (1, 2):
            self.cluster.start_osd(osd)
        self.cluster.wait_clean()
        self.start(owner.history)

    def test_programs_that_end_on_a_full_cluster(self):
        waiting = [self.begin("waiting"), self.begin("waiting_replica", local=True)]
        bounded = self.begin("bounded", "--cluster-wait-max", "4s")
        killed = self.begin("killed")
        self.fill()
        for owner in (*waiting, bounded, killed):
            wait_until(lambda: "the Ceph cluster is full" in owner.output(), WAIT_S, "the program says why nothing is acknowledged")
        for owner in (*waiting, bounded):
            self.let_main_return(owner)
        killed.process.kill()
        for owner in waiting:
            text = "the program ends, and waits for its last writes, because the Ceph cluster is full: make room"
            wait_until(lambda: text in owner.output(), WAIT_S, "the program says why its end waits")
        self.ends(bounded, FULL, "main returns")
        self.assertIn("the Ceph cluster has had no room for", bounded.output())
        wait_until(lambda: len(self.agents()) == len(waiting), WAIT_S, "the agents of those that have ended are gone")
        self.assertEqual([owner.process.poll() for owner in waiting], [None, None])
        self.cluster.empty()
        for owner in waiting:
            self.assertEqual(owner.process.wait(WAIT_S), 0, owner.output())
        wait_until(lambda: not self.agents(), WAIT_S, "no agent is left")
        for owner in (*waiting, bounded, killed):
            self.start(owner.history, *owner.more, pool=owner.pool)


if __name__ == "__main__":
    main()
