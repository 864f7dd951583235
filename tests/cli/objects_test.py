"""Pools of breeze, whose programs open them: the tools that look at them, and those that refuse them."""

import json
import os
import random
import shutil
import subprocess
import time
import unittest

from command_line import BUILD, TOOL, CommandLineTest
from support import json_schema

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

    def compared(self, before, after, exit_code):
        done = self.stillpoint("diff", "--json", before, after)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        found = json.loads(done.stdout)
        json_schema.validate(found, "diff")
        return found

    def test_diff_compares_them_object_by_object(self):
        for medium in ("memory", "file"):
            with self.subTest(medium=medium):
                self.make(medium)
                shutil.copy(self.pool, self.folder / "before.pool")
                self.assertTrue(self.compared("before.pool", self.pool, 0)["same"])
                self.assertEqual(self.stillpoint(self.pool, "lose", tool=OBJECTS, STILLPOINT_MEDIUM=medium).returncode, 0)
                found = self.compared("before.pool", self.pool, 1)
                self.assertEqual((found["blocks_added"], found["blocks_removed"], found["blocks_changed"]), (0, 3, 1))
                root = next(one for one in found["blocks"] if one["type"] == "Root")
                self.assertEqual([(field["field"], field["after"]) for field in root["fields"]], [("ring", "null")])
                text = self.stillpoint("diff", "--limit", "2", "before.pool", self.pool).stdout
                self.assertIn("ring: pointer = ", text)
                self.assertIn("2 more objects: raise --limit", text)
                # Objects are known by what they are, not by where they lie.
                self.assertEqual(self.stillpoint("compact", "before.pool", "small.pool").returncode, 0)
                self.assertTrue(self.compared("before.pool", "small.pool", 0)["same"])
                self.pool.unlink()
                (self.folder / "small.pool").unlink()

    def test_diff_says_what_it_cannot_do(self):
        self.make()
        self.assert_refused(self.stillpoint("diff", "--program", OBJECTS, self.pool, self.pool), 64, "describes the types of its objects")
        other = self.folder / "other.pool"
        self.run_counter(pool=other)
        self.assert_refused(self.stillpoint("diff", self.pool, other), 65, "nothing that can be compared")
        self.damage()
        self.assert_refused(self.stillpoint("diff", self.pool, self.pool), 65, "damaged")

    def salvaged(self, exit_code):
        done = self.assert_untouched_by(self.pool, lambda: self.stillpoint("salvage", "--json", self.pool, "new.pool"))
        self.assertEqual(done.returncode, exit_code, done.stderr)
        found = json.loads(done.stdout)
        json_schema.validate(found, "salvage")
        self.assertEqual(self.stillpoint("check", "new.pool").returncode, 0)
        (self.folder / "new.pool").unlink()
        return found

    def test_salvage_keeps_all_but_the_damaged_object(self):
        for medium in ("memory", "file"):
            self.make(medium)
            found = self.salvaged(0)
            self.assertEqual((found["whole"], found["objects_kept"], found["values_proved"]), (True, 7, False))
            self.pool.unlink()
        self.make()
        offset = self.damage()
        found = self.salvaged(1)
        self.assertEqual([(one["object_before"], one["references"]) for one in found["lost"]], [(offset, 2)])
        self.assertEqual({one["field"] for one in found["cleared"]}, {"next"})
        self.assertEqual((found["objects_kept"], len(found["cleared"]), found["held"], found["root_lost"]), (6, 2, 0, False))
        done = self.stillpoint("salvage", self.pool, "new.pool")
        self.assertRegex(done.stdout, rf"lost: the object that lay at byte {offset}: its header is damaged; 2 references led to it")
        self.assertRegex(done.stdout, r"null now: next of the object at byte \d+ \(before: \d+\), of type Node")
        self.assertIn("stillpoint salvage", self.stillpoint("check", self.pool).stderr + self.stillpoint("check", self.pool).stdout)

    def test_check_says_which_part_is_damaged(self):
        self.make()
        self.damage()
        parts = [part["part"] for part in json.loads(self.stillpoint("check", "--json", self.pool).stdout)["parts"]]
        self.assertEqual(parts, ["objects"])
        content = bytearray(self.pool.read_bytes())
        content[content.find(b"Node\0") + 1] ^= 1
        self.pool.write_bytes(content)
        parts = [part["part"] for part in json.loads(self.stillpoint("check", "--json", self.pool).stdout)["parts"]]
        self.assertEqual(parts, ["types"])
        # Nothing of that type is kept, and what is left is held.
        found = self.salvaged(1)
        self.assertEqual((found["objects_kept"], found["findings_total"]), (1, 1), found)

    def test_a_salvage_that_is_killed_leaves_a_whole_pool_or_none(self):
        self.make()
        self.damage()
        before = self.pool.read_bytes()
        new = self.folder / "new.pool"
        chance = random.Random(5)
        begin = time.monotonic()
        self.assertEqual(self.stillpoint("salvage", "-q", self.pool, new).returncode, 1)
        longest = 1.2 * (time.monotonic() - begin)
        new.unlink()
        for _ in range(40):
            with subprocess.Popen([TOOL, "salvage", "-q", self.pool, new], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                time.sleep(chance.uniform(0, longest))
                process.kill()
            if new.exists():
                self.assertEqual(self.stillpoint("check", new).returncode, 0)
                new.unlink()
        self.assertEqual(self.pool.read_bytes(), before)
        self.assertEqual(self.stillpoint("salvage", self.pool, new).returncode, 1)

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

    def open_and_wait(self, medium="memory", **environment):
        """A program that opens the pool, and ends at once."""
        return self.stillpoint(self.pool, "wait", tool=OBJECTS, STILLPOINT_MEDIUM=medium, **environment)

    def test_a_damaged_object_is_told_and_kept_and_the_pool_opened(self):
        self.make()
        offset = self.damage()
        for environment in ({}, {"STILLPOINT_DAMAGED": "refuse"}):
            done = self.open_and_wait(**environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, rf"warning: .*\(byte {offset} of the image\) is damaged; .*stillpoint salvage")
        self.assert_refused(self.stillpoint("check", self.pool), 65, f"byte {offset} of the image is damaged")

    def test_a_pool_whose_types_are_damaged_is_refused_with_the_way_out(self):
        for medium in ("memory", "file"):
            with self.subTest(medium=medium):
                self.make(medium)
                content = bytearray(self.pool.read_bytes())
                at = content.find(b"Node\0")
                while at >= 0:
                    content[at + 1] ^= 1
                    at = content.find(b"Node\0", at)
                self.pool.write_bytes(content)
                done = self.assert_untouched_by(self.pool, lambda medium=medium: self.open_and_wait(medium))
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, "type record .* is damaged")
                self.assertRegex(done.stderr, f"`stillpoint check {self.pool}`.*`stillpoint salvage {self.pool} NEW`")
                self.pool.unlink()

    def test_read_only_and_older_epoch_are_refused_and_change_nothing(self):
        for medium, damaged in (("memory", True), ("memory", False), ("file", False)):
            self.make(medium)
            if damaged:
                self.damage()
            for wish in ("read-only", "older-epoch"):
                with self.subTest(medium=medium, damaged=damaged, wish=wish):
                    done = self.assert_untouched_by(self.pool, lambda medium=medium, wish=wish: self.open_and_wait(
                        medium, STILLPOINT_DAMAGED=wish))
                    self.assertEqual((done.returncode, done.stdout), (1, ""))
                    way_out = f"`stillpoint dump {self.pool}`.*`stillpoint salvage {self.pool} NEW`"
                    self.assertRegex(done.stderr, f"STILLPOINT_DAMAGED={wish}.*{way_out}")
                    done = self.assert_untouched_by(self.pool, lambda wish=wish: self.run_counter(options=("--damaged", wish)))
                    self.assert_refused(done, 65, f"damaged={wish}.*{way_out}")
            self.pool.unlink()

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
