"""`make site`: MkDocs makes every document into a page without a warning; pages load nothing from a network; the search knows them."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("STILLPOINT_BUILD", ROOT / "build")).resolve()
NOT_INSTALLED = 69
LOADED = re.compile(r'<(?:script|img|iframe)[^>]*\bsrc="([^"]*)"|<link[^>]*\brel="(?:stylesheet|preload|icon)"[^>]*\bhref="([^"]*)"')


class Site(unittest.TestCase):
    def test_is_whole_and_loads_nothing_from_a_network(self):
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            site = Path(folder) / "site"
            done = subprocess.run([sys.executable, "-B", str(ROOT / "scripts/site.py"), "--output", str(site)],
                                  capture_output=True, text=True, timeout=240, check=False)
            if done.returncode == NOT_INSTALLED:
                self.skipTest(done.stderr.strip())
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            pages = list(site.rglob("*.html"))
            for document in ("index.html", "docs/guide/tutorial.html", "docs/measured/performance.html", "docs/ARCHITECTURE.html"):
                self.assertIn(site / document, pages)
            for page in pages:
                for addresses in LOADED.findall(page.read_text(encoding="utf-8")):
                    for address in filter(None, addresses):
                        self.assertIsNone(re.match(r"\w+:|//", address), f"{page.name} loads {address}")
            found = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
            self.assertTrue(any("sp_wait_durable" in entry["text"] for entry in found))


if __name__ == "__main__":
    unittest.main()
