#!/usr/bin/env python3
"""Parts of the power-cut test that need no QEMU: what the host makes of the console, and what the guest boots from.

Invariants: a promise that was not kept is a finding, as is a kernel in trouble; a line that was cut off is not a promise; the
archive is what cpio reads; a module comes after those it depends on.
"""

import argparse
import gzip
import io
import lzma
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import guest_image  # noqa: E402  (the path must be set first)
from power_cuts import Broken, Guest, Unavailable  # noqa: E402

SOUND = '{"result": "sound", "durable_epoch": %d, "pages_rolled_back": %d}'


class InAFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)


class Console(InAFolder):
    def setUp(self):
        super().setUp()
        self.guest = Guest("disk", argparse.Namespace(folder=self.folder, cache="none", seed=1), None)
        self.guest.console, self.guest.log = self.folder / "console", io.StringIO()
        self.guest.console.write_text("")

    def hear(self, *lines):
        return [self.guest.hear(line) for line in lines]

    def test_acknowledged_and_recovered_is_in_order(self):
        self.hear("acknowledged 4:10:20:0:0:0:0:0:0 35", "acknowledged 5:11:22:0:0:0:0:0:0 40",
                  "guest: check " + SOUND % (5, 0), "recovered 5:12:22:0:0:0:0:0:0 34")
        self.assertEqual(self.guest.told.words(), "5:11:22:0:0:0:0:0:0")
        self.assertEqual((self.guest.figures["unfinished"], self.guest.figures["operations"]), (1, 34))

    def test_a_lost_epoch_is_a_finding(self):
        self.hear("acknowledged 5:11:22:0:0:0:0:0:0 40")
        for line in ("guest: check " + SOUND % (4, 0), "recovered 4:11:22:0:0:0:0:0:0 33", "guest: ended 4"):
            with self.assertRaises(Broken) as raised:
                self.hear(line)
            self.assertTrue(raised.exception.lost, line)

    def test_a_lost_operation_is_a_finding(self):
        self.hear("acknowledged 5:11:22:0:0:0:0:0:0 40")
        with self.assertRaises(Broken) as raised:
            self.hear("recovered 6:11:21:0:0:0:0:0:0 32")
        self.assertTrue(raised.exception.lost)

    def test_damage_and_trouble_are_findings(self):
        for line in ("guest: check " + SOUND.replace("sound", "damaged") % (9, 0), "guest: check stillpoint: error: x", "guest: ended 3",
                     "Kernel panic - not syncing: x", "EXT4-fs error (device vda): x", "BUG: unable to handle page fault"):
            with self.assertRaises(Broken, msg=line) as raised:
                self.hear(line)
            self.assertFalse(raised.exception.lost, line)

    def test_another_medium_than_the_one_to_test_is_a_finding(self):
        facts = '{"kernel": {"release": "6.1"}, "cpu": {"write_back": "clwb"}, "verdict": {"medium": "%s", ' \
                '"durability": "power", "medium_reason": "", "tracker": "uffd"}}'
        self.hear("guest: doctor " + facts % "file")
        for line in (facts % "memory", "no JSON", "{}"):
            with self.assertRaises(Broken, msg=line):
                self.hear("guest: doctor " + line)

    def test_half_a_line_promises_nothing(self):
        self.hear("acknowledged 5:11:22:0:0", "x acknowledged 5:11:22:0:0:0:0:0:0 40", "acknowledged 5:11:22:0:0:0:0:0:0")
        self.assertEqual(self.guest.told.epoch, 0)

    def test_a_cut_in_a_commit_is_counted(self):
        self.hear("guest: check " + SOUND % (0, 3), "guest: check " + SOUND % (0, 0))
        self.assertEqual((self.guest.figures["half_committed"], self.guest.figures["checks"]), (1, 2))

    def test_what_cannot_begin_is_skipped_and_what_cannot_go_on_is_a_finding(self):
        with self.assertRaises(Unavailable):
            self.hear("guest: cannot run: no fsdax")
        self.guest.cycle = 1
        with self.assertRaises(Broken):
            self.hear("guest: cannot run: mounting /dev/vda failed")


class Image(InAFolder):
    def module(self, name, depends):
        path = self.folder / "kernel" / f"{name}.ko"
        path.parent.mkdir(exist_ok=True)
        content = b"\x7fELF\0license=GPL\0depends=" + depends.encode() + b"\0"
        if name == "nfit":  # as kernels since Debian 13 have them
            path.with_suffix(".ko.xz").write_bytes(lzma.compress(content))
        else:
            path.write_bytes(content)

    def test_modules_come_after_those_they_need(self):
        for name, depends in {"nd_pmem": "libnvdimm,nd_btt", "nd_btt": "libnvdimm", "libnvdimm": "", "nfit": "libnvdimm", "other": "",
                              "virtio_blk": "virtio"}.items():
            self.module(name, depends)
        order = list(guest_image.ordered_modules(self.folder / "kernel"))
        self.assertEqual(sorted(order), ["libnvdimm", "nd_btt", "nd_pmem", "nfit", "virtio_blk"])
        for before, after in (("libnvdimm", "nfit"), ("libnvdimm", "nd_btt"), ("nd_btt", "nd_pmem")):
            self.assertLess(order.index(before), order.index(after))

    def test_a_folder_without_a_kernel_is_unavailable(self):
        with self.assertRaises(guest_image.Unavailable):
            guest_image.kernel(self.folder)

    @unittest.skipUnless(shutil.which("cpio"), "cpio is not installed")
    def test_cpio_reads_the_archive(self):
        archive = guest_image.Archive()
        archive.file("init", b"#!/bin/sh\n")
        archive.file("/lib/deep/odd", b"12345")
        archive.file("/lib/deep/odd", b"a second time")
        archive.write(self.folder / "archive.gz")
        (self.folder / "out").mkdir()
        subprocess.run(["cpio", "-id", "--quiet"], cwd=self.folder / "out", check=True,
                       input=gzip.decompress((self.folder / "archive.gz").read_bytes()))
        self.assertEqual((self.folder / "out/lib/deep/odd").read_bytes(), b"12345")
        self.assertEqual((self.folder / "out/init").stat().st_mode & 0o777, 0o755)


if __name__ == "__main__":
    unittest.main()
