"""Programs that `stillpoint run` cannot make durable: refused with the reason, 126 or 127, before a pool is made."""

import os
import re
import shutil
import stat
import struct
import subprocess
import unittest

from command_line import BUILD, COUNTER, ROOT, TOOL, CommandLineTest


class RunRefuses(CommandLineTest):
    def assert_program_refused(self, program, exit_code, *messages):
        self.assert_refused(self.stillpoint("run", "--pool", self.pool, "--", program), exit_code, *messages)
        self.assertFalse(self.pool.exists(), "a pool was made for a program that cannot run")

    def copy_of_counter(self):
        return shutil.copy(COUNTER, self.folder / "program")

    def test_a_statically_linked_program(self):
        self.assert_program_refused(BUILD / "bin/cli_static", 126, "statically linked", "without -static")

    def test_a_static_position_independent_program(self):
        self.assert_program_refused(BUILD / "bin/cli_static_pie", 126, "statically linked")

    def test_a_set_uid_and_a_set_gid_program(self):
        program = self.copy_of_counter()
        os.chmod(program, 0o4755)
        self.assert_program_refused(program, 126, "set-uid", "chmod u-s")
        os.chmod(program, 0o2755)
        self.assert_program_refused(program, 126, "set-gid")

    def test_a_program_with_file_capabilities(self):
        program = self.copy_of_counter()
        # A version 2 capability set, permitted: CAP_NET_BIND_SERVICE (10).
        value = struct.pack("<5I", 0x02000000, 1 << 10, 0, 0, 0)
        try:
            os.setxattr(program, "security.capability", value)
        except OSError as error:
            self.skipTest(f"capabilities cannot be set here: {error}")
        self.assert_program_refused(program, 126, "file capabilities", "setcap -r")

    def test_a_program_of_another_architecture_and_of_32_bits(self):
        program = self.copy_of_counter()
        with open(program, "r+b") as file:
            file.seek(18)
            file.write(struct.pack("<H", 243))  # RISC-V
        self.assert_program_refused(program, 126, "another architecture", "machine 243")
        with open(program, "r+b") as file:
            file.seek(4)
            file.write(b"\x01")
        self.assert_program_refused(program, 126, "32-bit")

    def test_a_program_that_is_missing_a_folder_or_not_executable(self):
        self.assert_program_refused("no-such-program", 127, "no such program in PATH")
        self.assert_program_refused("./no-such-program", 127, "No such file")
        self.assert_program_refused("/", 126, "a folder")
        plain = self.folder / "plain"
        plain.write_text("text")
        self.assert_program_refused(plain, 126, "chmod")
        plain.chmod(0o755)
        self.assert_program_refused(plain, 126, "neither an ELF program nor a script")

    def test_a_program_in_this_folder_that_is_named_without_a_slash(self):
        self.copy_of_counter()
        self.assert_program_refused("program", 127, r"say \./program")

    def test_a_truncated_program(self):
        program = self.folder / "program"
        program.write_bytes(COUNTER.read_bytes()[:70])
        program.chmod(0o755)
        self.assert_program_refused(program, 126, "statically linked|ELF")

    def test_a_script_whose_interpreter_cannot_be_run(self):
        script = self.folder / "script"
        script.write_text(f"#!{BUILD / 'bin/cli_static'}\n")
        script.chmod(0o755)
        self.assert_program_refused(script, 126, "statically linked")
        script.write_text("#!/no/such/interpreter -x\n")
        self.assert_program_refused(script, 126, "/no/such/interpreter")

    def test_a_run_inside_a_run(self):
        self.assert_program_refused(TOOL, 64, "nested `stillpoint run`")
        done = self.stillpoint("run", "--quiet", "--pool", self.pool, "--durability", "process", "--", COUNTER, "child", TOOL,
                               "run", "--pool", self.folder / "b.pool", "--", COUNTER)
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("nested `stillpoint run`", done.stderr)
        self.assertFalse((self.folder / "b.pool").exists())

    def test_usage_that_makes_no_sense(self):
        for arguments, message in (
                (("run",), "which program"), (("run", "--"), "which program"),
                (("run", "--tracer", "x", "--", COUNTER), "no option --tracer"),
                (("run", "--tracker", "magic", "--", COUNTER), "auto.*uffd.*mprotect"),
                (("run", "--interval", "2h", "--", COUNTER), "between 0 and"),
                (("run", "--interval", "2 parsecs", "--", COUNTER), "interval"),
                (("run", "--pool", "", "--", COUNTER), "empty"),
                (("run", "--pool-size", "2G", "--pool-max", "1G", "--", COUNTER), "pool_max_mb|pool_size_mb"),
                ((), "subcommand"), (("explode",), "explode|subcommand"), (("info",), "POOL")):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.stillpoint(*arguments), 64, message)

    def test_a_bad_value_in_the_environment(self):
        done = self.stillpoint("run", "--pool", self.pool, "--", COUNTER, STILLPOINT_INTERVAL_MS="soon")
        self.assert_refused(done, 64, "STILLPOINT_INTERVAL_MS")

    def test_a_library_that_is_missing_or_lies_where_the_loader_cannot_take_it(self):
        lonely = self.folder / "bin"
        lonely.mkdir()
        shutil.copy(TOOL, lonely)
        done = self.stillpoint("run", "--pool", self.pool, "--", COUNTER, tool=lonely / "stillpoint")
        self.assert_refused(done, 69, "libstillpoint.so.1 is missing")
        self.copy_installation("a:b")
        done = self.stillpoint("run", "--pool", self.pool, "--", COUNTER, tool=self.folder / "a:b/bin/stillpoint")
        self.assert_refused(done, 69, "':'")

    def copy_installation(self, name):
        for part, file in (("bin", TOOL), ("lib", BUILD / "lib/libstillpoint.so.1")):
            (self.folder / name / part).mkdir(parents=True)
            shutil.copy(file, self.folder / name / part)

    def test_but_not_an_installation_whose_path_has_a_space(self):
        self.copy_installation("a b")
        done = self.stillpoint("run", "--quiet", "--durability", "process", "--pool", self.pool, "--", COUNTER, "exit", "5",
                               tool=self.folder / "a b/bin/stillpoint")
        self.assertEqual((done.returncode, done.stdout), (5, "run 1 start 1\n"), done.stderr)


class ExitCodes(CommandLineTest):
    def test_equal_their_document(self):
        header = (ROOT / "include/stillpoint/error.h").read_text()
        document = (ROOT / "docs/guide/exit-codes.md").read_text()
        documented = {name: int(code) for names, code in re.findall(r"^\| (`SP_E.*`) \| (\d+) \|$", document, re.MULTILINE)
                      for name in re.findall(r"SP_E_\w+", names)}
        names = {value: name for name, value in re.findall(r"(SP_\w+) = (\d+)", header)}
        for line in self.stillpoint("tables", "exit-codes").stdout.splitlines():
            value, code = line.split()
            if names.pop(value) != "SP_OK":
                name = dict((v, n) for n, v in re.findall(r"(SP_\w+) = (\d+)", header))[value]
                self.assertEqual(int(code), documented.get(name, 70), name)
        self.assertEqual(names, {}, "error values that the table of exit codes does not have")


class EveryHelp(CommandLineTest):
    def test_names_examples_and_exit_codes(self):
        for command in ((), ("run",), ("standby",), ("info",), ("check",), ("copy",), ("restore",), ("doctor",), ("stats",),
                        ("crashtest",)):
            with self.subTest(command=command):
                done = self.stillpoint(*command, "--help")
                self.assertEqual(done.returncode, 0)
                self.assertIn("Examples:\n  stillpoint ", done.stdout)
                self.assertIn("Exit codes:\n  ", done.stdout)

    def test_agrees_with_the_manual_page_on_every_flag_in_both_directions(self):
        for command in ("run", "info", "check", "copy", "restore", "doctor", "stats", "crashtest"):
            page = (ROOT / f"docs/man/stillpoint-{command}.1").read_text().replace("\\-", "-")
            options = page[page.index(".SH OPTIONS"):page.index(".SH EXIT STATUS")]
            helped = self.stillpoint(command, "--help").stdout
            helped = helped[helped.index("Options:"):helped.index("Examples:")]
            in_page = set(re.findall(r"--[a-z][a-z-]*", options))
            in_help = set(re.findall(r"^\s+.*?(--[a-z-]+(?:,--[a-z-]+)*)", helped, re.MULTILINE))
            in_help = {flag for flags in in_help for flag in flags.split(",")}
            self.assertEqual(in_page, in_help, command)

    def test_version_is_printed(self):
        self.assertRegex(self.stillpoint("--version").stdout, r"^stillpoint \d+\.\d+\.\d+\n$")


class Run(CommandLineTest):
    def test_becomes_the_program_so_that_code_signal_and_output_are_its_own(self):
        done = self.run_counter("exit", "42")
        self.assertEqual((done.returncode, done.stdout), (42, "run 1 start 1\n"), done.stderr)
        self.assertEqual(stat.S_IMODE(self.pool.stat().st_mode), 0o600)
        done = self.run_counter("kill")
        self.assertEqual((done.returncode, done.stdout), (-9, "run 2 start 2\n"), done.stderr)
        done = self.run_counter("exit", "0")
        self.assertEqual((done.returncode, done.stdout), (0, "run 3 start 3\n"), done.stderr)

    def test_keeps_the_pool_through_exec_but_not_in_commands_that_are_started(self):
        done = self.run_counter("exec", COUNTER, "exit", "7")
        self.assertEqual((done.returncode, done.stdout), (7, "run 1 start 1\nrun 2 start 2\n"), done.stderr)
        done = self.run_counter("child", "/bin/sh", "-c", "echo child; exit 9")
        self.assertEqual((done.returncode, done.stdout), (9, "run 3 start 2\nchild\n"), done.stderr)

    def test_follows_a_script_to_its_interpreter(self):
        script = self.folder / "script"
        script.write_text(f"#!/bin/sh\nexec {COUNTER} exit 4\n")
        script.chmod(0o755)
        done = self.stillpoint("run", "--quiet", "--pool", self.pool, "--durability", "process", "--", script)
        # The shell leaves the pool to the program that replaces it.
        self.assertEqual((done.returncode, done.stdout), (4, "run 1 start 1\n"), done.stderr)

    def test_without_a_pool_warns_that_nothing_will_survive(self):
        done = self.stillpoint("run", "--", COUNTER)
        self.assertEqual((done.returncode, done.stdout), (0, "run 1 start 0\n"), done.stderr)
        self.assertIn("warning: no --pool is named", done.stderr)

    def test_takes_the_pool_from_the_environment_and_lets_the_flag_win(self):
        other = self.folder / "b.pool"
        done = self.stillpoint("run", "--quiet", "--pool", other, "--", COUNTER, STILLPOINT_POOL=str(self.pool),
                               STILLPOINT_DURABILITY="process")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.pool.exists(), other.exists()), (False, True))

    def test_reports_a_program_that_ends_by_a_signal_to_its_shell(self):
        done = subprocess.run(["/bin/sh", "-c", f"'{TOOL}' run -q --durability process --pool '{self.pool}' -- '{COUNTER}' kill; "
                               "echo code $?"], capture_output=True, text=True, check=False, timeout=600)
        self.assertIn("code 137", done.stdout)


if __name__ == "__main__":
    unittest.main()
