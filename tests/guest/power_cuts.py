#!/usr/bin/env python3
"""Power cuts with a real kernel: a program works on a pool in a QEMU guest, QEMU is killed, the same image boots again.

Each kind of durable device gets its share of the cuts:

  nvdimm      an emulated NVDIMM, ext4 with DAX, MAP_SYNC: the medium `dax`
  disk        a virtio disk, ext4, O_DIRECT and io_uring: the medium `file`
  disk-cache  the same with a write cache that dies with the machine: what was not flushed is lost by pages

After each cut the guest looks at the pool (`stillpoint check`), recovers it, verifies its whole state (soak_program of
tests/kill) and works on until the next cut; the last run ends by itself. What the guest was told is durable it has
printed on its serial console, so that the host knows it when the guest is dead.

Exit code 0: nothing lost, nothing broken. 1: something was; the image and the console are kept. 2: could not run.
77: skipped, since QEMU, the kernel or another tool is not available here (0 with --skip-is-success).
"""

import argparse
import json
import platform
import queue
import random
import re
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "scripts"))

import guest_image  # noqa: E402  (the path must be set first)
from guest_image import Unavailable  # noqa: E402
from guest_machine import Device, Machine  # noqa: E402
from pool_tool import ROOT, table  # noqa: E402

EX_SKIP = 77
COUNTS = re.compile(r"(acknowledged|recovered) (\d+)((?::\d+){8}) (\d+)")
KERNEL_TROUBLE = re.compile(r"Kernel panic|\bBUG:|\bOops\b|EXT4-fs error|I/O error|general protection")
KINDS = {"nvdimm": "dax", "disk": "file", "disk-cache": "file"}


class Broken(Exception):
    """A promise that was not kept."""

    def __init__(self, what, lost=False):
        super().__init__(what)
        self.lost = lost


class Told:
    """The acknowledgements of the guest: the epoch, and the operations of each thread."""

    def __init__(self, epoch=0, counts=(0,) * 8):
        self.epoch, self.counts = epoch, tuple(counts)

    @staticmethod
    def of(match):
        return Told(int(match.group(2)), (int(count) for count in match.group(3).split(":")[1:]))

    def words(self):
        return ":".join(map(str, (self.epoch, *self.counts)))

    def missing_in(self, later):
        """True if `later` lacks something of this."""
        return later.epoch < self.epoch or any(b < a for a, b in zip(self.counts, later.counts))


class Guest:
    """The life of one pool through many machines. Moment k depends on the seed, the kind and k alone."""

    def __init__(self, kind, options, boot, defect="none"):
        self.kind, self.options, self.boot, self.defect = kind, options, boot, defect
        self.name = kind if defect == "none" else f"{kind}, {defect}"
        self.folder = Path(options.folder) / (kind if defect == "none" else f"{kind}-{defect}")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.device = Device(kind, self.folder)
        self.device.cache_mode = options.cache
        self.told = Told()
        self.cycle, self.done = 0, 0
        self.file_system, self.machine_facts = "", ""
        self.figures = {"cuts": 0, "at_work": 0, "opening": 0, "unfinished": 0, "half_committed": 0, "epochs": 0,
                        "operations": 0, "lost": 0, "checks": 0, "unsynced": 0, "unsynced_lost": 0}

    def start(self, verify_only):
        words = ["--threads", "2", "--acknowledged", self.told.words()]
        if self.defect == "early-ack":
            words += ["--defect", "early-ack"]
        settings = {"guest_kind": self.kind, "guest_first": int(self.cycle == 0), "guest_cycle": self.cycle,
                    "guest_program": ",".join(words + (["--verify"] if verify_only else []))}
        if self.defect == "no-flush":
            settings["guest_options"] = "barrier=0"
        return Machine(self.device, *self.boot, settings, self.log)

    # -- what the guest says -------------------------------------------------------------------

    def hear(self, line):
        """Takes a line of the console in; returns its first words, by which the moments are set."""
        counts = COUNTS.fullmatch(line)
        if counts and counts.group(1) == "acknowledged":
            self.told, self.done = Told.of(counts), int(counts.group(4))
            return "acknowledged"
        if counts:
            self.recovered(Told.of(counts))
            return "recovered"
        if line.startswith("guest: check "):
            self.checked(line.removeprefix("guest: check ").strip())
        elif line.startswith("guest: mounted "):
            self.file_system = line.removeprefix("guest: mounted ")
        elif line.startswith("guest: doctor "):
            self.doctored(line.removeprefix("guest: doctor ").strip())
        elif line.startswith("guest: unsynced "):
            self.figures["unsynced"] += 1
            self.figures["unsynced_lost"] += line.endswith(" lost")
        elif line.startswith("guest: cannot run"):
            if self.cycle == 0:
                raise Unavailable(line)
            raise Broken(line)
        elif line.startswith("guest: ended ") and line != "guest: ended 0":
            code = line.split()[-1]
            raise Broken(f"the program ended with code {code}: {self.last_lines()}", lost=code == "4")
        elif KERNEL_TROUBLE.search(line):
            raise Broken(f"the guest's kernel: {line}")
        return " ".join(line.split()[:2])

    def doctored(self, text):
        """The findings of Stillpoint itself in the guest; the medium that it would choose must be the one that is tested."""
        try:
            found = json.loads(text)
            verdict = found["verdict"]
            self.machine_facts = (f"Linux {found['kernel']['release']}, write back {found['cpu']['write_back']}, medium "
                                  f"{verdict['medium']} ({verdict['medium_reason']}), tracker {verdict['tracker']}")
        except (ValueError, KeyError) as failure:
            raise Broken(f"stillpoint doctor: {text}") from failure
        honest = "process" if self.defect == "no-flush" else "power"
        if (verdict["medium"], verdict["durability"]) != (KINDS[self.kind], honest):
            raise Broken(f"stillpoint doctor: {text}")

    def checked(self, text):
        try:
            found = json.loads(text)
        except ValueError as failure:
            raise Broken(f"stillpoint check: {text}") from failure
        self.figures["checks"] += 1
        if found.get("result") != "sound":
            raise Broken(f"stillpoint check: {text}")
        if found["durable_epoch"] < self.told.epoch:
            raise Broken(f"epoch {self.told.epoch} was acknowledged, the pool holds {found['durable_epoch']}", lost=True)
        self.figures["half_committed"] += found["pages_rolled_back"] > 0

    def recovered(self, found):
        if self.told.missing_in(found):
            raise Broken(f"acknowledged {self.told.words()}, recovered {found.words()}", lost=True)
        self.figures["unfinished"] += sum(found.counts) < self.done
        self.done = 0  # of the run that begins now
        self.figures["epochs"], self.figures["operations"] = found.epoch, sum(found.counts)

    def last_lines(self):
        self.log.flush()
        return " | ".join(self.console.read_text(errors="replace").splitlines()[-3:])

    def listen_until(self, machine, wanted, seconds):
        """Hears until a line begins with `wanted`; with None, for so many seconds. False if the console closed."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = machine.next_line(end - time.monotonic())
            except queue.Empty as late:
                if wanted is None:
                    return True
                if self.options.limit_s:  # a short form; a machine may be too slow for it
                    raise Unavailable(f"the guest did not say '{wanted}' in {seconds} s") from late
                raise Broken(f"the guest did not say '{wanted}' in {seconds} s: {self.last_lines()}") from late
            if line is None:
                return False
            if self.hear(line) == wanted:
                return True
            if wanted is None and time.monotonic() > end:
                return True

    # -- one cycle -----------------------------------------------------------------------------

    def run(self, verify_only=False):
        """Boots; cuts at a moment, or, to verify only, waits for the end."""
        self.console = self.folder / f"console-{self.cycle}"
        with self.console.open("w") as self.log:
            machine = self.start(verify_only)
            try:
                if verify_only:
                    self.listen_until(machine, "guest: ended", self.options.boot_deadline_s)
                else:
                    self.wait_for_moment(machine)
            finally:
                running = machine.process.poll() is None
                rest = machine.cut()
            for line in rest:
                self.hear(line)
        if not verify_only and not running:
            raise Broken(f"the guest ended by itself: {self.last_lines()}")
        self.device.after_cut()
        self.cycle += 1

    def wait_for_moment(self, machine):
        dice = random.Random(f"{self.options.seed}/{self.name}/{self.cycle}")
        opening = self.defect == "none" and dice.random() < 0.25  # in creation or recovery
        moment_s = dice.uniform(0, 1.0 if opening else self.options.longest_ms / 1000)
        heard = self.listen_until(machine, "guest: starts" if opening else "acknowledged", self.options.boot_deadline_s)
        if heard and self.listen_until(machine, None, moment_s):
            self.figures["cuts"] += 1
            self.figures["opening" if opening else "at_work"] += 1

    def live(self, cuts, deadline):
        while self.figures["cuts"] < cuts and time.monotonic() < deadline:
            self.run()
            if self.options.verbose:
                print(f"  {self.name}: cut {self.figures['cuts']}, acknowledged epoch {self.told.epoch}", flush=True)
        self.run(verify_only=True)


# -- All kinds ---------------------------------------------------------------------------------


DEFECTS = {
    "early-ack": "a program that acknowledges too early",
    "no-flush": "a file system that does not flush the disk",  # only a disk with a write cache shows it
}


def control(options, boot, kind, defect):
    """A program that breaks a promise must be caught, or these cuts prove nothing. Returns how many cuts it took."""
    guest = Guest(kind, options, boot, defect)
    for _ in range(4):
        try:
            guest.run()
        except Broken as failure:
            if failure.lost or defect == "no-flush":  # which breaks the file system as well
                shutil.rmtree(guest.folder)
                return guest.figures["cuts"]
            raise
    raise Broken(f"{kind}: {DEFECTS[defect]} was not caught by 4 cuts")


def run_controls(options, boot):
    for kind in options.kinds.split(","):
        for defect, what in DEFECTS.items():
            if defect == "early-ack" or kind == "disk-cache":
                cuts = control(options, boot, kind, defect)
                print(f"guest: {kind}: {what} is caught after {cuts} cut{'s'[:cuts != 1]}", flush=True)


def row(guest, finding):
    figures = guest.figures
    return (KINDS[guest.kind], guest.name, figures["cuts"], figures["at_work"], figures["opening"], figures["unfinished"],
            figures["half_committed"], f"{figures['unsynced_lost']} of {figures['unsynced']}", figures["checks"], guest.told.epoch,
            figures["operations"], figures["lost"], finding)


def prepare(options):
    """The kernel and the initramfs. Raises Unavailable."""
    if platform.machine() != "x86_64":
        raise Unavailable(f"the guest is an x86-64 machine and runs what was built here, for {platform.machine()}")
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("qemu-system-x86_64", *(["qemu-img"] if "disk-cache" in options.kinds.split(",") else [])):
        guest_image.command(name)
    kernels = Path(options.kernel_folder or folder)
    if options.download and not (kernels / "kernel").is_dir():
        print(f"guest: downloading {options.kernel_package} to {kernels}", flush=True)
        guest_image.download_kernel(kernels, options.kernel_package)
    kernel, modules = guest_image.kernel(kernels)
    initramfs = folder / "initramfs.gz"
    guest_image.write_initramfs(initramfs, modules, Path(options.binaries))
    return kernel, initramfs


def run_all(options):
    boot = prepare(options)
    print(f"guest: {boot[0].name}, QEMU without KVM, seed {options.seed}", flush=True)
    rows, broken = [], False
    deadline = time.monotonic() + options.limit_s if options.limit_s else float("inf")
    for kind in options.kinds.split(","):
        guest, finding = Guest(kind, options, boot), "none"
        try:
            guest.live(options.cycles, deadline)
        except Broken as failure:
            broken, finding = True, "see above"
            guest.figures["lost"] += failure.lost
            print(f"guest: {guest.name}, cycle {guest.cycle}: {failure}\n  kept: {guest.folder}", flush=True)
        else:
            guest.device.remove()
        rows.append(row(guest, finding))
        print(f"guest: {kind} on {guest.file_system}: {guest.machine_facts}", flush=True)
    print("\n".join(table(("medium", "device", "cuts", "at work", "opening", "in an epoch", "in a commit", "unsynced lost", "checks",
                           "epochs", "operations", "epochs lost", "findings"), rows)))
    if options.control and not broken:
        run_controls(options, boot)
    return 1 if broken else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=20, help="power cuts for each kind of device")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS), help="of " + ", ".join(KINDS))
    parser.add_argument("--longest-ms", type=float, default=3000, help="longest time at work before a cut")
    parser.add_argument("--limit-s", type=float, default=0, help="no further cycle after this time; 0: no limit")
    parser.add_argument("--boot-deadline-s", type=float, default=300,
                        help="for a line that must come: a guest without KVM on a busy machine is slow")
    parser.add_argument("--cache", default="none", help="QEMU's cache mode of the disk (none needs O_DIRECT on the host)")
    parser.add_argument("--download", action="store_true", help="download the guest's kernel if it is not there")
    parser.add_argument("--kernel-package", default="linux-image-cloud-amd64")
    parser.add_argument("--kernel-folder", help="where kernel/ lies, if not in the folder")
    parser.add_argument("--no-control", dest="control", action="store_false")
    parser.add_argument("--skip-is-success", action="store_true", help="exit code 0 instead of 77 when skipped")
    parser.add_argument("--verbose", action="store_true", help="a line for each cut")
    parser.add_argument("--binaries", default=str(ROOT / "build" / "bin"))
    parser.add_argument("--folder", default=str(ROOT / "build" / "guest"))
    options = parser.parse_args()
    for kind in options.kinds.split(","):
        if kind not in KINDS:
            parser.error(f"no device is called {kind}; there are {', '.join(KINDS)}")
    return options


def main():
    options = parse()
    try:
        return run_all(options)
    except Unavailable as reason:
        print(f"guest: skipped: {reason}")
        return 0 if options.skip_is_success else EX_SKIP
    except Broken as failure:
        print(f"guest: {failure}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
