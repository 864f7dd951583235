"""A few rounds of faults on a real cluster; and the proof that the rounds notice what they are for: a pool that lost an epoch is found."""

import argparse
import subprocess
import sys
import unittest
from pathlib import Path

from with_cluster import BUILD, ClusterTest, main

from cluster import POOL
from faults import Rounds
from machines import Network
from owner import Broken

AGENT = BUILD / "bin/stillpoint-rados-agent"


@unittest.skipUnless(AGENT.exists(), "the agent of pools in Ceph was not built: librados-dev was not found")
class Faults(ClusterTest):
    def rounds(self, name):
        folder = self.folder / name
        folder.mkdir()
        options = argparse.Namespace(rounds=1, seconds=0, seed=1, program="bank", only=None, binaries=BUILD / "bin", folder=folder,
                                     verbose=False)
        return Rounds(options, self.cluster, Network())

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
        with self.assertRaisesRegex(Broken, "is durable; owner 2 on alpha found"):
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

    def test_rounds_by_a_seed(self):
        program = Path(__file__).with_name("faults.py")
        words = [sys.executable, "-B", program, "--rounds", 12, "--seconds", 25, "--seed", 20, "--binaries", BUILD / "bin", "--folder",
                 self.folder / "rounds"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("nothing lost", done.stdout)
        print(done.stdout)


if __name__ == "__main__":
    main()
