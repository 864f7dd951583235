"""Programs that are services: a last checkpoint on SIGTERM, and systemd's notifications.

- SIGTERM ends a program as it would without Stillpoint; what it has done before is durable.
- A program's own handler, and SIG_IGN, keep their meaning; a child is ended as any.
- A section that does not end delays the end by 5 s at most, and the loss is told.
- systemd hears READY only after the recovery, also of a program that opens its pool late.
"""

import ctypes.util
import os
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

from command_line import COUNTER, SMALL, TOOL, CommandLineTest

SERVICE = Path(__file__).with_name("cli_service.py")


class Service(CommandLineTest):
    def start(self, *words, options=("--on-term", "checkpoint"), program=(sys.executable, "-B", SERVICE), **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_") and name != "NOTIFY_SOCKET"}
        words = [TOOL, "run", "--interval", "3600s", *options, "--pool", self.pool, *SMALL, "--", *program, *words]
        process = subprocess.Popen([os.fspath(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**clean, **environment})
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.kill()
        process.communicate()

    def told(self, process, last="counted"):
        lines = []
        while not lines or not lines[-1].startswith(last):
            line = process.stdout.readline()
            self.assertTrue(line, process.stderr.read() if process.poll() is not None else lines)
            lines.append(line.rstrip("\n"))
        return lines

    def term(self, process):
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
        return process.returncode, errors

    def found(self):
        process = self.start()
        first = self.told(process)[0]
        process.kill()
        return int(first.split()[1])


class LastCheckpoint(Service):
    def test_without_the_option_the_work_is_lost(self):
        process = self.start(options=())
        self.told(process)
        self.assertEqual(self.term(process)[0], -signal.SIGTERM)
        self.assertEqual(self.found(), 0)

    def test_with_it_the_work_is_durable_and_the_program_ends_by_the_signal(self):
        for run, word in enumerate(("", "default", "signal", "fork")):
            with self.subTest(word=word):
                process = self.start(word)
                lines = self.told(process)
                self.assertEqual(lines[:2], [f"found {run}", "handler True"])
                if word == "fork":
                    self.assertIn("child 15", lines)
                if word == "signal":
                    names = ("signal", "sysv_signal", "ssignal", "sigset")
                    self.assertEqual(lines[2:6], [f"{name} [None, None, 1, None]" for name in names])
                code, errors = self.term(process)
                self.assertEqual(code, -signal.SIGTERM, errors)
                self.assertRegex(errors, "SIGTERM: .*a.pool has everything up to epoch")
        self.assertEqual(self.found(), 4)

    def test_the_programs_own_handler_stays(self):
        process = self.start("own")
        self.told(process)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=30)
        self.assertEqual((process.returncode, output.strip()), (7, "own handler"), errors)

    def test_an_ignored_signal_stays_ignored(self):
        process = self.start("ignore")
        self.told(process)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        self.assertIsNone(process.poll())

    def test_a_section_that_does_not_end_delays_the_end_by_a_bounded_time(self):
        process = self.start("hold")
        self.told(process)
        code, errors = self.term(process)
        self.assertEqual(code, -signal.SIGTERM)
        self.assertIn("error: SIGTERM: no last checkpoint in 5 s", errors)
        self.assertEqual(self.found(), 0)

    def test_a_kill_during_the_last_checkpoint_is_a_crash_as_any(self):
        for run in range(5):
            process = self.start()
            self.told(process)
            process.send_signal(signal.SIGTERM)
            time.sleep(run / 1000)
            process.kill()
            process.communicate()
            self.assertEqual(self.stillpoint("check", self.pool).returncode, 0)


@unittest.skipIf(ctypes.util.find_library("systemd") is None, "libsystemd is not installed")
class Notifications(Service):
    def setUp(self):
        super().setUp()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.socket.close)
        self.socket.bind(f"\0stillpoint-test-{os.getpid()}-{id(self)}")
        self.socket.settimeout(20)
        self.address = "@" + self.socket.getsockname().decode()[1:]

    def states(self, until, process=None):
        """The lines of all notifications up to one that begins so."""
        lines = []
        while not any(line.startswith(until) for line in lines):
            lines += self.socket.recv(4096).decode().splitlines()
        return lines

    def hears_nothing(self):
        self.socket.setblocking(False)
        with self.assertRaises(BlockingIOError):
            self.socket.recv(4096)
        self.socket.settimeout(20)

    def test_ready_comes_with_the_pool_and_stopping_with_the_end(self):
        process = self.start(options=("--notify", "--on-term", "checkpoint"), NOTIFY_SOCKET=self.address)
        self.assertEqual(self.states("STATUS"), ["READY=1", "STATUS=pool: a new pool, epoch 0"])
        self.told(process)
        self.term(process)
        self.assertEqual(self.states("STOPPING")[0], "STOPPING=1")
        process = self.start(options=("--notify",), NOTIFY_SOCKET=self.address)
        states = []
        while "READY=1" not in states:
            states += self.socket.recv(4096).decode().splitlines()
        self.assertRegex(states[-1], r"^STATUS=pool: recovered after a crash, epoch \d+$")
        self.assertEqual(self.told(process)[0], "found 1")

    def test_a_normal_end_is_told(self):
        process = self.start("exit", "0", options=("--notify",), program=(COUNTER,), NOTIFY_SOCKET=self.address)
        self.assertEqual(process.wait(timeout=20), 0)
        self.assertEqual([line for line in self.states("STOPPING") if "=1" in line], ["READY=1", "STOPPING=1"])

    def test_a_refused_pool_is_never_ready(self):
        self.pool.write_bytes(b"no pool" * 4096)
        process = self.start("exit", "0", options=("--notify",), program=(COUNTER,), NOTIFY_SOCKET=self.address)
        self.assertEqual(process.wait(timeout=20), 65)
        self.hears_nothing()

    def test_without_the_option_nothing_is_told(self):
        process = self.start("exit", "0", options=(), program=(COUNTER,), NOTIFY_SOCKET=self.address)
        self.assertEqual(process.wait(timeout=20), 0)
        self.hears_nothing()


if __name__ == "__main__":
    unittest.main()
