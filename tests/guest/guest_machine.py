"""One guest: the machine that QEMU emulates, its durable device, and what it says on its serial console."""

import queue
import subprocess
import threading
import time

from guest_image import Unavailable, command

NVDIMM_MB, DISK_MB = 256, 384
QEMU_IMG_OPTIONS = "cluster_size=4096"  # what is lost is lost in pieces of a page


class Device:
    """The durable device of a guest, a file of the host; it lives as long as the guest's pool."""

    def __init__(self, kind, folder):
        self.kind, folder = kind, folder.absolute()
        self.image = folder / f"{kind}.img"
        self.overlay = folder / f"{kind}.overlay"
        self.cache_mode = "none"
        megabytes = NVDIMM_MB if kind == "nvdimm" else DISK_MB
        with self.image.open("wb") as file:
            file.truncate(megabytes << 20)

    def words(self):
        """The words of QEMU for a boot with this device."""
        if self.kind == "nvdimm":
            return ["-machine", "pc,nvdimm=on", "-m", "512M,slots=2,maxmem=2G",
                    "-object", f"memory-backend-file,id=nv,share=on,mem-path={self.image},size={NVDIMM_MB}M",
                    "-device", "nvdimm,id=nvdimm0,memdev=nv"]
        words = ["-machine", "pc", "-m", "512M", "-drive"]
        if self.kind == "disk":
            return words + [f"file={self.image},format=raw,if=virtio,cache={self.cache_mode}"]
        # The new pages of an overlay are found again only through tables that QEMU keeps in its own memory until the guest
        # flushes the disk: a write cache that dies with the machine.
        subprocess.run([command("qemu-img"), "create", "-q", "-f", "qcow2", "-o", QEMU_IMG_OPTIONS, "-F", "raw",
                        "-b", str(self.image), str(self.overlay)], check=True)
        return words + [f"file={self.overlay},format=qcow2,if=virtio,cache={self.cache_mode},l2-cache-size=16M,"
                        "cache-clean-interval=0"]

    def after_cut(self):
        """Brings what reached the disk into the image. Raises CalledProcessError if the overlay is not readable."""
        if self.overlay.exists():
            for words in (["check", "-q", "-r", "leaks"], ["commit", "-q"]):
                done = subprocess.run([command("qemu-img"), *words, str(self.overlay)], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, check=False)
                if done.returncode != 0:
                    raise Unavailable(f"qemu-img {words[0]}: {done.stdout.strip()}")
            self.overlay.unlink()

    def remove(self):
        self.image.unlink(missing_ok=True)
        self.overlay.unlink(missing_ok=True)


class Machine:
    """A running guest. Lines of its console are read as they come, also what it said in its last moment."""

    def __init__(self, device, kernel, initramfs, settings, log):
        append = "console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check rdinit=/init " + " ".join(
            f"{name}={value}" for name, value in settings.items())
        words = ["nice", command("qemu-system-x86_64"), "-accel", "tcg", "-cpu", "max", "-smp", "2", "-nodefaults",
                 "-display", "none", "-no-reboot", "-serial", "stdio", *device.words(), "-kernel", str(kernel),
                 "-initrd", str(initramfs), "-append", append]
        self.lines, self.log = queue.Queue(), log
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for raw in self.process.stdout:
            if not raw.endswith(b"\n"):
                break  # cut off: it was not reported
            line = raw.decode(errors="replace").rstrip("\r\n")
            self.log.write(line + "\n")
            self.lines.put(line)
        self.lines.put(None)

    def next_line(self, seconds):
        """The next line; None when the console is closed. Raises queue.Empty when none comes in that time."""
        return self.lines.get(timeout=max(seconds, 0.001))

    def cut(self):
        """Power off: SIGKILL from outside, at once. Returns the lines that were still in flight."""
        self.process.kill()
        self.process.wait()
        rest = []
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            line = self.lines.get(timeout=60)
            if line is None:
                break
            rest.append(line)
        self.reader.join(60)
        self.process.stdout.close()
        return rest
