"""A program that gets the library for another library, after the C library: its locks are not seen, so a pool is refused with what to do.
Without a pool it runs, and under `stillpoint run` it is durable."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from command_line import BUILD, ROOT, SMALL, CommandLineTest  # noqa: E402  (the path comes first)

LIBRARY = """
#include <stdio.h>
#include "stillpoint/stillpoint.h"
int use(const char *pool)
{
    if (pool != NULL && sp_open(pool, "quiet=1 durability=process pool_size_mb=4 pool_max_mb=64") != SP_OK) {
        printf("refused: %s\\n", sp_last_error());
        return 3;
    }
    sp_fase_begin();
    int *count = sp_root("count", sizeof *count);
    ++*count;
    sp_fase_end();
    printf("count %d\\n", *count);
    return 0;
}
"""
PROGRAM = """
int use(const char *pool);
int main(int argc, char **argv) { return use(argc > 1 ? argv[1] : 0); }
"""


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class LateLibrary(CommandLineTest):
    def setUp(self):
        super().setUp()
        (self.folder / "library.c").write_text(LIBRARY)
        (self.folder / "program.c").write_text(PROGRAM)
        self.program = self.folder / "program"
        for words in (("-shared", "-fPIC", f"-I{ROOT / 'include'}", "library.c", "-o", "libuser.so", f"-L{BUILD / 'lib'}", "-lstillpoint",
                       f"-Wl,-rpath,{BUILD / 'lib'}"),
                      ("program.c", "-o", "program", "-L.", "-luser", f"-Wl,-rpath,{self.folder}", f"-Wl,-rpath-link,{BUILD / 'lib'}")):
            subprocess.run(["cc", *words], cwd=self.folder, check=True)

    def test_a_pool_is_refused_with_what_to_do(self):
        done = self.stillpoint(self.pool, tool=self.program)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "refused: .*after the C library.*stillpoint run")
        self.assertFalse(self.pool.exists())

    def test_a_program_that_runs_can_load_it(self):
        """The loader has little room for thread-local storage of a library that comes late."""
        load = f"import ctypes; print(ctypes.CDLL({str(BUILD / 'lib/libstillpoint.so')!r}).sp_pool_default())"
        done = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "0\n", ""))

    def test_a_pool_is_refused_where_dlopen_brings_it(self):
        """The C library is then the next one as well, and still the one whose locks the program takes."""
        opens = (f"import ctypes; library = ctypes.CDLL({str(BUILD / 'lib/libstillpoint.so')!r}, mode=getattr(ctypes, 'RTLD_' + __mode));"
                 "library.sp_last_error.restype = ctypes.c_char_p;"
                 f"print(library.sp_open({str(self.pool).encode()!r}, b'quiet=1 durability=process'), library.sp_last_error().decode())")
        for python in filter(os.path.exists, {sys.executable, "/usr/bin/python3"}):
            for mode in ("LOCAL", "GLOBAL"):
                with self.subTest(python=python, mode=mode):
                    done = subprocess.run([python, "-c", opens.replace("__mode", repr(mode))], capture_output=True, text=True, check=False)
                    self.assertRegex(done.stdout, "^18 .*after the C library.*stillpoint run", done.stderr)
                    self.assertFalse(self.pool.exists())

    def test_without_a_pool_it_runs(self):
        done = self.stillpoint(tool=self.program)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "count 1\n", ""))

    def test_under_run_it_is_durable(self):
        for count in (1, 2):
            done = self.stillpoint("run", "--quiet", "--pool", self.pool, *SMALL, "--", self.program)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"count {count}\n", ""))


if __name__ == "__main__":
    unittest.main()
