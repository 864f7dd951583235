"""`stillpoint debug`, and what stillpoint-gdb.py teaches gdb: pools at rest, programs that run, containers, objects of
breeze, and a missing gdb."""

import json
import os
import shutil
import subprocess
import unittest

from command_line import BUILD, ROOT, SMALL, CommandLineTest

INSIDE = BUILD / "bin/cli_inside"
OBJECTS = BUILD / "bin/cli_objects"
SCRIPT = ROOT / "tools/gdb/stillpoint-gdb.py"


@unittest.skipUnless(shutil.which("gdb"), "needs gdb")
class Debug(CommandLineTest):
    def make(self, program, engine="pmthreads"):
        done = self.stillpoint("run", "--quiet", "--engine", engine, "--pool", self.pool, *SMALL, "--", program)
        self.assertEqual(done.returncode, 0, done.stderr)

    def gdb(self, program, *commands, exit_code=0):
        words = [word for command in commands for word in ("-ex", command)]
        done = self.stillpoint("debug", self.pool, *([program] if program else []), "--", "--batch", *words, TMPDIR=str(self.folder))
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return done.stdout + done.stderr

    def test_gdb_shows_handles_and_globals_and_the_pool_is_only_read(self):
        self.make(INSIDE)
        said = self.assert_untouched_by(self.pool, lambda: self.gdb(
            INSIDE, "stillpoint roots", 'print $sp_root("bank")->first->owner', 'print *$sp_root("items", "struct item")@3',
            "print starts", "print rates", 'set var $sp_root("bank")->count = 7', exit_code=1))
        self.assertRegex(said, r"(?m)^bank  0x48[0-9a-f]+  88 bytes  struct bank$")
        self.assertIn('owner \\"0\\"', said)
        self.assertIn("{{number = 0}, {number = 1}, {number = 2}}", said)
        self.assertRegex(said, r"\$3 = 2\n\$4 = \{1\.5, 2\.5, 0\}")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["a.pool"], "something is left")

    def test_without_a_program(self):
        self.make(INSIDE)
        said = self.gdb(None, "stillpoint roots", 'x/1gx $sp_root("bank")', 'print $sp_root("none")', exit_code=1)
        self.assertRegex(said, r"(?m)^items  0x48[0-9a-f]+  400 bytes$")
        self.assertRegex(said, r"(?m)^0x48[0-9a-f]+:\s+0x0000000000000000$")
        self.assertIn('no pool has a handle "none"; there are: bank, items', said)

    def test_containers_are_shown_by_their_elements(self):
        self.make(BUILD / "bin/cli_containers", "pronto")
        said = self.gdb(BUILD / "bin/cli_containers", *(f'print *$sp_root("{name}")' for name in ("numbers", "visits", "words", "texts")))
        self.assertIn("stillpoint::durable::vector", said)
        if "std::vector of length 5" in said:  # where the printers of libstdc++ are installed
            self.assertIn("= {0, 1, 4, 9, 16}", said)
            self.assertIn('["Anna"] = 3, ["a name that has no room in a short string"] = 4}', said)
            self.assertIn('["one"] = 1}', said)
            self.assertIn('string_map with 1 element = {["key"] = "value"}', said)

    def test_logged_variables_are_shown_by_their_values(self):
        self.make(BUILD / "bin/cli_logged", "respct")
        said = self.gdb(BUILD / "bin/cli_logged", 'print *$sp_root("list", "List")->first.slots_[0].value')
        self.assertRegex(said, r"\{next = 0x48[0-9a-f]+, count = 20, key = 2\}")

    def test_a_program_that_runs(self):
        words = ["gdb", "--batch", "-nx", "-ex", "set startup-with-shell off", "-ex", f"source {SCRIPT}", "-ex", "break sp_root_delete",
                 "-ex", "run", "-ex", "up", "-ex", 'print $sp_root("bank")->count', "-ex", "print bank->first->owner",
                 "--args", INSIDE, "delete"]
        self.make(INSIDE)
        done = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True, check=False, timeout=60,
                              env={**os.environ, "LD_PRELOAD": "", "STILLPOINT_POOL": str(self.pool)})
        if "ptrace" in done.stderr or "STILLPOINT" in done.stderr:
            self.skipTest(done.stderr)
        self.assertIn("$1 = 2", done.stdout, done.stderr)

    def make_objects(self, medium="memory", *action):
        done = self.stillpoint(self.pool, *action, tool=OBJECTS, STILLPOINT_MEDIUM=medium)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_objects_of_breeze_are_followed_from_the_root(self):
        for medium in ("memory", "file"):
            with self.subTest(medium=medium):
                self.make_objects(medium)
                number = json.loads(self.stillpoint("dump", "--json", self.pool).stdout)["objects"][1]["object"]
                commands = ("stillpoint roots", 'print $sp_root("root")->lists[0]->next->number', 'print $sp_root("root")->ring->text',
                            'print $sp_root("root")->ring->next->next->next == $sp_root("root")->ring',
                            f"print $sp_object({number})->number", f'print $sp_object({number + 64}, "long")', 'print $sp_root("none")')
                said = self.assert_untouched_by(self.pool, lambda commands=commands: self.gdb(OBJECTS, *commands, exit_code=1))
                self.assertRegex(said, r"(?m)^root  0x[45]8[0-9a-f]+  24 bytes  Root$")
                self.assertRegex(said, r'(?m)^\$1 = 1\n\$2 = "a \\"node\\"".*\n\$3 = 1\n\$4 = 2$')
                self.assertIn(f"no object has the number {number + 64}", said)
                self.assertIn('no pool has a handle "none"; there are: root', said)
                self.assertRegex(self.gdb(None, "stillpoint roots", 'print $sp_root("root")'), r"(?m)^root .* Root$\n\$1 = \(void \*\) 0x")
                self.pool.unlink()

    def test_damaged_objects_of_breeze_are_told_and_the_others_shown(self):
        self.make_objects()
        offset = self.make_objects("memory", "damage").strip()
        said = self.gdb(OBJECTS, 'print $sp_root("root")->ring->number')
        self.assertIn(f"damaged: {self.pool}: the header of the object at byte {offset} of the image", said)
        self.assertIn("$1 = 6", said)

    def test_a_program_of_breeze_that_runs(self):
        self.make_objects()
        words = ["gdb", "--batch", "-nx", "-ex", "set startup-with-shell off", "-ex", f"source {SCRIPT}", "-ex", "break nvm_drain",
                 "-ex", "run", "-ex", 'print $sp_root("root")->lists[1]->number', "--args", OBJECTS, self.pool, "wait"]
        done = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True, check=False, timeout=60,
                              env={**os.environ, "STILLPOINT_MEDIUM": "memory"})
        if "ptrace" in done.stderr:
            self.skipTest(done.stderr)
        self.assertIn("$1 = 8", done.stdout, done.stderr)

    def test_without_gdb_the_package_is_named(self):
        self.make(INSIDE)
        self.assert_refused(self.stillpoint("debug", self.pool, PATH="/nowhere"), 69, "apt-get install gdb")

    def test_what_it_refuses(self):
        self.assert_refused(self.stillpoint("debug", "none"), 66, "none")
        self.make(INSIDE)
        self.assert_refused(self.stillpoint("debug", self.pool, "none"), 66, "No such file")
        self.assert_refused(self.stillpoint("debug", self.pool, TMPDIR="/nowhere"), 74, "set TMPDIR")
        bytes_ = bytearray(self.pool.read_bytes())
        bytes_[:8192] = bytes(8192)
        self.pool.write_bytes(bytes_)
        self.assertEqual(self.stillpoint("debug", self.pool).returncode, 65)


if __name__ == "__main__":
    unittest.main()
