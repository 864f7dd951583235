"""A few rounds of faults with a replica; and the proof that they notice what they are for: acknowledgements that a lost machine took along."""

import unittest

from with_cluster import BUILD, ClusterTest, main

from machines import Network
from owner import Broken
from replica_faults import LAGS_MS, ReplicaRounds

AGENT = BUILD / "bin/stillpoint-rados-agent"


@unittest.skipUnless(AGENT.exists(), "the agent of pools in Ceph was not built: librados-dev was not found")
class ReplicaFaults(ClusterTest):
    def test_a_lost_acknowledgement_is_noticed(self):
        rounds = ReplicaRounds(self.rounds_options("canary"), self.cluster, Network())
        self.addCleanup(rounds.close)
        rounds.new_pool()
        rounds.mode, rounds.lag_ms = "async", max(LAGS_MS)
        rounds.owner.kill_machine()
        rounds.go_on_with(rounds.both(rounds.owner.machine))
        owner = rounds.owner
        rounds.await_replica()
        # Acknowledged while the replica could not be reached, and lost with the machine.
        for osd in range(3):
            self.cluster.kill(f"osd.{osd}")
        owner.await_acknowledgements(5)
        owner.kill_machine()
        for osd in range(3):
            self.cluster.start_osd(osd)
        self.cluster.wait_clean()
        with self.assertRaisesRegex(Broken, r"is durable; owner 2 on \w+ found"):
            rounds.go_on_elsewhere()
        rounds.owner.kill_machine()

    def test_rounds_by_a_seed(self):
        self.rounds_by_a_seed("replica_faults.py", 10)


if __name__ == "__main__":
    main()
