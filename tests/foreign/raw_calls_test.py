"""Programs with code of Go, whose runtime makes system calls and takes locks without the C library: a pool works, and what is limited
is said once. The program here is one of C that carries the note of Go's linker and ends as Go does."""

import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from command_line import BUILD, ROOT, SMALL, TOOL, CommandLineTest  # noqa: E402  (the path comes first)

PROGRAM = """
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "stillpoint/stillpoint.h"

#ifdef AS_OF_GO
__asm__(".pushsection .note.go.buildid, \\"a\\", %note\\n"
        ".long 4, 8, 4\\n .ascii \\"Go\\\\0\\\\0\\" \\n .ascii \\"build-id\\" \\n .popsection");
#endif

int main(int argc, char **argv)
{
    sp_fase_begin();
    int *count = sp_root("count", sizeof *count);
    printf("count %d\\n", ++*count);
    sp_fase_end();
    fflush(stdout);
    if (argc > 1 && argv[1][0] == 'c') {
        sp_checkpoint();
    }
    getchar();
    return (int)syscall(SYS_exit_group, 0);
}
"""


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class Go(CommandLineTest):
    def build(self, name, *flags):
        (self.folder / "program.c").write_text(PROGRAM)
        subprocess.run(["cc", *flags, f"-I{ROOT / 'include'}", "program.c", "-o", name, f"-L{BUILD / 'lib'}", "-lstillpoint",
                        f"-Wl,-rpath,{BUILD / 'lib'}"], cwd=self.folder, check=True)
        return self.folder / name

    def start(self, *words):
        """The messages of the program, and the figures while it ran."""
        with subprocess.Popen([str(word) for word in (TOOL, "run", "--pool", self.pool, *SMALL, "--interval", "1h", "--", *words)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            said = process.stdout.readline()
            figures = json.loads(self.stillpoint("stats", "--json", self.pool).stdout)
            _, told = process.communicate("\n", timeout=60)
        return said, figures, told

    def test_a_program_of_go_is_told_once_and_runs(self):
        program = self.build("program", "-DAS_OF_GO")
        said, figures, told = self.start(program, "checkpoint")
        self.assertEqual((said, figures["go_modules"]), ("count 1\n", 1), told)
        self.assertEqual(told.count("has code of Go"), 1, told)
        self.assertEqual(self.start(program, "checkpoint")[0], "count 2\n")

    def test_its_end_is_a_crash(self):
        program = self.build("program", "-DAS_OF_GO")
        for count in ("count 1\n", "count 1\n"):
            self.assertEqual(self.start(program)[0], count)

    def test_a_program_without_it_is_told_nothing(self):
        said, figures, told = self.start(self.build("program"))
        self.assertEqual((said, figures["go_modules"]), ("count 1\n", 0), told)
        self.assertNotIn("Go", told)


if __name__ == "__main__":
    unittest.main()
