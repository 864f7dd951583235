"""The files that a guest boots from: Debian's kernel package, unpacked and never installed, and an initramfs with busybox, the
modules, the programs under test and the shared libraries that they name."""

import gzip
import lzma
import re
import shutil
import subprocess
from pathlib import Path

# Each with the modules that it needs before it is found from here; the order is worked out from them.
WANTED_MODULES = ["virtio_pci", "virtio_blk", "nfit", "nd_pmem"]
CONSOLE = ("dev/console", 5, 1)
BUSYBOX = "/bin/busybox"


class Unavailable(Exception):
    """Something that the guest needs is not available here; the message says what."""


def command(name):
    """The path of a program, also of one that only root has in its PATH."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not found:
        raise Unavailable(f"{name} is not installed (scripts/setup.sh guest installs what the guest needs)")
    return found


def download_kernel(folder, package):
    """Downloads the kernel that `package` stands for and unpacks it into folder/kernel."""
    packages = folder / "packages"
    shutil.rmtree(packages, ignore_errors=True)
    packages.mkdir(parents=True)
    depends = subprocess.run([command("apt-cache"), "depends", package], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, check=False)
    real = re.search(r"Depends: (linux-image-[0-9]\S+)", depends.stdout)
    name = real.group(1) if real else package
    done = subprocess.run([command("apt-get"), "download", "-q", name], cwd=packages, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    found = list(packages.glob("*.deb"))
    if done.returncode != 0 or not found:
        raise Unavailable(f"the package {name} cannot be downloaded: {done.stdout.strip()[-300:]}")
    part = folder / "kernel.part"
    shutil.rmtree(part, ignore_errors=True)
    subprocess.run([command("dpkg-deb"), "-x", str(found[0]), str(part)], check=True)
    part.rename(folder / "kernel")
    shutil.rmtree(packages)


def kernel(folder):
    """The kernel and the folder of its modules. Raises Unavailable where folder/kernel does not hold them."""
    images = sorted((folder / "kernel" / "boot").glob("vmlinuz-*"))
    modules = sorted((folder / "kernel").glob("lib/modules/*/kernel"))
    if not images or not modules:
        raise Unavailable(f"no guest kernel lies in {folder / 'kernel'} (make guest downloads it)")
    return images[-1], modules[-1]


def module_bytes(path):
    """A module as the kernel loads it."""
    if path.suffix == ".ko":
        return path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    raise Unavailable(f"the modules of this kernel are compressed in a way not known here ({path.name})")


def ordered_modules(modules):
    """The wanted modules, names to contents, each after those it depends on; what is built into the kernel is left out."""
    files = {path.name.split(".ko")[0].replace("-", "_"): path for path in modules.rglob("*.ko*")}
    ordered = {}

    def add(name):
        if name not in files or name in ordered:
            return
        content = module_bytes(files[name])
        depends = re.search(rb"\0depends=([^\0]*)\0", content)
        for one in depends.group(1).decode().split(",") if depends else []:
            add(one.replace("-", "_"))
        ordered[name] = content

    for name in WANTED_MODULES:
        add(name)
    return ordered


def libraries_of(program):
    """The shared libraries that a program names, by their paths; none for a static one."""
    listed = subprocess.run(["ldd", str(program)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return {Path(path) for path in re.findall(r"(/\S+) \(0x", listed.stdout)}


class Archive:
    """A cpio archive of the kind that the kernel unpacks (newc), written by hand: only root may make device nodes."""

    def __init__(self):
        self.bytes, self.names, self.number = bytearray(), set(), 0

    def _add(self, name, mode, content=b"", device=(0, 0)):
        if name in self.names:
            return
        self.names.add(name)
        parent = str(Path(name).parent)
        if parent != "." and name != "TRAILER!!!":
            self._add(parent, 0o40755)
        self.number += 1
        fields = [self.number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name) + 1, 0]
        self.bytes += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self.bytes += bytes(-len(self.bytes) % 4) + content
        self.bytes += bytes(-len(self.bytes) % 4)

    def file(self, name, source, mode=0o100755):
        self._add(name.lstrip("/"), mode, source if isinstance(source, bytes) else Path(source).read_bytes())

    def node(self, name, major, minor):
        self._add(name, 0o020600, device=(major, minor))

    def write(self, path):
        self._add("TRAILER!!!", 0)
        with gzip.open(path, "wb", compresslevel=1) as out:
            out.write(self.bytes)


def write_initramfs(path, modules, binaries):
    """binaries: the folder with stillpoint and soak_program; libstillpoint.so lies in ../lib, as `run` expects."""
    archive = Archive()
    archive.node(*CONSOLE)
    busybox = Path(BUSYBOX)
    if not busybox.exists() or libraries_of(busybox):
        raise Unavailable("busybox-static is not installed (scripts/setup.sh guest)")
    archive.file("bin/busybox", busybox)
    archive.file("init", Path(__file__).with_name("init.sh"))
    ordered = ordered_modules(modules)
    for name, content in ordered.items():
        archive.file(f"modules/{name}.ko", content)
    archive.file("modules/order", "".join(f"{name}\n" for name in ordered).encode())
    own = [binaries / "stillpoint", binaries / "soak_program"]
    library = (binaries.parent / "lib" / "libstillpoint.so").resolve()
    mke2fs = Path(command("mke2fs"))
    for program in own:
        if not program.is_file():
            raise Unavailable(f"{program} is missing: build first (make)")
        archive.file(f"opt/bin/{program.name}", program)
    for name in {library.name, "libstillpoint.so", "libstillpoint.so.1"}:
        archive.file(f"opt/lib/{name}", library)
    archive.file("opt/bin/mke2fs", mke2fs)
    for needed in set().union(*(libraries_of(program) for program in [*own, library, mke2fs])):
        if needed.resolve() != library:
            archive.file(str(needed), needed)
    archive.write(path)
