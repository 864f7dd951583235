"""`stillpoint compact`: a new pool with the live objects of another one, or a clear refusal and no new file."""

import json
import os
import subprocess
import unittest

from command_line import BUILD, CommandLineTest

OBJECTS = BUILD / "bin/cli_objects"


class Compact(CommandLineTest):
    """On memory and on a file with a journal, unless a test says otherwise."""

    def setUp(self):
        super().setUp()
        self.new = self.folder / "new.pool"

    def objects(self, *arguments, medium="memory"):
        done = self.stillpoint(self.pool, *arguments, tool=OBJECTS, STILLPOINT_MEDIUM=medium)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def compact(self, *options, **environment):
        return self.assert_untouched_by(self.pool, lambda: self.stillpoint("compact", *options, self.pool, self.new, **environment))

    def shape(self, path):
        """The types, fields and data of the objects from the root on, without their numbers."""
        dump = json.loads(self.stillpoint("dump", "--json", "--limit", "0", path).stdout)
        place = {shown["object"]: order for order, shown in enumerate(dump["objects"])}
        return [(shown["type"], shown["references"], shown["depth"], shown["data"],
                 [(field["field"], field["target"], place.get(field.get("object")), field.get("inside")) for field in shown["pointers"]])
                for shown in dump["objects"]]

    def names(self):
        return sorted(entry.name for entry in self.folder.iterdir())

    def test_makes_a_sound_pool_with_the_same_objects(self):
        for medium in ("memory", "file"):
            with self.subTest(medium=medium):
                self.objects(medium=medium)
                done = self.compact()
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"(?m)^  objects +7  -> +7$")
                self.assertIn("0 objects were left out", done.stdout)
                self.assertEqual(self.names(), ["a.pool", "new.pool"])
                checked = self.stillpoint("check", self.new)
                self.assertEqual(checked.returncode, 0, checked.stderr)
                self.assertEqual(self.shape(self.new), self.shape(self.pool))
                before, after = (json.loads(self.stillpoint("info", "--json", path).stdout) for path in (self.pool, self.new))
                self.assertEqual((after["engine"], after["durability"]), ("breeze", before["durability"]))
                self.assertEqual((after["clean"], after["durable_epoch"]), (True, 1))
                self.assertNotEqual(after["uuid"], before["uuid"])
                self.pool.unlink()
                self.new.rename(self.pool)
                self.objects("lose", medium=medium)  # A program goes on with it.
                self.pool.unlink()

    def test_leaves_out_what_cannot_be_reached_and_says_so_in_json(self):
        self.objects()
        self.objects("lose")
        done = self.compact("--json", "--quiet", "--size", "8M")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = json.loads(done.stdout)
        self.assertEqual((found["objects_before"], found["objects_after"], found["left_out"]), (7, 4, 3))
        self.assertEqual((found["object_bytes_before"], found["object_bytes_after"]), (24 + 6 * 56, 24 + 3 * 56))
        self.assertEqual((found["image_bytes_before"], found["image_bytes_after"]), (4 << 20, 8 << 20))
        self.assertEqual((found["file_bytes_before"], found["file_bytes_after"]), (self.pool.stat().st_size, self.new.stat().st_size))
        self.assertEqual((found["pool"], found["new"], found["engine"]), (str(self.pool), str(self.new), "breeze"))
        self.assertNotIn("cannot be reached", self.stillpoint("check", self.new).stdout)

    def test_refuses_bad_input(self):
        self.objects()
        for options in (("--size", "0"), ("--size", "some"), ("--size", "3M"), ("--size", "99999999999999999999"), ("--size", "64T")):
            with self.subTest(options=options):
                self.assert_refused(self.compact(*options), 64)
        self.assert_refused(self.compact("--size", "3M"), 64, "7 objects has at least 4 MiB")
        self.assert_refused(self.stillpoint("compact", self.pool), 64, "NEW")
        self.assert_refused(self.stillpoint("compact", self.folder / "gone.pool", self.new), 66, "gone.pool")
        self.assert_refused(self.stillpoint("compact", self.pool, self.folder / "gone/new.pool"), 66)
        self.assertEqual(self.names(), ["a.pool"])

    def test_refuses_a_name_that_is_taken(self):
        self.objects()
        self.new.write_text("something else")
        done = self.assert_untouched_by(self.new, self.compact)
        self.assert_refused(done, 73, r"new\.pool exists already: choose another name")
        self.new.unlink()
        self.new.symlink_to(self.folder / "nowhere")
        self.assert_refused(self.compact(), 73, "exists already")
        self.assert_refused(self.stillpoint("compact", self.pool, self.pool), 73, "exists already")
        self.assertEqual(self.names(), ["a.pool", "new.pool"])

    def test_refuses_a_damaged_pool_and_names_the_object(self):
        self.objects()
        offset = self.objects("damage").strip()
        self.assert_refused(self.compact(), 65, f"byte {offset} of the image is damaged.*stillpoint check")
        self.assertEqual(self.names(), ["a.pool"])

    def test_refuses_pools_of_other_engines_and_says_which_it_serves(self):
        self.new_pool()
        self.assert_refused(self.compact(), 65, "belongs to the engine pmthreads.*only pools of breeze can be compacted")
        self.assertEqual(self.names(), ["a.pool"])

    def test_refuses_a_pool_that_is_open(self):
        self.objects()
        environment = {**os.environ, "STILLPOINT_MEDIUM": "memory"}
        with subprocess.Popen([OBJECTS, self.pool, "wait"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as program:
            self.assertEqual(program.stdout.readline(), "open\n")
            self.assert_refused(self.stillpoint("compact", self.pool, self.new), 75, str(program.pid))
            program.stdin.close()
            self.assertEqual(program.wait(), 0)
        self.assertFalse(self.new.exists())

    def test_leaves_nothing_where_the_disk_fails(self):
        self.objects(medium="file")
        for fault, code in (("fallocate:ENOSPC@1:always", 73), ("write:EIO@3", 74), ("write:ENOSPC@4", 73), ("sync:EIO@1", 74)):
            with self.subTest(fault=fault):
                self.assert_refused(self.compact(STILLPOINT_FAULT=fault), code)
                self.assertEqual(self.names(), ["a.pool"])

    def test_leaves_the_new_pool_whole_or_not_at_all_where_it_is_killed(self):
        self.objects(medium="file")
        expected = self.shape(self.pool)
        killed = 0
        for point in range(1, 1000):
            done = self.compact(STILLPOINT_FAULT=f"persist:kill@{point}")
            if done.returncode == 0:
                break
            self.assertEqual(done.returncode, -9, done.stderr)
            killed += 1
            self.assertFalse(self.new.exists(), point)
            for left in self.folder.glob("new.pool.unfinished-*"):
                left.unlink()
        self.assertGreater(killed, 8)
        self.assertEqual(self.names(), ["a.pool", "new.pool"])
        self.assertEqual(self.stillpoint("check", self.new).returncode, 0)
        self.assertEqual(self.shape(self.new), expected)


if __name__ == "__main__":
    unittest.main()
