"""libstillpoint.so as programs meet it: what it exports, preloaded and linked, with and without a pool."""

import os
import re
import subprocess
import tempfile
import unittest

BUILD = os.environ["STILLPOINT_BUILD"]
SOURCE = os.environ["STILLPOINT_SOURCE"]
LIBRARY = os.path.join(BUILD, "lib", "libstillpoint.so")
PRELOADED_OUTPUT = f"{4 * 20000} 0 1 1 7 8\n"


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}
    return {**clean, **more}


def declared_api():
    names = set()
    for header in ("stillpoint.h", "nvthreads.h", "nvhooks.h", "respct.h", "pronto.h", "spht.h", "breeze.h", "error.h"):
        with open(os.path.join(SOURCE, "include", "stillpoint", header), encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
        text = re.sub(r"^#.*?(?<!\\)\n", "", text, flags=re.DOTALL | re.MULTILINE)
        text = re.sub(r"static inline[^\n]*}\n|static inline.*?\n}", "", text, flags=re.DOTALL)
        names |= set(re.findall(r"^[\w ]*?[ *]+(\w+)\([^;{]*\);", text, flags=re.MULTILINE))
        names |= set(re.findall(r"^extern (?:__attribute__\(\(.*?\)\) )?(?:__thread )?\w+ (\w+);", text, flags=re.MULTILINE))
    return names


def intercepted():
    with open(os.path.join(SOURCE, "src", "interpose", "intercepted.inc"), encoding="utf-8") as file:
        return set(re.findall(r"^INTERCEPTED\((\w+),", file.read(), flags=re.MULTILINE))


class Library(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.pool = os.path.join(self.folder.name, "test.pool")

    def program(self, name):
        return os.path.join(BUILD, "bin", name)

    def test_exports_what_the_headers_declare_and_the_list_of_names_and_nothing_else(self):
        listing = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True, text=True)
        exported = {line.split()[-1].split("@")[0] for line in listing.stdout.splitlines()}
        self.assertEqual(exported - {"STILLPOINT_1"}, declared_api() | intercepted())  # The version is a symbol, too.

    def test_leaves_an_ordinary_program_as_it_is_without_a_pool(self):
        run = subprocess.run([self.program("interpose_preloaded")], env=environment(LD_PRELOAD=LIBRARY),
                             capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual((run.stdout, run.stderr, run.returncode), (PRELOADED_OUTPUT, "", 0))

    def test_leaves_an_ordinary_program_as_it_is_with_a_pool(self):
        for tracker in ("auto", "mprotect"):
            run = subprocess.run(
                [self.program("interpose_preloaded")],
                env=environment(LD_PRELOAD=LIBRARY, STILLPOINT_POOL=self.pool, STILLPOINT_DURABILITY="process",
                                STILLPOINT_INTERVAL_MS="1", STILLPOINT_QUIET="1", STILLPOINT_TRACKER=tracker,
                                STILLPOINT_OPEN="start"),
                capture_output=True, text=True, timeout=600, check=False)
            self.assertEqual((run.stdout, run.stderr, run.returncode), (PRELOADED_OUTPUT, "", 0))

    def test_locks_in_durable_memory_are_usable_after_a_kill_with_waiters_in_them(self):
        settings = environment(STILLPOINT_POOL=self.pool, STILLPOINT_DURABILITY="process",
                               STILLPOINT_INTERVAL_MS="5", STILLPOINT_QUIET="1")
        with subprocess.Popen([self.program("interpose_program"), "start"], env=settings,
                              stdout=subprocess.PIPE, text=True) as first:
            self.assertEqual(first.stdout.readline(), "waiting 0\n")
            first.kill()
            first.wait()
        second = subprocess.run([self.program("interpose_program"), "again"], env=settings,
                                capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual((second.stdout, second.stderr), ("usable 8\n", ""))
        self.assertEqual(second.returncode, 0)


if __name__ == "__main__":
    unittest.main()
