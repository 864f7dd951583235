"""Each command, brought into each situation that docs/guide/exit-codes.md gives it a code for: the code is the documented one. The table by
command, --help and the manual pages name the same codes."""

import json
import os
import re
import resource
import shutil
import socket
import subprocess
import unittest

from command_line import BUILD, COUNTER, ROOT, SMALL, TOOL, CommandLineTest

DOCUMENT = (ROOT / "docs/guide/exit-codes.md").read_text(encoding="utf8")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
# Codes of situations that no test can bring about at will: a disk that fails (tests/faults has those), and Ctrl-C.
ELSEWHERE = {"run": {74}, "info": {71, 74}, "check": {71, 74}, "copy": {71, 74},
             "restore": {71, 74}, "salvage": {71, 74}, "grow": {71, 74}, "trim": {71, 74}, "compact": {71, 74}, "convert": {71, 74},
             "doctor": {74, 75}, "stats": {74}, "exporter": {71}, "top": {74},
             "standby": {65, 69, 71, 74, 75, 77},  # tests/rados
             "crashtest": {0, 1, 65, 69, 73, 74, 75, 77, 130}}


def documented():
    """command -> its codes, as the table has them."""
    return {name: {int(code) for code in re.findall(r"\b\d+\b", codes)}
            for name, codes in re.findall(r"^\| `([a-z]+)` \| (.*) \|$", DOCUMENT, re.MULTILINE)}


def codes_in(text):
    """The codes that a help text or a manual page lists: numbers at the beginning of a clause."""
    return {int(code) for code in re.findall(r"(?:^|[;:.,]|or)\s+(\d+)(?=\s)", text)}


class ExitCodes(CommandLineTest):
    seen = {}

    def expect(self, command, code, *arguments, before=(), limit=None, **environment):
        def lower(): resource.setrlimit(*limit) if limit else None
        clean = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_") and name != "LD_PRELOAD"}
        words = [str(word) for word in (*before, TOOL, command, *arguments)]
        done = subprocess.run(words, cwd=self.folder, env={**clean, **environment}, stdin=subprocess.DEVNULL, preexec_fn=lower,
                              capture_output=True, text=True, check=False, timeout=600)
        with self.subTest(words=words[len(before):]):
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn(code, documented()[command])
            if code not in (0, 1) and "no: " not in done.stdout:
                self.assertIn("stillpoint: error: ", done.stderr)
        self.seen.setdefault(command, set()).add(code)

    def open_pool(self, pool=None, *options):
        """A process that has the pool open until the test ends."""
        words = [TOOL, "run", "--quiet", "--pool", pool or self.pool, *SMALL, *options, "--", COUNTER, "wait"]
        holder = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)

        def end():
            holder.kill()
            holder.wait()
            holder.stdout.close()
        self.addCleanup(end)
        self.assertEqual([holder.stdout.readline() for _ in range(2)][1], "ready\n")

    def everywhere_the_same(self, command, *program):
        """The shared behaviour of all commands that look at pools."""
        options = ("--quiet",) if command == "run" else ()
        def expect(code, path, **how):
            named = ("--pool", path) if command == "run" else (path,)
            self.expect(command, code, *options, *named, *program, **how)
        self.expect(command, 64, "--no-such-flag")
        (self.folder / "text").write_text("no pool\n" * 2000)
        if command != "stats":
            expect(65, self.folder / "text")
        else:
            expect(65, self.folder)
        expect(66, self.folder / "gone/a.pool")
        self.open_pool()
        if os.geteuid() == 0 and shutil.which("setpriv"):
            self.folder.chmod(0o755)
            if subprocess.run([*NOBODY, "test", "-x", str(TOOL)], check=False).returncode == 0:
                expect(77, self.pool, before=NOBODY)
        return expect

    def end_check(self, command):
        missing = documented()[command] - self.seen[command] - ELSEWHERE[command]
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            missing -= {77}
        self.assertEqual(missing, set(), f"codes that the table gives `{command}`, and no situation here has")

    def test_of_run(self):
        expect = self.everywhere_the_same("run", "--", COUNTER)
        expect(75, self.pool)
        new = self.folder / "new.pool"
        start = ("--quiet", "--pool", new, "--durability", "process")
        self.expect("run", 69, *start, "--", COUNTER, LD_PRELOAD=str(BUILD / "lib/libcli_window.so"))
        self.expect("run", 71, *start, "--", COUNTER, limit=(resource.RLIMIT_AS, (256 << 20, 256 << 20)))
        self.expect("run", 73, *start, "--", COUNTER, limit=(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
        self.expect("run", 126, *start, "--", "/")
        self.expect("run", 127, *start, "--", "./no-such-program")
        self.assertFalse(new.exists())
        own = subprocess.run([TOOL, "run", *start, "--", COUNTER, "exit", "42"], capture_output=True, check=False, timeout=600)
        self.assertEqual(own.returncode, 42)
        self.expect("run", 64, *start, "--durability", "power", "--", COUNTER)  # The pool exists, and is of another kind.
        self.end_check("run")

    def test_of_standby(self):
        pool = ("--pool", "rados://data/a?conf=/no/such.conf")
        self.expect("standby", 64, "--pool", self.pool, "--", COUNTER)
        self.expect("standby", 126, *pool, "--", "/")
        self.expect("standby", 127, *pool, "--", "./no-such-program")
        self.end_check("standby")

    def test_of_info(self):
        expect = self.everywhere_the_same("info")
        expect(0, self.pool)
        self.expect("info", 75, "--handles", self.pool)
        self.end_check("info")

    def test_of_check(self):
        expect = self.everywhere_the_same("check")
        expect(75, self.pool)
        self.assertEqual(self.run_counter(pool=self.folder / "b.pool").returncode, 0)
        expect(0, self.folder / "b.pool")
        self.end_check("check")

    def test_of_copy(self):
        expect = self.everywhere_the_same("copy", "new.pool")
        expect(0, self.pool)
        expect(73, self.pool)
        unholdable = self.folder / "unholdable.pool"
        self.open_pool(unholdable, "--medium", "memory", "--engine", "respct")
        self.expect("copy", 75, unholdable, "other.pool")
        self.end_check("copy")

    def test_of_restore(self):
        expect = self.everywhere_the_same("restore", "new.pool")
        expect(75, self.pool)
        self.expect("copy", 0, self.pool, "copy.pool")
        self.seen.pop("copy")
        self.expect("restore", 0, "copy.pool", "new.pool")
        self.expect("restore", 73, "copy.pool", "new.pool")
        self.expect("restore", 75, "--force", "copy.pool", self.pool)
        self.end_check("restore")

    def test_of_salvage(self):
        expect = self.everywhere_the_same("salvage", "new.pool")
        expect(75, self.pool)
        self.assertEqual(self.run_counter(pool=self.folder / "b.pool").returncode, 0)
        expect(0, self.folder / "b.pool")
        expect(73, self.folder / "b.pool")
        self.expect("salvage", 1, self.pool_with_a_damaged_page(self.folder / "b.pool"), "c.pool")
        self.end_check("salvage")

    def test_of_grow(self):
        expect = self.everywhere_the_same("grow", "--pool-max", "1T")
        expect(75, self.pool)
        self.assertEqual(self.run_counter(pool=self.folder / "b.pool").returncode, 0)
        expect(0, self.folder / "b.pool")
        self.expect("grow", 64, self.folder / "b.pool", "--pool-max", "8M")
        self.end_check("grow")

    def test_of_trim(self):
        expect = self.everywhere_the_same("trim")
        expect(75, self.pool)
        self.assertEqual(self.run_counter(pool=self.folder / "b.pool").returncode, 0)
        expect(0, self.folder / "b.pool")
        self.end_check("trim")

    def pool_with_a_damaged_page(self, pool):
        """The last page of the file that a check finds damaged."""
        facts = json.loads(subprocess.run([TOOL, "check", "--json", pool], capture_output=True, text=True, check=True).stdout)
        self.assertEqual(facts["result"], "sound")
        content = pool.read_bytes()
        for page in range(len(content) // 4096 - 1, 8, -1):
            damaged = bytearray(content)
            damaged[page * 4096] ^= 1
            if any(content[page * 4096:page * 4096 + 4096]):
                pool.write_bytes(damaged)
                if subprocess.run([TOOL, "check", pool], capture_output=True, check=False).returncode == 65:
                    return pool
        return self.fail("no page of the file matters")

    def test_of_compact(self):
        expect = self.everywhere_the_same("compact", "new.pool")
        expect(65, self.new_pool_of_another_engine())
        expect(75, self.pool)
        typed = self.folder / "typed.pool"
        made = subprocess.run([BUILD / "bin/cli_objects", typed], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.expect("compact", 64, typed, "new.pool", "--size", "1M")
        if self.survives_the_machine(typed) and os.path.ismount("/dev/shm"):
            self.expect("compact", 69, typed, f"/dev/shm/{self.folder.name}.pool")
        else:
            self.seen["compact"].add(69)
        expect(0, typed)
        expect(73, typed)
        self.end_check("compact")

    def test_of_convert(self):
        expect = self.everywhere_the_same("convert", "new.pool", "--types", BUILD / "bin/cli_objects")
        expect(65, self.new_pool_of_another_engine())
        expect(75, self.pool)
        typed = self.folder / "typed.pool"
        made = subprocess.run([BUILD / "bin/cli_objects", typed], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.expect("convert", 64, typed, "new.pool")
        self.expect("convert", 66, typed, "new.pool", "--types", "/bin/true")
        if self.survives_the_machine(typed) and os.path.ismount("/dev/shm"):
            self.expect("convert", 69, typed, f"/dev/shm/{self.folder.name}.pool", "--types", BUILD / "bin/cli_objects")
        else:
            self.seen["convert"].add(69)
        expect(0, typed)
        expect(73, typed)
        self.end_check("convert")

    def new_pool_of_another_engine(self):
        path = self.folder / "b.pool"
        self.assertEqual(self.run_counter(pool=path).returncode, 0)
        return path

    def survives_the_machine(self, path):
        return json.loads(self.stillpoint("info", "--json", path).stdout)["durability"] == "power"

    def test_of_stats(self):
        expect = self.everywhere_the_same("stats")
        expect(0, self.pool)
        self.assertEqual(self.run_counter(pool=self.folder / "b.pool").returncode, 0)
        expect(69, self.folder / "b.pool")
        self.end_check("stats")

    def test_of_exporter(self):
        self.expect("exporter", 64)
        self.expect("exporter", 64, "--listen", "nowhere", self.pool)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.expect("exporter", 69, "--listen", f"127.0.0.1:{taken.getsockname()[1]}", self.pool)
        self.seen["exporter"].add(0)  # exporter_test.py ends one.
        self.end_check("exporter")

    def test_of_top(self):
        self.expect("top", 64)
        self.expect("top", 0, "--once", self.pool)
        self.end_check("top")

    def test_of_doctor(self):
        self.expect("doctor", 0, self.folder)
        self.expect("doctor", 64, "--no-such-flag")
        self.expect("doctor", 66, self.folder / "gone")
        self.expect("doctor", 69, "/proc")
        if os.geteuid() == 0 and shutil.which("setpriv"):
            self.folder.chmod(0o755)
            self.expect("doctor", 77, self.folder, before=NOBODY)
        self.end_check("doctor")

    def test_of_crashtest(self):
        self.expect("crashtest", 64, "--no-such-flag")
        self.expect("crashtest", 126, "--", "/")
        self.expect("crashtest", 127, "--", "./no-such-program")
        self.end_check("crashtest")


class TheTableByCommand(CommandLineTest):
    def test_names_the_codes_of_help_and_of_the_manual_page(self):
        for command, codes in documented().items():
            helped = self.stillpoint(command, "--help").stdout
            helped = helped[helped.index("Exit codes:") + len("Exit codes:"):helped.index("All of them:")]
            page = (ROOT / f"docs/man/stillpoint-{command}.1").read_text(encoding="utf8")
            page = page[page.index(".SH EXIT STATUS") + len(".SH EXIT STATUS"):page.index(".SH EXAMPLES")]
            self.assertEqual(codes_in(helped), codes, f"{command} --help")
            self.assertEqual(codes_in(page), codes, f"stillpoint-{command}(1)")

    def test_has_only_codes_that_are_explained(self):
        explained = {int(code) for code in re.findall(r"^\| (\d+) \| ", DOCUMENT, re.MULTILINE)}
        for command, codes in documented().items():
            self.assertLessEqual(codes, explained, command)


if __name__ == "__main__":
    unittest.main()
