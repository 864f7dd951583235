"""Pools of breeze, whose programs open them: the tools that look at them, and those that refuse them."""

import json
import os
import subprocess
import time
import unittest

from command_line import BUILD, CommandLineTest

OBJECTS = BUILD / "bin/cli_objects"


class TypedObjects(CommandLineTest):
    """On memory and on a file with a journal, unless a test says otherwise."""

    def make(self, medium="memory"):
        done = self.stillpoint(self.pool, tool=OBJECTS, STILLPOINT_MEDIUM=medium)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.pool

    def damage(self):
        """The offset in the image of the object whose header is damaged now."""
        done = self.stillpoint(self.pool, "damage", tool=OBJECTS, STILLPOINT_MEDIUM="memory")
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout)

    def test_info_and_check_read_them(self):
        for medium in ("memory", "file"):
            with self.subTest(medium=medium):
                self.make(medium)
                done = self.assert_untouched_by(self.pool, lambda: self.stillpoint("info", self.pool))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("engine breeze", done.stdout)
                self.assertIn("closed normally", done.stdout)
                facts = json.loads(self.stillpoint("info", "--json", "--handles", self.pool).stdout)
                self.assertEqual((facts["engine"], facts["clean"], facts["handles"]), ("breeze", True, []))
                done = self.assert_untouched_by(self.pool, lambda: self.stillpoint("check", self.pool))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("sound", done.stdout)
                found = json.loads(self.stillpoint("check", "--json", self.pool).stdout)
                self.assertEqual(found["result"], "sound")
                self.pool.unlink()

    def test_a_damaged_header_is_named(self):
        self.make()
        offset = self.damage()
        done = self.assert_untouched_by(self.pool, lambda: self.stillpoint("check", self.pool))
        self.assert_refused(done, 65, f"byte {offset} of the image is damaged")
        done = self.stillpoint("check", "--json", self.pool)
        found = json.loads(done.stdout)
        self.assertEqual((done.returncode, found["result"]), (65, "damaged"))
        self.assertIn(f"byte {offset} of the image", found["findings"][0]["finding"])

    def dumped(self, *options):
        done = self.assert_untouched_by(self.pool, lambda: self.stillpoint("dump", "--json", *options, self.pool))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_dump_shows_objects_and_fields(self):
        for medium in ("memory", "file"):
            with self.subTest(medium=medium):
                self.make(medium)
                dump = self.dumped()
                objects = {shown["object"]: shown for shown in dump["objects"]}
                root = dump["objects"][0]
                self.assertEqual((dump["has_more"], dump["damaged"], len(objects)), (False, [], 7))
                self.assertEqual((root["type"], root["depth"], root["references"]), ("Root", 0, 1))
                self.assertEqual([field["field"] for field in root["pointers"]], ["lists[0]", "lists[1]", "ring"])
                # The lists share a node, which is shown once.
                firsts = [objects[field["object"]] for field in root["pointers"][:2]]
                shared = {first["pointers"][0]["object"] for first in firsts}
                self.assertEqual(len(shared), 1)
                self.assertEqual(objects[shared.pop()]["references"], 2)
                # A ring leads back to its beginning.
                node, seen = root["pointers"][2]["object"], []
                while node not in seen:
                    seen.append(node)
                    node = objects[node]["pointers"][0]["object"]
                self.assertEqual((len(seen), node), (3, seen[0]))
                weak = [field for shown in objects.values() for field in shown["pointers"] if field["weak"] and field["target"] == "object"]
                self.assertEqual(len(weak), 1)
                number = bytes.fromhex(firsts[0]["data"][0]["bytes"])
                self.assertEqual((number[:8], number[8:16]), ((2).to_bytes(8, "little"), b'a "node"'))
                text = self.stillpoint("dump", self.pool).stdout
                self.assertRegex(text, r"^object \d+  Root, 24 bytes, 1 reference, depth 0\n       0  lists\[0\] -> object \d+\n")
                self.assertIn('|........a "node"|', text)
                self.assertRegex(text, r"back ~> object \d+")
                self.pool.unlink()

    def test_dump_has_limits_and_begins_where_it_is_told_to(self):
        self.make()
        self.assertEqual([shown["depth"] for shown in self.dumped("--depth", "1")["objects"]], [0, 1, 1, 1])
        some = self.dumped("--limit", "2", "--bytes", "0")
        self.assertEqual((len(some["objects"]), some["has_more"], some["objects"][1]["data"]), (2, True, []))
        ring = self.dumped()["objects"][0]["pointers"][2]["object"]
        self.assertEqual(len(self.dumped("--root", ring)["objects"]), 4, "the ring, and what its weak pointer leads to")
        self.assert_refused(self.stillpoint("dump", "--root", ring + 8, self.pool), 64, f"byte {ring + 8}")
        self.assertEqual(self.stillpoint("dump", "--limit", "some", self.pool).returncode, 64)
        self.assertIn("raise --limit", self.stillpoint("dump", "--limit", "1", self.pool).stdout)

    def test_dump_shows_what_is_not_damaged(self):
        self.make()
        offset = self.damage()
        done = self.stillpoint("dump", self.pool)
        self.assertEqual(done.returncode, 65)
        self.assertIn(f"byte {offset} of the image is damaged", done.stderr)
        self.assertIn("Root, 24 bytes", done.stdout)
        self.assertIn("next -> unknown", done.stdout)

    def test_dump_takes_no_program_for_them(self):
        self.make()
        self.assert_refused(self.stillpoint("dump", "--program", OBJECTS, self.pool), 64, "have the types of their objects in them")
        self.assert_refused(self.stillpoint("dump", "--root", "name", self.pool), 64, "not a whole number")

    def test_stats_shows_the_program_that_has_one_open(self):
        self.make()
        environment = {**os.environ, "STILLPOINT_MEDIUM": "memory"}
        pipe = subprocess.PIPE
        with subprocess.Popen([OBJECTS, self.pool, "wait"], env=environment, stdin=pipe, stdout=pipe, text=True) as program:
            self.assertEqual(program.stdout.readline(), "open\n")
            figures = {}
            for _ in range(100):  # They change some 50 times a second.
                done = self.stillpoint("stats", "--json", self.pool)
                self.assertEqual(done.returncode, 0, done.stderr)
                figures = json.loads(done.stdout)
                if figures["transactions_committed"] == 1 and figures["objects_freed"] == 1:
                    break
                time.sleep(0.05)
            self.assertEqual((figures["transactions_committed"], figures["transactions_rolled_back"], figures["objects_made"],
                              figures["objects_freed"], figures["objects_now"]), (1, 1, 2, 1, 7))
            self.assertIn("open by process", self.stillpoint("info", self.pool).stdout)
            self.assert_refused(self.stillpoint("check", self.pool), 75)
            program.stdin.close()
            self.assertEqual(program.wait(), 0)
        self.assertEqual(self.stillpoint("stats", self.pool).returncode, 69)

    def test_run_refuses_them(self):
        self.make()
        done = self.assert_untouched_by(self.pool, self.run_counter)
        self.assert_refused(done, 65, "engine breeze are made and opened by the program itself", "breeze.h")
        self.pool.unlink()
        done = self.run_counter(options=("--engine", "breeze"))
        self.assert_refused(done, 64, "breeze.h")
        self.assertFalse(self.pool.exists())


if __name__ == "__main__":
    unittest.main()
