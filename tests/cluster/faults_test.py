"""A few rounds of faults on a real cluster; and the proof that the rounds notice what they are for: a pool that lost an epoch is found."""

import struct
import subprocess
import unittest

from with_cluster import BUILD, ClusterTest, main

from cluster import POOL
from faults import Rounds
from machines import Network
from owner import Broken, SphtLedger

AGENT = BUILD / "bin/stillpoint-rados-agent"


@unittest.skipUnless(AGENT.exists(), "the agent of pools in Ceph was not built: librados-dev was not found")
class Faults(ClusterTest):
    def rounds(self, name):
        rounds = Rounds(self.rounds_options(name), self.cluster, Network())
        self.addCleanup(rounds.close)
        return rounds

    def rados(self, *words):
        done = subprocess.run(["rados", "-p", POOL, *words], env=self.cluster.environment(), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_pool_that_went_back_to_an_older_epoch_is_noticed(self):
        rounds = self.rounds("canary")
        rounds.new_pool()
        rounds.work_for_a_while()
        rounds.owner.kill_program()
        rounds.check_at_rest()
        self.rados("mksnap", "older")
        rounds.succeed(rounds.owner.machine)
        rounds.owner.await_acknowledgements(3)
        rounds.owner.kill_program()
        rounds.check_at_rest()
        for name in self.rados("ls").split():
            self.rados("rollback", name, "older")
        with self.assertRaisesRegex(Broken, "was acknowledged, the pool is at epoch"):
            rounds.check_at_rest()
        with self.assertRaisesRegex(Broken, r"is durable; owner 2 on \w+ found"):
            rounds.succeed(rounds.owner.machine)
        rounds.owner.kill_program()

    def test_an_owner_that_goes_on_after_it_was_shut_out_is_noticed(self):
        rounds = self.rounds("zombie")
        rounds.new_pool()
        with self.assertRaisesRegex(Broken, "goes on for 1 s after it was shut out"):
            rounds.owner.must_end_shut_out(1)
        rounds.owner.kill_program()

    def test_epochs_while_nothing_may_be_acknowledged_are_noticed(self):
        rounds = self.rounds("acknowledged")
        rounds.new_pool()
        with self.assertRaisesRegex(Broken, "was told of epochs"):
            rounds.must_stand_still(2, "nothing is wrong")
        rounds.owner.kill_program()

    def test_numbers_that_a_successor_lacks_or_has_too_many_of_are_noticed(self):
        def file(name, found, begun, told):
            path = self.folder / name
            numbers = [7, 1, *[number for _ in range(SphtLedger.threads) for row in (found, begun, told) for number in row]]
            path.write_bytes(struct.pack(f"<{len(numbers)}Q", *numbers))
            return path

        earlier = file("earlier", (0, 0, 0, 0), (9, 9, 9, 9), (8, 8, 8, 8))
        self.assertEqual(SphtLedger.last(earlier), (7, 16))
        self.assertEqual(SphtLedger.told(earlier), 64)
        for found, wrong in ((8, ""), (9, ""), (7, "8 acknowledged, and then 7"), (10, "8 acknowledged, and then 10")):
            later = file("later", (8, found, 8, 8), (0, 0, 0, 0), (8, found, 8, 8))
            self.assertIn(wrong, SphtLedger.contradiction(earlier, later))
            self.assertEqual(bool(wrong), bool(SphtLedger.contradiction(earlier, later)))

    def test_rounds_by_a_seed(self):
        self.rounds_by_a_seed("faults.py", 12)


if __name__ == "__main__":
    main()
