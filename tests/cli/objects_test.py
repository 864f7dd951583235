"""Pools of breeze, whose programs open them: the tools that look at them, and those that refuse them."""

import json
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
