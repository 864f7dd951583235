"""--json of each command: every result and every error is one JSON object that its schema describes, and each error has one shape."""

import json
import os
import re
import shutil
import subprocess
import unittest

from command_line import BUILD, COUNTER, ROOT, SMALL, TOOL, CommandLineTest
from support import json_schema

ON_POOLS = ("info", "check", "dump", "diff", "compact", "convert", "copy", "restore", "salvage", "grow", "trim", "stats")
COMMANDS = (*ON_POOLS, "doctor", "crashtest", "lint")
OBJECTS = BUILD / "bin/cli_objects"
INSIDE = BUILD / "bin/cli_inside"


def duplicate_is_wrong(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a member is there twice: {names}"
    return dict(pairs)


class Answers(CommandLineTest):
    def answer(self, command, *arguments, exit_code=0, stream="stdout", **environment):
        """The one object that the command prints, validated; also its error, if the command failed."""
        done = self.stillpoint(command, "--json", *arguments, **environment)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        lines = [line for line in getattr(done, stream).splitlines() if stream == "stdout" or line.startswith("{")]
        self.assertEqual(len(lines), 1, done.stdout + done.stderr)
        found = json.loads(lines[0], object_pairs_hook=duplicate_is_wrong)
        json_schema.validate(found, command)
        if exit_code not in (0, 130):
            self.assertEqual(found["error"]["exit_code"], exit_code)
            self.assertIn("stillpoint: error: ", done.stderr)
        else:
            self.assertNotIn("error", found)
        return found

    def typed_pool(self):
        path = self.folder / "typed.pool"
        made = subprocess.run([OBJECTS, path], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        return path

    def rest_of(self, command):
        new = ["new.pool"]
        rest = {"diff": [self.pool], "compact": new, "convert": [*new, "--types", OBJECTS], "copy": new, "restore": new,
                "salvage": new, "grow": ["--pool-max", "1T"]}
        return rest.get(command, [])

    def test_results(self):
        pool, typed = self.new_pool(), self.typed_pool()
        self.assertEqual(self.answer("info", "--handles", pool)["engine"], "pmthreads")
        self.answer("info", "--objects", "--logs", "--section-logs", pool)
        self.assertEqual(self.answer("check", pool)["result"], "sound")
        self.assertTrue(self.answer("dump", typed)["objects"])
        self.assertEqual(len(self.answer("dump", "--program", INSIDE, pool)["roots"]), self.answer("check", pool)["handles"])
        shutil.copy(pool, self.folder / "old.pool")
        self.assertTrue(self.answer("diff", "old.pool", pool)["same"])
        self.answer("compact", typed, "small.pool")
        self.answer("convert", typed, "other.pool", "--types", OBJECTS)
        self.answer("convert", typed, "third.pool", "--types", OBJECTS, "--dry-run")
        self.assertFalse(self.answer("copy", pool, "copied.pool")["in_use"])
        self.assertEqual(self.answer("restore", "copied.pool", "restored.pool")["engine"], "pmthreads")
        increment = self.answer("copy", pool, "increment", "--incremental-since", "copied.pool")
        self.assertEqual((increment["changed_pages"], increment["verified"]), (0, True))
        self.assertEqual(self.answer("info", "increment")["base_epoch"], increment["base_epoch"])
        self.assertEqual(self.answer("check", "increment")["result"], "sound")
        self.answer("restore", "copied.pool", "increment", "chained.pool")
        self.assertTrue(self.answer("salvage", pool, "salvaged.pool")["whole"])
        self.assertEqual(self.answer("grow", pool, "--pool-max", "1G")["image_bytes_max"], 1 << 30)
        self.assertGreater(self.answer("trim", pool)["disk_bytes"], 0)
        self.answer("doctor", self.folder)
        self.answer("crashtest", "--kills", "1", "--max-ms", "50", *SMALL, "--", BUILD / "bin/cli_transfers", TMPDIR=str(self.folder))

    def test_pools_of_each_engine_that_shows_facts_of_its_own(self):
        for engine, option in (("pronto", "objects"), ("spht", "logs"), ("nvthreads", "section-logs")):
            with self.subTest(engine=engine):
                path = self.folder / f"{engine}.pool"
                made = self.run_counter(pool=path, options=("--engine", engine))
                if path.exists():
                    self.assertIn(option, self.answer("info", f"--{option}", path), made.stderr)

    def test_a_record_of_a_replica_that_cannot_be_read(self):
        record = self.folder / f"{self.new_pool().name}.replica"
        record.write_bytes(b"no record\n" * 60)
        self.assertEqual(self.answer("info", self.pool)["replica"], {"state": "unreadable"})
        self.assertIn("is damaged: whether the pool and its replica have", self.stillpoint("info", self.pool).stdout)

    def test_figures_of_a_running_program(self):
        words = [TOOL, "run", "--quiet", "--pool", self.pool, *SMALL, "--", COUNTER, "wait"]
        with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True) as holder:
            self.assertEqual([holder.stdout.readline() for _ in range(2)][1], "ready\n")
            found = self.answer("stats", self.pool)
            self.assertEqual(found["process"], holder.pid)
            documented = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/guide/statistics.md").read_text(encoding="utf-8"), re.MULTILINE)
            self.assertEqual(found.keys() - {"program", "process", "pool", "advice"}, set(documented))
            for command in ("check", "dump", "compact", "convert"):
                self.assertEqual(self.answer(command, self.pool, *self.rest_of(command), exit_code=75)["error"]["code"], "pool_locked")
            holder.kill()

    def test_errors_of_every_command_on_a_pool(self):
        (self.folder / "text").write_text("no pool\n" * 2000)
        pool = self.new_pool()
        damaged = bytearray(pool.read_bytes())
        for at in range(26 * 4096, len(damaged), 4096):
            damaged[at + 100] ^= 1 if any(damaged[at:at + 4096]) else 0
        (self.folder / "damaged.pool").write_bytes(bytes(damaged))
        for command in ON_POOLS:
            with self.subTest(command=command):
                rest = self.rest_of(command)
                missing = self.answer(command, "gone.pool", *rest, exit_code=66)["error"]
                self.assertIn("gone.pool", missing["message"])
                self.assertIn("check the path", missing["next"])
                usage = self.answer(command, exit_code=64)["error"]
                self.assertEqual((usage["code"], usage["next"]), ("usage", f"`stillpoint {command} --help`"))
                self.answer(command, pool, *rest, "--jsn", exit_code=64)
                if command != "stats":
                    self.assertEqual(self.answer(command, "text", *rest, exit_code=65)["error"]["code"], "not_a_pool")
        self.assertEqual(self.answer("check", "damaged.pool", exit_code=65)["result"], "damaged")
        self.assertEqual(self.answer("stats", pool, exit_code=69)["error"]["code"], "unavailable")
        self.answer("dump", "--root", "none", pool, exit_code=64)
        self.answer("dump", "--program", "none", pool, exit_code=66)

    def test_errors_of_the_other_commands(self):
        self.answer("doctor", "gone", exit_code=66)
        self.answer("doctor", "--no-such", exit_code=64)
        self.assertFalse(self.answer("doctor", "/proc", exit_code=69)["verdict"]["pool_possible"])
        self.answer("crashtest", exit_code=64)
        self.answer("crashtest", "--", "./gone", exit_code=127)
        self.answer("crashtest", "--min-ms", "9", "--max-ms", "8", "--", COUNTER, exit_code=64)
        self.answer("lint", "--", "./gone", exit_code=127, stream="stderr")
        self.answer("lint", "--no-such", "--", COUNTER, exit_code=64)
        self.answer("lint", "--", COUNTER, exit_code=126, stream="stderr")
        self.assertEqual(self.stillpoint("lint", "--json", "--output", "report", "--", COUNTER).returncode, 126)
        json_schema.validate(json.loads((self.folder / "report").read_text()), "lint")

    def test_an_unknown_command_and_a_name_that_is_no_text(self):
        done = self.stillpoint("inf", "--json", "a.pool")
        found = json.loads(done.stdout)
        json_schema.validate(found, "error")
        self.assertIn("did you mean 'info'?", found["error"]["message"])
        words = [TOOL, "info", "--json", b"\xff\xc3\xa4\xed\xa0\x80.pool"]
        named = subprocess.run(words, capture_output=True, check=False, cwd=self.folder)
        self.assertIn("ä", json.loads(named.stdout.decode("utf-8"))["error"]["message"])

    def test_a_program_that_takes_json_itself_is_told_in_words(self):
        done = self.stillpoint("run", "./gone", "--json")
        self.assertEqual((done.returncode, done.stdout), (127, ""))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root, to become another user")
    def test_a_pool_of_another_user(self):
        pool = self.new_pool()
        self.folder.chmod(0o755)
        as_nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", TOOL)
        done = subprocess.run([*as_nobody, "info", "--json", pool], capture_output=True, text=True, check=False)
        if done.returncode == 77:
            json_schema.validate(json.loads(done.stdout), "info")


class Documents(unittest.TestCase):
    def test_each_command_with_json_has_a_schema_that_the_page_names(self):
        listed = subprocess.run([TOOL, "--help"], capture_output=True, text=True, check=True).stdout
        listed = listed[listed.index("Subcommands:"):listed.index("Examples:")]
        page = (ROOT / "docs/guide/json.md").read_text(encoding="utf-8")
        takes = {name for name in re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE) if name != "bench" and
                 "--json" in subprocess.run([TOOL, name, "--help"], capture_output=True, text=True, check=False).stdout}
        self.assertEqual(takes, set(COMMANDS))
        self.assertEqual({path.stem for path in json_schema.FOLDER.glob("*.json")}, {*COMMANDS, "error", "value"})
        for command in COMMANDS:
            self.assertIn(f"schemas/{command}.json)", page)

    def test_the_page_and_the_schema_have_the_same_codes(self):
        codes = set(json_schema.load("error.json")["$defs"]["error"]["properties"]["code"]["enum"])
        page = (ROOT / "docs/guide/json.md").read_text(encoding="utf-8")
        own = set(re.findall(r"^\| `(\w+)` \| \d+ \|$", page, re.MULTILINE))
        header = (ROOT / "include/stillpoint/error.h").read_text(encoding="utf-8")
        self.assertEqual(codes, own | {name.lower() for name in re.findall(r"SP_E_(\w+) = ", header)})


if __name__ == "__main__":
    unittest.main()
