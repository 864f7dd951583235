"""An installed Stillpoint can be found by pkg-config and by find_package, and its command finds its library."""

import os
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["STILLPOINT_BUILD"])
CMAKE = os.environ.get("CMAKE", "cmake")
CC = os.environ.get("CC", "cc")
SOURCE = Path(__file__).resolve().parents[2]

PROGRAM = """
#include <stdio.h>
#include <stillpoint/stillpoint.h>

int main(void)
{
    long *counter = sp_root("counter", sizeof *counter);
    if (counter == NULL) {
        return 2;
    }
    sp_fase_begin();
    ++*counter;
    sp_fase_end();
    printf("%ld %d\\n", *counter, (int)stillpoint_is_persistent(counter));
    return 0;
}
"""

TRANSACTIONS = """
#include <stdio.h>
#include <stillpoint/itm.h>
#include <stillpoint/stillpoint.h>

int main(int argc, char **argv)
{
    long *counter = argc == 2 && sp_open(argv[1], "engine=spht quiet durability=process pool_size_mb=4") == SP_OK
                        ? sp_root("counter", sizeof *counter) : NULL;
    if (counter == NULL) {
        fprintf(stderr, "%s\\n", sp_last_error());
        return 2;
    }
    __transaction_atomic { ++*counter; }
    printf("%ld\\n", *counter);
    return sp_tm_status();
}
"""

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(stillpoint 1.0 REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE stillpoint::stillpoint)
"""


def output_of(*command, **options):
    """Standard output; a failure shows what the command said."""
    done = subprocess.run(command, capture_output=True, check=False, timeout=600, **{"text": True, **options})
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=BUILD)
        cls.root = Path(cls.folder.name)
        cls.prefix = cls.root / "prefix"
        output_of(CMAKE, "--install", str(BUILD), "--prefix", str(cls.prefix))
        (cls.root / "consumer.c").write_text(PROGRAM)
        (cls.root / "CMakeLists.txt").write_text(PROJECT)
        cls.library = next(cls.prefix.rglob("libstillpoint.so")).parent

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_twice(self, program):
        """Runs under the installed command: the counter continues from run to run."""
        pool = self.root / f"{Path(program).name}.pool"
        for expected in ("1 1\n", "2 1\n"):
            got = output_of(str(self.prefix / "bin/stillpoint"), "run", "--quiet", "--durability", "process",
                            "--pool-size", "4M", "--pool", str(pool), "--", str(program),
                            env={**os.environ, "LD_LIBRARY_PATH": str(self.library)})
            self.assertEqual(got, expected)

    def test_a_program_is_built_through_pkg_config_and_survives_a_restart(self):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.library / "pkgconfig")}
        flags = output_of("pkg-config", "--cflags", "--libs", "stillpoint", env=environment)
        program = self.root / "by-pkg-config"
        output_of(CC, "-o", str(program), str(self.root / "consumer.c"), *shlex.split(flags))
        self.run_twice(program)

    def test_a_program_is_built_through_find_package_and_survives_a_restart(self):
        build = self.root / "consumer-build"
        output_of(CMAKE, "-G", "Ninja", "-S", str(self.root), "-B", str(build), f"-DCMAKE_PREFIX_PATH={self.prefix}",
                  f"-DCMAKE_C_COMPILER={CC}")
        output_of(CMAKE, "--build", str(build))
        self.run_twice(build / "consumer")

    @unittest.skipUnless(shutil.which("gcc") and list(BUILD.glob("lib/libstillpoint-itm.so")), "gcc is not installed")
    def test_a_program_of_transactional_memory_is_linked_through_pkg_config(self):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.library / "pkgconfig")}
        flags = output_of("pkg-config", "--cflags", "--libs", "stillpoint-itm", env=environment)
        program = self.root / "transactions"
        (self.root / "transactions.c").write_text(TRANSACTIONS)
        output_of("gcc", "-fgnu-tm", "-c", "-o", f"{program}.o", f"{program}.c", *shlex.split(flags))
        output_of("gcc", "-o", str(program), f"{program}.o", *shlex.split(flags))
        for expected in ("1\n", "2\n"):
            got = output_of(str(program), str(self.root / "transactions.pool"), env={**os.environ, "LD_LIBRARY_PATH": str(self.library)})
            self.assertEqual(got, expected)

    @unittest.skipUnless(list(BUILD.glob("lib/libstillpoint-nvhooks-*.so")) and shutil.which("clang-19"),
                         "no compiler plugin was built, or clang-19 is not installed")
    def test_the_installed_compilers_build_a_program_that_survives_a_restart(self):
        for compiler in ("stillpoint-cc", "stillpoint-c++"):
            link = self.prefix / "bin" / compiler
            self.assertEqual(os.readlink(link), "stillpoint")
            program = self.root / f"by-{compiler}"
            source = self.root / "consumer.cpp"
            source.write_text(PROGRAM.replace("long *counter = sp_root", "long *counter = (long *)sp_root"))
            output_of(str(link), "-O2", "-o", str(program), str(source if compiler == "stillpoint-c++" else self.root / "consumer.c"))
            self.run_twice(program)
        shown = output_of(str(self.prefix / "bin/stillpoint"), "cc", "--stillpoint-show", "a.c")
        self.assertNotIn(str(BUILD / "lib"), shown)
        self.assertIn(f"{self.prefix}/share/stillpoint/layers/pmthreads/layer.yaml", shown)

    def test_a_program_with_the_address_sanitizer_runs_on_the_installed_library(self):
        """Under `stillpoint run`, and with sp_open: by every compiler here that has the sanitizer."""
        source = self.root / "sanitized.c"
        source.write_text(PROGRAM.replace("int main(void)\n{", "int main(int argc, char **argv)\n{\n"
                                          "    if (argc > 1 && sp_open(argv[1], argv[2]) != SP_OK) {\n"
                                          "        fprintf(stderr, \"%s\\n\", sp_last_error());\n        return 3;\n    }"))
        ran = 0
        for compiler in (name for name in ("gcc", "clang-19") if shutil.which(name)):
            program = self.root / f"sanitized-{compiler}"
            built = subprocess.run([compiler, "-g", "-fsanitize=address", "-o", program, source, f"-I{self.prefix / 'include'}",
                                    f"-L{self.library}", "-lstillpoint", f"-Wl,-rpath,{self.library}"],
                                   capture_output=True, text=True, check=False, timeout=600)
            if built.returncode != 0:
                self.assertRegex(built.stderr, "asan", "only the sanitizer may be missing")
                continue
            self.run_twice(program)
            for expected in ("1 1\n", "2 1\n"):
                pool = self.root / f"{program.name}.open.pool"
                self.assertEqual(output_of(str(program), str(pool), "quiet durability=process pool_size_mb=4"), expected)
            ran += 1
        self.assertGreater(ran, 0, "no compiler here has the sanitizer")

    def test_headers_manual_pages_and_nothing_of_the_build_tree_are_installed(self):
        self.assertTrue((self.prefix / "include/stillpoint/stillpoint.h").is_file())
        self.assertTrue((self.prefix / "share/man/man1/stillpoint-run.1").is_file())
        for layer in (Path(__file__).parents[2] / "layers").glob("*/layer.yaml"):
            name = layer.parent.name
            folder = self.prefix / "share/stillpoint/layers" / name
            self.assertTrue((folder / f"{name}-hooks.h").is_file(), name)
            self.assertEqual((folder / "layer.yaml").read_text(), layer.read_text())
        for path in self.prefix.rglob("*"):
            if path.suffix in {".pc", ".cmake"}:
                self.assertNotIn(str(BUILD), path.read_text(), path)

    def test_uninstall_removes_what_was_installed_and_nothing_else(self):
        root = self.root / "staged"
        environment = {**os.environ, "DESTDIR": str(root)}
        uninstall = (CMAKE, "-DPREFIX=/opt/sp", "-P", str(SOURCE / "cmake/Uninstall.cmake"))
        output_of(CMAKE, "--install", str(BUILD), "--prefix", "/opt/sp", env=environment)
        mine = root / "opt/sp/share/man/man1/mine.1"
        mine.write_text("a page of another program")
        output_of(*uninstall, env=environment)
        self.assertEqual([path for path in root.rglob("*") if not path.is_dir()], [mine])
        self.assertFalse(list(root.rglob("*stillpoint*")))
        again = subprocess.run(uninstall, env=environment, capture_output=True, text=True, check=False)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("is not installed", " ".join(again.stderr.split()))

    def test_a_list_that_leads_out_of_the_prefix_is_refused(self):
        prefix = self.root / "forged"
        (prefix / "share/stillpoint").mkdir(parents=True)
        (self.root / "precious").write_text("")
        (prefix / "share/stillpoint/installed-files.txt").write_text("share/../../precious\n")
        done = subprocess.run([CMAKE, f"-DPREFIX={prefix}", "-P", str(SOURCE / "cmake/Uninstall.cmake")], capture_output=True, text=True,
                              check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue((self.root / "precious").exists())


if __name__ == "__main__":
    unittest.main()
