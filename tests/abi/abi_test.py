"""scripts/abi.py notices what would break a program that was linked earlier, and the headers tell their version truly."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("STILLPOINT_BUILD", ROOT / "build"))
sys.path.insert(0, str(ROOT / "scripts"))

import abi  # noqa: E402  (the path comes first)

LIBRARY = BUILD / "lib/libstillpoint.so"
VERSIONS = """
#include <stdio.h>
#include <string.h>
#include <stillpoint/stillpoint.h>
#if !STILLPOINT_VERSION_AT_LEAST(1, 0, 0) || STILLPOINT_VERSION_AT_LEAST(STILLPOINT_VERSION_MAJOR, STILLPOINT_VERSION_MINOR, 99)
#error "STILLPOINT_VERSION_AT_LEAST"
#endif
int main(void)
{
    printf("%d.%d.%d\\n", STILLPOINT_VERSION_MAJOR, STILLPOINT_VERSION_MINOR, STILLPOINT_VERSION_PATCH);
    return strcmp(sp_version(), STILLPOINT_VERSION_STRING) != 0;
}
"""


class Baseline(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=BUILD)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.kept = (abi.NAMES, abi.TYPES)
        self.addCleanup(lambda: (setattr(abi, "NAMES", self.kept[0]), setattr(abi, "TYPES", self.kept[1])))

    def baseline(self, **texts):
        for name, text in texts.items():
            path = self.folder / name
            path.write_text(text, encoding="utf-8")
            setattr(abi, name, path)

    def test_a_name_that_is_gone_or_new_is_noticed(self):
        names = abi.NAMES.read_text(encoding="utf-8")
        self.baseline(NAMES=names.replace("sp_open@@STILLPOINT_1\n", "") + "sp_gone@@STILLPOINT_1\n")
        found = "\n".join(abi.complaints_about_names(LIBRARY))
        self.assertIn("sp_gone@@STILLPOINT_1 is promised", found)
        self.assertIn("sp_open@@STILLPOINT_1 is new", found)
        self.assertEqual(len(found.splitlines()), 2)

    def test_intercepted_names_have_no_version(self):
        versioned, bare = abi.exported(LIBRARY)
        self.assertTrue({"pthread_mutex_lock", "read", "fork"} <= bare)
        self.assertTrue({name.split("@@")[1] for name in versioned} == {"STILLPOINT_1"}, versioned)

    @unittest.skipUnless(shutil.which("abidiff") and platform.machine() == "x86_64", "abidiff is not installed (Debian: abigail-tools)")
    def test_a_type_that_has_changed_is_noticed(self):
        types = abi.TYPES.read_text(encoding="utf-8")
        members = re.search(r"<class-decl name='(sp_\w+)'.*?</class-decl>", types, re.DOTALL)
        changed = re.sub(r"size-in-bits='\d+'", "size-in-bits='4096'", members.group(0), count=1)
        self.assertNotEqual(changed, members.group(0))
        self.baseline(TYPES=types.replace(members.group(0), changed))
        self.assertIn(members.group(1), "\n".join(abi.complaints_about_types(LIBRARY, "cc")))


class Version(unittest.TestCase):
    def test_the_macros_the_library_the_command_and_the_changelog_agree(self):
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            program = Path(folder) / "versions"
            Path(f"{program}.c").write_text(VERSIONS, encoding="utf-8")
            libraries = BUILD / "lib"
            subprocess.run(["cc", f"{program}.c", f"-I{ROOT / 'include'}", f"-L{libraries}", "-lstillpoint", f"-Wl,-rpath,{libraries}",
                            "-o", program], check=True)
            version = subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip()
        told = subprocess.run([BUILD / "bin/stillpoint", "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(told, f"stillpoint {version}\n")
        changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        self.assertEqual(re.search(r"^## (\S+)", changelog, re.MULTILINE).group(1), version)
        for page in (ROOT / "docs/man").glob("*.1"):
            self.assertIn(f'"Stillpoint {version}"', page.read_text(encoding="utf-8").splitlines()[0])


if __name__ == "__main__":
    unittest.main()
