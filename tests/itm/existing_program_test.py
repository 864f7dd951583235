"""A program of transactional memory becomes durable by linking: with libstillpoint-itm, or by preloading it where libitm was linked."""

import os
import random
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["STILLPOINT_BUILD"])
LIBRARY = BUILD / "lib" / "libstillpoint-itm.so"
DURABLE = BUILD / "bin" / "itm_existing_program"
WITH_LIBITM = BUILD / "bin" / "itm_existing_program_libitm"
THREADS = 3
DOCTOR = subprocess.run([BUILD / "bin" / "stillpoint", "doctor"], capture_output=True, text=True, check=False).stdout
# Without it, stores of functions that the compiler has not instrumented are lost, and the program says so.
RELAXED = ["relaxed"] if re.search(r"userfaultfd WP_ASYNC +yes", DOCTOR) else []


class ExistingProgram(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(dir=BUILD)
        self.addCleanup(self.temporary.cleanup)
        self.pool = Path(self.temporary.name) / "existing.pool"
        self.random = random.Random(7)

    def killed_run(self, program, **environment):
        """The output until it was killed: by thread the operations at the start, and the last that it told of."""
        running = subprocess.Popen([program, self.pool, str(THREADS), "1000000000", *RELAXED], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment})
        try:
            output, _ = running.communicate(timeout=self.random.uniform(0.1, 0.3))
            self.fail(f"ended by itself: {output}")
        except subprocess.TimeoutExpired:
            running.kill()
            output, _ = running.communicate()
        self.assertNotIn("BROKEN", output)
        start = {int(thread): int(done) for thread, done in re.findall(r"^start (\d+) (\d+)\n", output, re.MULTILINE)}
        last = {int(thread): int(done) for thread, done in re.findall(r"^(\d+) (\d+)\n", output, re.MULTILINE)}
        return start, last

    def check_durable(self, program, **environment):
        told = {}
        for _ in range(12):
            start, last = self.killed_run(program, **environment)
            for thread, done in start.items():
                self.assertGreaterEqual(done, told.get(thread, 0), f"thread {thread}")
            told.update(last)
        self.assertGreater(sum(told.values()), 100)
        done = subprocess.run([program, self.pool, str(THREADS), "1"], capture_output=True, text=True, check=True,
                              env={**os.environ, **environment})
        self.assertNotIn("BROKEN", done.stdout)
        self.assertIn("done\n", done.stdout)

    def test_it_is_durable_when_it_is_linked_with_the_library(self):
        self.check_durable(DURABLE)

    @unittest.skipUnless(WITH_LIBITM.exists(), "libitm is not installed")
    def test_it_is_not_with_libitm(self):
        # On a busy machine a run may be killed before it has begun.
        self.assertTrue(any(sum(last.values()) for _, last in (self.killed_run(WITH_LIBITM) for _ in range(20))))
        start = next((start for start, _ in (self.killed_run(WITH_LIBITM) for _ in range(20)) if start), {})
        self.assertEqual(set(start.values()), {0})

    @unittest.skipUnless(WITH_LIBITM.exists(), "libitm is not installed")
    def test_it_is_durable_with_libitm_too_where_the_library_is_preloaded(self):
        self.check_durable(WITH_LIBITM, LD_PRELOAD=str(LIBRARY))

    @unittest.skipUnless(WITH_LIBITM.exists(), "libitm is not installed")
    def test_the_library_has_every_function_of_libitm(self):
        def functions_of(library):
            listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
            return {name.split("@")[0] for kind, name in re.findall(r" ([TW]) (\S+)", listed)}

        linked = subprocess.run(["ldd", WITH_LIBITM], capture_output=True, text=True, check=True).stdout
        libitm = re.search(r"libitm\S* => (\S+)", linked).group(1)
        wanted = functions_of(libitm)
        self.assertGreater(len(wanted), 150)
        self.assertEqual(wanted - functions_of(LIBRARY), set())


if __name__ == "__main__":
    unittest.main()
