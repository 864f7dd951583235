"""`stillpoint salvage`: the damaged pool is only read, the new one is there whole or not at all, and what is not proved is listed."""

import json
import random
import subprocess
import time
import unittest

from command_line import COUNTER, SMALL, TOOL, CommandLineTest

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
        self.assertEqual(self.stillpoint("run", "--engine", "respct", "--pool", path, *SMALL, "--", "true").returncode, 0)
        if path.exists():
            self.assert_refused(self.stillpoint("salvage", path, "new.pool"), 65, "restore a copy")

    def test_killed_it_leaves_a_whole_pool_or_none(self):
        path = self.damaged(100, 1)
        before = path.read_bytes()
        new = self.folder / "new.pool"
        chance = random.Random(7)
        made = 0
        for _ in range(60):
            with subprocess.Popen([str(word) for word in (TOOL, "salvage", "-q", path, new)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as process:
                time.sleep(chance.uniform(0, 0.04))
                process.kill()
            if new.exists():
                made += 1
                self.assertNotEqual(self.stillpoint("info", new).returncode, 65)
                new.unlink()
        self.assertEqual(path.read_bytes(), before)
        self.assertIn(self.stillpoint("salvage", path, new).returncode, (1, 65))
        print(f"killed 60 times: the new pool was there {made} times")

    def test_a_full_disk_leaves_no_pool(self):
        path = self.damaged(5, 1)
        done = subprocess.run(["prlimit", "--fsize=1000000", *map(str, (TOOL, "salvage", path, self.folder / "new.pool"))],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertEqual(sorted(one.name for one in self.folder.iterdir() if one.name.startswith("new.pool")), [])


if __name__ == "__main__":
    unittest.main()
