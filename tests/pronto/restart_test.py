"""Durable objects over restarts: what is committed is there after kill -9 and after a clean end, also in a program that was built again."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parent.parent.parent / "build"))
TIMEOUT_S = 60
HAS_ENGINE = "pronto" in subprocess.run([BUILD / "bin/stillpoint", "run", "--help"], capture_output=True, text=True, check=False).stdout


@unittest.skipUnless(HAS_ENGINE, "the engine pronto is not there")
class Restarts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.pool = self.folder / "test.pool"

    def run_program(self, *commands, form=1, expect=0, options=""):
        done = subprocess.run([BUILD / f"bin/pronto_program_{form}", self.pool, *commands], capture_output=True, text=True, check=False,
                              timeout=TIMEOUT_S, env={**os.environ, "PRONTO_OPTIONS": options})
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout

    def killed(self, *commands, form=1, options=""):
        return self.run_program(*commands, "die", form=form, expect=-9, options=options)

    def test_what_is_committed_survives_a_kill_and_a_clean_end(self):
        self.killed("add:1", "add:2")
        self.assertEqual(self.killed("show", "add:3"), "1 2 \n")
        self.assertEqual(self.run_program("show", "add:4"), "1 2 3 \n")
        self.assertEqual(self.killed("show", "add:5", "snapshot", "add:6"), "1 2 3 4 \n")
        self.assertEqual(self.run_program("show"), "1 2 3 4 5 6 \n")

    def test_a_lock_that_a_reader_held_in_a_snapshot_is_free(self):
        for word in ("one", "two"):
            self.run_program(f"put:{word}", f"die_as_reader:{word}", expect=-9)
        self.assertEqual(self.run_program("put:one", "put:two", "count"), "2\n")

    def test_numbers_are_never_reused(self):
        committed = []
        for value in range(4):
            output = self.killed(f"add:{value}", "numbers") if value % 2 else self.run_program(f"add:{value}", "numbers")
            committed += [int(output.split()[0])]
        self.assertEqual(committed, sorted(set(committed)))

    def test_methods_in_another_order_and_new_ones_are_the_same_methods(self):
        self.killed("add:1", "add:2")
        self.assertEqual(self.killed("show", "add:3", form=2), "1 2 \n")
        self.assertEqual(self.run_program("show"), "1 2 3 \n")

    def test_a_changed_signature_is_refused_and_named_and_accepted_where_no_operation_has_it(self):
        self.killed("add:1")
        output = self.run_program("show", form=3)
        self.assertRegex(output, r"^other_type: .*method add of.*\(i64\) in this program.*\(i32\)")
        self.assertIn("other_type: ", self.run_program("accept", form=3))
        self.assertEqual(self.run_program("show"), "1 \n")  # and a clean end: the log is empty
        self.assertIn("other_type: ", self.run_program("show", form=3))
        self.assertEqual(self.run_program("accept", "show", "add:2", form=3), "accepted\n1 \n")
        self.assertEqual(self.run_program("show", form=3), "1 2 \n")
        self.assertIn("other_type: ", self.run_program("show"))

    def test_a_method_that_is_gone_is_refused_and_named(self):
        self.killed("add:1")
        self.assertRegex(self.run_program("show", form=5), "^other_type: .*add")
        self.assertEqual(self.run_program("show"), "1 \n")

    def test_another_type_is_refused_and_named(self):
        self.killed("add:1")
        self.assertRegex(self.run_program("show", form=4), "^other_type: .*numbers")
        self.assertEqual(self.run_program("show"), "1 \n")

    def test_an_operation_that_throws_and_changes_nothing_is_as_if_it_had_not_been(self):
        self.assertEqual(self.killed("add:1", "add_or_throw:2", "add:3", "show"), "threw: add_or_throw\n1 3 \n")
        self.assertEqual(self.run_program("show"), "1 3 \n")

    def test_an_operation_that_throws_halfway_refuses_the_object_until_it_is_recovered_without(self):
        output = self.killed("add:1", "add_half:2", "add:3")
        self.assertRegex(output, "^threw: add_half\nrefused: ")
        self.assertEqual(self.run_program("show", "add:4", "show"), "1 \n1 4 \n")

    def test_a_deleted_object_is_gone_and_its_name_is_free(self):
        self.assertEqual(self.killed("add:1", "delete:numbers", "delete:numbers", "find:numbers"), "deleted\nnone\nnone\n")
        self.assertEqual(self.killed("find:numbers", "add:2", "show"), "none\n2 \n")
        self.assertEqual(self.run_program("show"), "2 \n")

    def test_pmr_containers_have_the_functions_of_each_process(self):
        self.killed("page:one", "page:two")
        self.assertEqual(self.run_program("page:three", "pages"), "one two three \n")
        self.assertEqual(self.killed("page:four", "pages"), "one two three four \n")

    def test_ready_made_containers(self):
        self.killed("insert:a", "snapshot", "insert:b", "fill:200")
        self.assertEqual(self.killed("contains:a", "contains:b", "count", "insert:c"), "1 1 b b\n1 1 b b\n800\n")
        self.assertEqual(self.run_program("contains:c"), "1 1 c c\n")

    def test_ready_made_containers_are_deterministic_and_commit_in_the_order_of_their_locks(self):
        checked = "verify_replay=1 check_commit_order=1"
        self.killed("insert:a", "insert:b", "fill:100", "page:one", options=checked)
        self.assertEqual(self.run_program("contains:b", "count", "pages", "insert:c", "fill:150", options=checked), "1 1 b b\n400\none \n")
        self.assertEqual(self.run_program("contains:c", "count"), "1 1 c c\n600\n")

    def test_a_sharded_map_keeps_its_keys_and_its_number_of_shards(self):
        checked = "verify_replay=1 check_commit_order=1"
        self.killed("fill_sharded:map=3")
        self.assertEqual(self.killed("show_sharded:map", "fill_sharded:map", options=checked), "100 in 3 shards\n")
        self.assertRegex(self.run_program("show_sharded:map=4", "show_sharded:map=3"),
                         'error: the sharded map "map" was made with 3 shards, not 4: open it without a number.*\n100 in 3 shards\n')
        self.killed("clear_sharded:map")
        self.assertEqual(self.run_program("show_sharded:map", "fill_sharded:map#1=2"),
                         '0 in 3 shards\nerror: the durable object "map#1" is shard 1 of 3, not shard 0 of 3 of the sharded map "map#1": '
                         "give the map another name\n")

    def test_a_sharded_map_whose_creation_or_deletion_was_killed_goes_on(self):
        self.killed("half_make_sharded:map")
        self.assertEqual(self.killed("show_sharded:map", "fill_sharded:map", "show_sharded:map"), "0 in 3 shards\n100 in 3 shards\n")
        self.killed("half_delete_sharded:map")
        self.assertEqual(self.killed("show_sharded:map=5", "fill_sharded:map"), "0 in 5 shards\n")
        self.assertEqual(self.run_program("show_sharded:map", "delete_sharded:map", "delete_sharded:map", "show_sharded:map=2"),
                         "100 in 5 shards\ndeleted\nnone\n0 in 2 shards\n")

    def test_a_clear_that_is_killed_between_two_shards_leaves_whole_shards(self):
        cleared = int(self.killed("fill_sharded:map=3", "clear_shard:map").split()[1])
        self.assertGreater(cleared, 0)
        self.assertEqual(self.run_program("show_sharded:map"), f"{100 - cleared} in 3 shards\n")

    def test_a_lost_shard_is_an_error(self):
        self.killed("fill_sharded:map=3", "delete:map#1")
        self.assertRegex(self.run_program("show_sharded:map"), 'error: the sharded map "map" has lost the shard "map#1"')

    def test_a_method_that_is_not_deterministic_is_found(self):
        output = self.run_program("add:1", "add_address:2", options="verify_replay=1")
        self.assertRegex(output, "^(error|refused|not_durable): .*add_address")

    def test_logging_by_a_sibling_and_by_the_thread_itself_are_the_same(self):
        for logging in ("async", "sync"):
            with self.subTest(logging):
                self.killed(f"insert:{logging}", "fill:20", options=f"pronto_logging={logging}")
                self.assertEqual(self.run_program(f"contains:{logging}", "count", "delete:texts"),
                                 f"1 1 {logging} {logging}\n80\ndeleted\n")


if __name__ == "__main__":
    unittest.main()
