"""The report of `stillpoint bench`, made from a document that tests/bench/report_fixture.py invents and opened in a browser.

Invariants: the page asks for nothing outside itself; it is never wider than the screen; names that hold markup are shown as text;
tables come before plots; each plot has a name; all text reaches a contrast of 4.5 in light and in dark, and 14 px at 360 px.
Without matplotlib, or without Chromium, what needs it is skipped, and the exit code is 77 if that was all.
"""

import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import report_fixture

ROOT = Path(__file__).resolve().parent.parent.parent
RUN = ROOT / "bench" / "run.py"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SKIPPED = 77

# Runs in a copy of the page and leaves what it found as JSON in an element of its own.
SCRIPT = (Path(__file__).resolve().parent / "report_probe.js").read_text(encoding="utf-8")


def make(document, *options):
    """The command as a person gives it; returns the finished process."""
    folder = Path(tempfile.mkdtemp(prefix="report-", dir=FOLDER.name))
    source = folder / "run.json"
    source.write_text(json.dumps(document), encoding="utf-8")
    words = [sys.executable, "-B", str(RUN), "report", str(source), *(str(folder / word) if word[0] != "-" else word for word in options)]
    return folder, subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


FOLDER = tempfile.TemporaryDirectory(prefix="stillpoint-report-")


@functools.cache
def page():
    """The fixture's page, made once; skips the tests where matplotlib is missing."""
    folder, done = make(report_fixture.document(), "--html", "report")
    if done.returncode == 69:
        raise unittest.SkipTest(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return (folder / "report" / "index.html").read_text(encoding="utf-8")


@functools.cache
def seen(width, theme):
    """The findings of the probe in the page at a width in a theme."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise unittest.SkipTest("no Chromium: apt-get install chromium-headless-shell")
    # As a reader would choose the theme; all details open, so that everything is laid out.
    text = page().replace(" checked>", ">").replace(f'id="theme-{theme}"', f'id="theme-{theme}" checked')
    text = text.replace("<details>", "<details open>")
    copy = Path(FOLDER.name) / f"{theme}-{width}.html"
    copy.write_text(text.replace("</body>", f"<script>{SCRIPT}</script></body>"), encoding="utf-8")
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={FOLDER.name}/profile",
                           f"--window-size={width},900", "--virtual-time-budget=2000", "--dump-dom", copy.as_uri()],
                          capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r'<script id="probe" type="application/json">(.*?)</script>', done.stdout, re.DOTALL)
    assert found, f"the browser gave no result: exit code {done.returncode}, {done.stderr[-500:]}"
    return json.loads(found[1])


class PageAsText(unittest.TestCase):
    """The part that can be seen without a browser."""

    def test_nothing_outside_the_page_is_named(self):
        self.assertEqual(re.findall(r"https?://|//[a-z]+\.[a-z]", page()), [])
        self.assertEqual([link for link in re.findall(r'\b(?:src|href)="([^"]*)"', page()) if not link.startswith(("#", "data:,"))], [])
        self.assertEqual(re.findall(r"@import|<script|<iframe|<object|<embed|\bon[a-z]+=\"", page()), [])

    def test_a_reference_inside_the_page_meets_one_element(self):
        ids = re.findall(r'\bid="([^"]+)"', page())
        self.assertEqual(len(ids), len(set(ids)))
        named = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)|aria-(?:labelledby|describedby)="([^"]+)"', page())
        self.assertEqual({"".join(found) for found in named} - set(ids), set())

    def test_names_with_markup_are_text(self):
        self.assertEqual(re.findall("<script|<b>one|<i>|<of>", page()), [])
        self.assertGreater(page().count("&lt;script&gt;evil()&lt;/script&gt;"), 10)

    def test_what_an_interrupted_run_left_is_shown_as_such(self):
        self.assertLess(page().index("This run was interrupted"), page().index("<table>"))

    def test_a_load_above_the_cpus_is_said_before_any_figure(self):
        self.assertLess(page().index("The load was 3.4 on 2 CPUs"), page().index("<table>"))

    def test_latencies_and_the_longest_stop_stand_beside_the_rate_and_both_baselines_are_there(self):
        text = page()[page().index("Speed and latency"):]
        heads = re.findall(r'<th scope="row">([^<]+)</th>', text)
        self.assertEqual(heads[:8], ["rate/s", "p50", "p99", "p99.9", "longest", "longest stop", "of volatile", "of best volatile"])
        row = re.search(r'<tr><th scope="row"><a[^>]*>btree</a>.*?</tr>', page())[0]
        self.assertIn("0.55", row, "the summary quotes the best: 0.69 of volatile")

    def test_verdicts_skipped_peers_and_commands_are_there(self):
        for text in ("✓ met", "✗ fell short", "no cell of this run has it", "apt-get install libpmemobj-dev", "git checkout 0123456789ab",
                     "stillpoint bench report run.json --html"):
            self.assertGreater(page().count(text), 0, text)

    def test_figures_without_words_of_their_own_are_shown_by_the_names_of_their_fields(self):
        self.assertGreater(page().count("a new figure"), 0)

    def test_a_plot_is_sound_also_for_a_reader_stricter_than_a_browser(self):
        for plot in re.findall(r"<svg.*?</svg>", page(), re.DOTALL):
            ElementTree.fromstring(plot)

    def test_every_kind_of_plot_is_there(self):
        for title in ("Ratio to volatile: key-value", "Latency of an operation", "Throughput by mix", "Throughput by threads",
                      "Throughput by value size", "Ratio to volatile by interval", "Killed: what was lost",
                      "Killed: how soon it works again", "Killed half-way"):
            self.assertGreater(page().count(f"<figcaption>{title}"), 0, title)


class PageInABrowser(unittest.TestCase):
    def each(self):
        return [(width, seen(width, theme)) for width, theme in ((360, "light"), (1280, "dark"))]

    def test_it_asks_for_nothing(self):
        for _, found in self.each():
            self.assertEqual(found["requests"], [])

    def test_it_is_as_wide_as_the_screen(self):
        for width, found in self.each():
            self.assertEqual(found["viewport"], width)
            self.assertLessEqual(found["scrollWidth"], width)

    def test_text_contrasts_with_its_ground(self):
        for _, found in self.each():
            self.assertGreater(found["textsCompared"], 200)
            self.assertEqual(found["faint"], [])

    def test_text_is_large_enough_also_in_plots(self):
        for _, found in self.each():
            self.assertEqual(found["small"], [])

    def test_text_of_a_plot_stays_inside_it(self):
        for _, found in self.each():
            self.assertEqual(found["cut"], [])

    def test_the_theme_differs(self):
        self.assertNotEqual(seen(360, "light")["ground"], seen(1280, "dark")["ground"])

    def test_each_plot_has_a_name_and_comes_after_a_table(self):
        for _, found in self.each():
            self.assertGreater(found["plots"], 10)
            self.assertEqual(found["namelessPlots"], 0)
            self.assertTrue(found["tableFirst"])

    def test_headings_and_table_headers_are_in_order(self):
        for _, found in self.each():
            self.assertEqual(found["skippedHeadings"], [])
            self.assertEqual(found["headersWithoutScope"], 0)
            self.assertEqual(found["language"], "en")


class Document(unittest.TestCase):
    def test_it_has_its_plots_and_its_data_beside_it(self):
        page()
        document = report_fixture.document()
        folder, done = make({**document, "cells": document["cells"][-6:]}, "--markdown", "made.md")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = (folder / "made.md").read_text(encoding="utf-8")
        pictures = re.findall(r"!\[[^\]]+\]\((figures/[^)]+)\)", text)
        self.assertEqual(set(pictures), {f"figures/{path.name}" for path in (folder / "figures").iterdir()})
        self.assertGreater(len(pictures), 7)
        for name in pictures:
            ElementTree.parse(folder / name)
        # Lines that begin with spaces are code, in which nothing is markup.
        self.assertEqual([line for line in text.split("\n") if "<" in line and not line.startswith("    ")], [])
        self.assertEqual(json.loads((folder / "made.json").read_text())["commit"], "0123456789ab+")

    def test_an_empty_run_makes_a_page_too(self):
        page()
        folder, done = make({"format": "stillpoint-bench", "format_version": 1}, "--html", "report", "--markdown", "made.md")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Nothing was measured", (folder / "report" / "index.html").read_text(encoding="utf-8"))


class WrongInput(unittest.TestCase):
    def test_a_missing_matplotlib_is_told_with_what_brings_it(self):
        sys.path.insert(0, str(ROOT / "bench"))
        from driver.errors import BenchError  # its folder is known from here on
        from driver.report import library

        with mock.patch.object(library, "SYSTEM_PYTHON", "/nowhere/python3"), \
                mock.patch.object(library.importlib.util, "find_spec", lambda _: None), self.assertRaises(BenchError) as raised:
            library.make_sure_of_matplotlib("--html", RUN, [])
        self.assertEqual(str(raised.exception), "stillpoint bench --html needs matplotlib: apt-get install python3-matplotlib")
        self.assertEqual(raised.exception.code, 69)

    def test_a_report_without_a_place_to_go_is_refused(self):
        _, done = make({})
        self.assertEqual(done.returncode, 64)
        self.assertIn("--html DIR or --markdown FILE", done.stderr)

    def test_another_file_is_refused(self):
        page()
        for document in ([], {"format": "stillpoint-bench", "format_version": 99}):
            _, done = make(document, "--html", "report")
            self.assertEqual(done.returncode, 64)
            self.assertIn("is not a result of this version", done.stderr)


def main():
    with FOLDER:
        done = unittest.main(exit=False).result
    if not done.wasSuccessful():
        return 1
    return SKIPPED if done.skipped and all("matplotlib" in reason or "Chromium" in reason for _, reason in done.skipped) else 0


if __name__ == "__main__":
    sys.exit(main())
