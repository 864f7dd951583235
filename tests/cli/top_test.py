"""`stillpoint top`: a table where there is no terminal; on a terminal it redraws, and gives the terminal back however it ends."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from command_line import COUNTER, SMALL, TOOL, CommandLineTest

LEAVE = b"\x1b[?25h\x1b[?1049l"


class Top(CommandLineTest):
    def setUp(self):
        super().setUp()
        words = [TOOL, "run", "--quiet", "--pool", self.pool, *SMALL, "--", COUNTER, "wait"]
        self.holder = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, self.holder)
        self.assertEqual([self.holder.stdout.readline() for _ in range(2)][1], "ready\n")

    def end(self, process):
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()

    def test_once_prints_a_line_for_each_pool(self):
        done = self.stillpoint("top", "--once", self.pool, self.folder / "gone.pool")
        self.assertEqual(done.returncode, 0, done.stderr)
        head, first, second = done.stdout.splitlines()
        self.assertTrue(head.startswith("pool "))
        self.assertRegex(first, rf"a\.pool +cli_counter +{self.holder.pid} +pmthreads +\d+ ")
        self.assertIn("no such file", second)
        self.assertNotIn("\x1b", done.stdout)

    def test_without_a_terminal_table_follows_table(self):
        words = [str(word) for word in (TOOL, "top", "--every", "0.05", self.pool)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        lines = [process.stdout.readline() for _ in range(7)]
        self.assertEqual(sum(line.startswith("pool ") for line in lines), 3, lines)

    def on_a_terminal(self, end, exit_code):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
        before = termios.tcgetattr(theirs)
        process = subprocess.Popen([str(word) for word in (TOOL, "top", "--every", "0.05", self.pool)], stdin=theirs, stdout=theirs,
                                   stderr=theirs, env={**os.environ, "TERM": "xterm"}, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        seen, deadline = b"", time.monotonic() + 20
        while time.monotonic() < deadline and process.poll() is None:
            if select.select([ours], [], [], 0.1)[0]:
                seen += os.read(ours, 4096)
            if seen.count(b"\x1b[H") == 3 and end:
                end(process, ours)
                end = None
        self.assertEqual(process.wait(timeout=20), exit_code)
        while select.select([ours], [], [], 0.1)[0]:
            seen += os.read(ours, 4096)
        self.assertTrue(seen.endswith(LEAVE), seen[-60:])
        self.assertEqual(termios.tcgetattr(theirs), before)
        for line in re.split(rb"\r\n|\x1b\[[?0-9]*[A-Za-z]", seen):
            self.assertLessEqual(len(line), 40, line)
        os.close(ours)
        os.close(theirs)

    def test_q_gives_the_terminal_back(self):
        self.on_a_terminal(lambda process, terminal: os.write(terminal, b"q"), 0)

    def test_control_c_gives_the_terminal_back(self):
        self.on_a_terminal(lambda process, terminal: os.write(terminal, b"\x03"), 0)

    def test_sigterm_gives_the_terminal_back(self):
        self.on_a_terminal(lambda process, terminal: process.send_signal(signal.SIGTERM), 0)

    def test_a_full_disk_is_told(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "top", self.pool], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=20)
        self.assertEqual(done.returncode, 74, done.stderr)


if __name__ == "__main__":
    unittest.main()
