"""`stillpoint salvage`: the damaged pool is only read, the new one is there whole or not at all, and what is not proved is listed."""

import json
import random
import subprocess
import time
import unittest

from command_line import SMALL, TOOL, CommandLineTest
from support import json_schema

PAGE = 4096


class Salvages(CommandLineTest):
    def damaged(self, seed, pages):
        """A pool in which so many pages of the file that are not zero have a changed bit; check finds it damaged."""
        path = self.folder / f"damaged-{seed}.pool"
        if not self.pool.exists():
            self.new_pool()
        chance = random.Random(seed)
        whole = self.pool.read_bytes()
        used = [page for page in range(6, len(whole) // PAGE) if any(whole[page * PAGE:(page + 1) * PAGE])]
        while True:
            content = bytearray(whole)
            for page in chance.sample(used, pages):
                content[page * PAGE + chance.randrange(PAGE)] ^= 1 << chance.randrange(8)
            path.write_bytes(content)
            if self.stillpoint("check", path).returncode == 65:
                return path

    def test_the_made_pool_opens_and_the_rest_is_listed(self):
        for seed in range(4):
            path = self.damaged(seed, 3)
            before = path.read_bytes()
            done = self.stillpoint("salvage", "--json", path, f"new-{seed}.pool")
            self.assertEqual(path.read_bytes(), before)
            if done.returncode == 65:
                self.assertFalse((self.folder / f"new-{seed}.pool").exists())
                continue
            self.assertEqual(done.returncode, 1, done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual(sum(row["pages"] for row in found["pages"]), found["pages_older"] + found["pages_lost"])
            checked = self.stillpoint("check", f"new-{seed}.pool")
            self.assertEqual(checked.returncode, 65 if found["findings_total"] else 0, checked.stderr)

    def test_a_pool_whose_parts_no_checksum_covers_is_refused(self):
        path = self.folder / "respct.pool"
        self.assertEqual(self.run_counter(pool=path, options=("--engine", "respct")).returncode, 0)
        refused = self.assert_untouched_by(path, lambda: self.stillpoint("salvage", path, "new.pool"))
        self.assert_refused(refused, 65, "checksums cover the tables of names alone", "restore a copy", "--accept-unproved")
        self.assertFalse((self.folder / "new.pool").exists())

    def accepted(self, path, new):
        done = self.assert_untouched_by(path, lambda: self.stillpoint("salvage", "--accept-unproved", "--json", path, new))
        self.assertEqual(done.returncode, 1, done.stderr)
        found = json.loads(done.stdout)
        json_schema.validate(found, "salvage")
        return found

    def test_it_is_made_where_that_is_accepted_and_what_is_not_proved_is_listed(self):
        made = self.run_counter(options=("--engine", "respct"))
        self.assertEqual(made.returncode, 0, made.stderr)
        found = self.accepted(self.pool, "new.pool")
        self.assertEqual((found["pages_older"], found["pages_lost"], found["findings_total"], found["tables_proved"]), (0, 0, 0, True))
        self.assertEqual((found["whole"], found["handles"]), (False, []))
        names = sorted(row["handle"] for row in json.loads(self.stillpoint("info", "--json", "--handles", self.pool).stdout)["handles"])
        self.assertEqual(sorted(row["handle"] for row in found["handles_unproved"]), names)
        self.assertEqual(self.stillpoint("check", "new.pool").returncode, 0)
        self.assertEqual(self.run_counter(pool=self.folder / "new.pool").returncode, 0)
        # A damaged page of the directory: its older copy serves, or it is lost.
        content = bytearray(self.pool.read_bytes())
        at = content.find(names[0].encode())
        while at >= 0:
            content[at] ^= 1
            at = content.find(names[0].encode())
        self.pool.write_bytes(content)
        self.assertEqual(self.stillpoint("check", self.pool).returncode, 65)
        found = self.accepted(self.pool, "again.pool")
        self.assertEqual(found["pages_older"] + found["pages_lost"], 1)
        self.assertIn("handle directory", found["pages"][0]["part"])
        done = self.stillpoint("salvage", "--accept-unproved", self.pool, "text.pool")
        self.assertRegex(done.stdout, r"\d+ pages of the heap's tables and of objects are as the file has them: no checksum covers them")

    def test_killed_it_leaves_a_whole_pool_of_respct_or_none(self):
        self.assertEqual(self.run_counter(options=("--engine", "respct")).returncode, 0)
        self.kill_salvages(self.pool, self.folder / "new.pool", 20, "--accept-unproved")

    def test_killed_it_leaves_a_whole_pool_or_none(self):
        path = self.damaged(100, 1)
        new = self.folder / "new.pool"
        self.kill_salvages(path, new, 60)
        self.assertIn(self.stillpoint("salvage", path, new).returncode, (1, 65))

    def kill_salvages(self, path, new, times, *options):
        before = path.read_bytes()
        chance = random.Random(7)
        begin = time.monotonic()
        self.assertIn(self.stillpoint("salvage", "-q", *options, path, new).returncode, (1, 65))
        longest = 1.2 * (time.monotonic() - begin)
        new.unlink(missing_ok=True)
        made = 0
        for _ in range(times):
            with subprocess.Popen([str(word) for word in (TOOL, "salvage", "-q", *options, path, new)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as process:
                time.sleep(chance.uniform(0, longest))
                process.kill()
            if new.exists():
                made += 1
                self.assertNotEqual(self.stillpoint("info", new).returncode, 65)
                new.unlink()
        self.assertEqual(path.read_bytes(), before)
        print(f"killed {times} times: the new pool was there {made} times")

    def test_a_full_disk_leaves_no_pool(self):
        path = self.damaged(5, 1)
        done = subprocess.run(["prlimit", "--fsize=1000000", *map(str, (TOOL, "salvage", path, self.folder / "new.pool"))],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertEqual(sorted(one.name for one in self.folder.iterdir() if one.name.startswith("new.pool")), [])


if __name__ == "__main__":
    unittest.main()
