"""Packages for Debian: made from the build tree, without a complaint of lintian, installed into a root of their own, used, and removed."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from install_test import BUILD, CC, PROGRAM, output_of

CPACK = Path(os.environ.get("CMAKE", shutil.which("cmake") or "cmake")).with_name("cpack")
ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ("libstillpoint1", "libstillpoint-dev", "stillpoint")


@unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("dpkg-shlibdeps"), "dpkg-dev is not installed")
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(dir=BUILD)
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        made = cls.folder / "made"
        output_of(str(CPACK), "-G", "DEB", "--config", str(BUILD / "CPackConfig.cmake"), "-B", str(made))
        cls.debs = {path.name.split("_")[0]: path for path in made.glob("*.deb")}
        cls.root = cls.folder / "root"
        for part in ("info", "updates"):
            (cls.root / "var/lib/dpkg" / part).mkdir(parents=True)
        for file in ("status", "available"):
            (cls.root / "var/lib/dpkg" / file).touch()

    def dpkg(self, *words):
        """On the root: what the packages need of the machine is not there, and is not looked for."""
        as_root = [] if os.geteuid() == 0 else ["fakeroot"]
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        return output_of(*as_root, "dpkg", f"--root={self.root}", "--force-depends,not-root", "--log=/dev/null", *map(str, words),
                         env={**os.environ, "PATH": path})

    def files(self):
        return {path.relative_to(self.root) for path in self.root.rglob("*") if not path.is_dir() or path.is_symlink()} - {
            path for path in (one.relative_to(self.root) for one in (self.root / "var").rglob("*"))}

    def test_every_part_has_a_package_that_says_what_it_needs(self):
        self.assertLessEqual(set(LIBRARIES), set(self.debs))
        if list(BUILD.glob("lib/libstillpoint-nvhooks-*.so")):
            self.assertTrue(any(name.startswith("stillpoint-clang-") for name in self.debs), self.debs)
        fields = {name: output_of("dpkg-deb", "--field", str(deb)) for name, deb in self.debs.items()}
        self.assertRegex(fields["libstillpoint1"], r"Depends: .*\blibc6 \(>= ")
        version = re.search(r"^Version: (.*)$", fields["stillpoint"], re.MULTILINE).group(1)
        self.assertIn(f"libstillpoint1 (= {version})", fields["stillpoint"])
        self.assertIn(f"libstillpoint1 (= {version})", fields["libstillpoint-dev"])
        self.assertIn("libstillpoint 1 libstillpoint1 (>= ", output_of("dpkg-deb", "--info", str(self.debs["libstillpoint1"]), "shlibs"))

    def test_no_file_is_in_two_packages_and_none_of_the_build_tree_or_the_bench(self):
        seen = {}
        for name, deb in self.debs.items():
            for line in output_of("dpkg-deb", "--contents", str(deb)).splitlines():
                path = line.split(None, 5)[5].split(" -> ")[0]
                self.assertNotRegex(path, r"/bench/|bench_|installed-files|/build/")
                if not path.endswith("/"):
                    self.assertNotIn(path, seen, f"{name} and {seen.get(path)}")
                    seen[path] = name

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed")
    def test_lintian_has_no_complaint(self):
        words = ["lintian", "--allow-root", "--fail-on", "error,warning", *map(str, self.debs.values())]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        found = [line for line in done.stdout.splitlines() if line.startswith(("E:", "W:"))]
        self.assertEqual((found, done.returncode), ([], 0), done.stdout + done.stderr)

    def test_installed_used_and_removed(self):
        before = self.files()
        self.dpkg("--install", *self.debs.values())
        usr = self.root / "usr"
        self.assertTrue((usr / "share/bash-completion/completions/stillpoint").is_file())
        source, program, pool = self.folder / "consumer.c", self.folder / "consumer", self.folder / "consumer.pool"
        source.write_text(PROGRAM)
        environment = {**os.environ, "PKG_CONFIG_PATH": str(usr / "lib/pkgconfig")}
        flags = output_of("pkg-config", "--cflags", "--libs", "stillpoint", env=environment)
        self.assertIn(str(usr), flags)
        output_of(CC, "-o", str(program), str(source), *shlex.split(flags))
        for expected in ("1 1\n", "2 1\n"):
            got = output_of(str(usr / "bin/stillpoint"), "run", "--quiet", "--durability", "process", "--pool-size", "4M",
                            "--pool", str(pool), "--", str(program), env={**os.environ, "LD_LIBRARY_PATH": str(usr / "lib")})
            self.assertEqual(got, expected)
        self.assertIn("sound", output_of(str(usr / "bin/stillpoint"), "check", str(pool)))
        if (usr / "bin/stillpoint-cc").exists() and shutil.which("clang-19"):
            output_of(str(usr / "bin/stillpoint-cc"), "-O2", "-o", str(program), str(source))
        self.dpkg("--purge", *self.debs)
        self.assertEqual(self.files(), before)

    def test_the_durable_memcached_runs_where_it_was_built(self):
        if "stillpoint-memcached" not in self.debs:
            self.skipTest("integrations/memcached/build.py has not run")
        for name in ("libstillpoint1", "stillpoint-memcached"):
            output_of("dpkg-deb", "--extract", str(self.debs[name]), str(self.folder / "extracted"))
        usr = self.folder / "extracted/usr"
        told = output_of(str(usr / "bin/memcached-durable"), "--version", env={**os.environ, "LD_LIBRARY_PATH": str(usr / "lib")})
        self.assertIn("memcached 1.6", told)


class Recipe(unittest.TestCase):
    """The container's recipe, as far as it can be checked without a network."""

    def test_it_names_packages_and_files_that_there_are(self):
        text = (ROOT / "packaging/Containerfile").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^FROM (\S+)", text, re.MULTILINE), ["docker.io/library/debian:bookworm-slim"] * 2)
        names = (ROOT / "cmake/Packages.cmake").read_text(encoding="utf-8")
        for name in re.findall(r"/packages/([a-z0-9-]+)_\*", text):
            self.assertIn(f"NAME {name} ", names)
        self.assertIn("make packages", text)
        self.assertRegex((ROOT / "Makefile").read_text(encoding="utf-8"), r"(?m)^packages: build$")


if __name__ == "__main__":
    unittest.main()
