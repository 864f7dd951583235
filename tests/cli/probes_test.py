"""The library's static probes (USDT): their names and the number of their arguments, as tracing/*.bt and the guide have them."""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from command_line import BUILD, ROOT

PROBES = {"epoch_begun": 1, "captured": 1, "stopped": 3, "durable": 3, "fault_served": 2}


@unittest.skipUnless(shutil.which("readelf"), "readelf is not installed")
@unittest.skipUnless(Path("/usr/include/sys/sdt.h").exists() or list(Path("/usr/include").glob("*/sys/sdt.h")), "built without sys/sdt.h")
class Probes(unittest.TestCase):
    def test_the_library_has_them(self):
        notes = subprocess.run(["readelf", "-n", BUILD / "lib/libstillpoint.so"], capture_output=True, text=True, check=True).stdout
        found = {}
        for name, arguments in re.findall(r"Provider: stillpoint\s+Name: (\w+)\s+Location: .*\s+Arguments: *(.*)", notes):
            self.assertEqual(found.setdefault(name, len(arguments.split())), len(arguments.split()))
        self.assertEqual(found, PROBES)

    def test_the_scripts_and_the_guide_name_no_others(self):
        for script in (ROOT / "tracing").glob("*.bt"):
            used = set(re.findall(r":stillpoint:(\w+)", script.read_text(encoding="utf-8")))
            self.assertTrue(used)
            self.assertLessEqual(used, set(PROBES), script)
        guide = (ROOT / "docs/guide/watching.md").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"^\| `(\w+)` \| `", guide, re.MULTILINE)), set(PROBES))

    @unittest.skipUnless(shutil.which("bpftrace") and os.geteuid() == 0, "bpftrace is not installed, or this is not root")
    def test_bpftrace_understands_the_scripts(self):
        for script in (ROOT / "tracing").glob("*.bt"):
            done = subprocess.run(["bpftrace", "-d", script, BUILD / "lib/libstillpoint.so"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout[-500:] + done.stderr[-500:])


if __name__ == "__main__":
    unittest.main()
