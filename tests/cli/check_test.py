"""`stillpoint check` of a damaged pool: findings by the part of the pool, what is lost by them and what is not, and what helps."""

import json
import unittest

from command_line import CommandLineTest
from support import json_schema

PAGE = 4096
RECORDS = range(2, 6)


class Parts(CommandLineTest):
    def damaged(self, *places):
        """A pool with another bit at each of these bytes."""
        content = bytearray(self.pool.read_bytes())
        for at in places:
            content[at] ^= 0x04
        path = self.folder / "damaged.pool"
        path.write_bytes(bytes(content))
        return path

    def report(self, path):
        done = self.assert_untouched_by(path, lambda: self.stillpoint("check", "--json", path))
        self.assertEqual(done.returncode, 65, done.stderr)
        report = json.loads(done.stdout)
        json_schema.validate(report, "check")
        self.assertEqual(report["result"], "damaged")
        self.assertEqual(sum(part["findings"] for part in report["parts"]), report["findings_total"])
        damaged = {part["part"] for part in report["parts"]}
        self.assertEqual({found["part"] for found in report["findings"]}, damaged)
        self.assertFalse(damaged & set(report["parts_sound"]))
        words = self.stillpoint("check", path).stderr
        for part in report["parts"]:
            self.assertIn(f"stillpoint: {part['part']}: {part['findings']} finding", words)
            self.assertIn(part["lost"], words)
        for one in report["helps"]:
            self.assertIn(f"`{one['command']}` {one['what']}", words)
        return report

    def helps(self, report):
        return " ".join(one["command"] for one in report["helps"])

    def setUp(self):
        super().setUp()
        for _ in range(2):
            self.new_pool()

    def used_pages(self, first):
        content = self.pool.read_bytes()
        return [page for page in range(first, len(content) // PAGE) if any(content[page * PAGE:(page + 1) * PAGE])]

    def test_of_pages(self):
        report = self.report(self.damaged(*(page * PAGE + 100 for page in self.used_pages(26))))
        self.assertIn("pages", {part["part"] for part in report["parts"]})
        self.assertLessEqual({"superblocks", "commit records", "tables"}, set(report["parts_sound"]))
        self.assertRegex(self.helps(report), "restore.*older-epoch.*salvage.*read-only")
        self.assertFalse(report["ended_early"])

    def test_of_commit_records(self):
        report = self.report(self.damaged(*(page * PAGE + at for page in RECORDS for at in (30, 2048 + 30))))
        self.assertEqual([part["part"] for part in report["parts"]], ["commit records"])
        self.assertTrue(report["ended_early"])
        self.assertEqual(report["parts_sound"], ["superblocks"])

    def test_of_tables(self):
        report = self.report(self.damaged(*(page * PAGE + 100 for page in self.used_pages(6) if page < 26)))
        self.assertIn("tables", {part["part"] for part in report["parts"]})
        self.assertIn("commit records", report["parts_sound"])
        self.assertIn("salvage", self.helps(report))

    def test_of_superblocks(self):
        report = self.report(self.damaged(300, PAGE + 300))
        self.assertEqual([part["part"] for part in report["parts"]], ["superblocks"])
        self.assertEqual(self.helps(report), "stillpoint restore COPY NEW")

    def test_remarks_are_in_the_answer_of_a_sound_pool(self):
        done = self.stillpoint("check", "--json", self.damaged(2 * PAGE + 30, 4 * PAGE + 30))
        report = json.loads(done.stdout)
        json_schema.validate(report, "check")
        self.assertEqual((report["result"], len(report["remarks"])), ("sound", 2))


if __name__ == "__main__":
    unittest.main()
