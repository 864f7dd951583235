#!/usr/bin/env python3
"""Fetches a Debian source package, checked by its signatures, and unpacks it with Debian's patches applied.

    python3 integrations/debian_source.py memcached --folder build/integrations/sources

prints the unpacked folder. `apt-get source` does the work, with lists of its own besides the sources: neither root nor a deb-src
line of the system is needed. What was unpacked before is used again.
"""

import argparse
import fcntl
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DEFAULT_FOLDER = HERE.parent / "build/integrations/sources"
KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class SourceUnavailable(Exception):
    """The package is not available here; the message says why and what to do."""


def deb_lines(release: str) -> list[str]:
    """deb-src lines for the archives that the system's own deb lines name, or Debian's."""
    uris = []
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        if path.is_file():
            uris += re.findall(r"https?://[^\s\]]*debian[^\s\]]*", path.read_text(errors="replace"))
    archives = [uri.rstrip("/") for uri in dict.fromkeys(uris) if uri.rstrip("/").endswith(("/debian", "/debian-security"))]
    archives = archives or ["http://deb.debian.org/debian", "http://deb.debian.org/debian-security"]
    lines = []
    for uri in archives:
        suite = f"{release}-security" if uri.endswith("security") else release
        lines.append(f"deb-src [signed-by={KEYRING}] {uri} {suite} main")
    return lines


def debian_release() -> str:
    """The code name of this Debian. Raises SourceUnavailable on another system."""
    facts = {}
    for line in pathlib.Path("/etc/os-release").read_text().splitlines():
        name, _, value = line.partition("=")
        facts[name] = value.strip('"')
    if facts.get("ID") != "debian" or shutil.which("apt-get") is None or shutil.which("dpkg-source") is None:
        raise SourceUnavailable("Debian's sources need a Debian with apt-get and dpkg-source (package dpkg-dev)")
    return facts["VERSION_CODENAME"]


def run(command: list[str], folder: pathlib.Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise SourceUnavailable(f"{' '.join(command[:1] + command[-2:])} failed: {' / '.join(last)}")
    return done.stdout


def apt_options(folder: pathlib.Path) -> list[str]:
    """apt with lists and cache of its own below `folder`."""
    own = folder / "apt"
    (own / "lists/partial").mkdir(parents=True, exist_ok=True)
    (own / "parts").mkdir(exist_ok=True)
    sources = own / "sources.list"
    sources.write_text("\n".join(deb_lines(debian_release())) + "\n")
    settings = {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": own / "parts", "Dir::State::lists": own / "lists",
                "Dir::Cache": own, "APT::Sandbox::User": "root"}
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def unpacked_folders(package: str, folder: pathlib.Path) -> list[pathlib.Path]:
    """Folders that hold the package whole: dpkg-source writes the name last."""
    return sorted(path for path in folder.glob(f"{package}-*") if (path / "debian/rules").exists())


def fetch(package: str, folder: pathlib.Path = DEFAULT_FOLDER) -> pathlib.Path:
    """Returns the unpacked source of `package`, fetching it where it is missing. Raises SourceUnavailable."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # apt refuses a second process in its lists
        return fetch_alone(package, folder)


def fetch_alone(package: str, folder: pathlib.Path) -> pathlib.Path:
    if not unpacked_folders(package, folder):
        options = apt_options(folder)
        run(["apt-get", *options, "-qq", "update"], folder)
        run(["apt-get", *options, "-qq", "--download-only", "source", package], folder)
        description = max(folder.glob(f"{package}_*.dsc"), key=lambda path: path.stat().st_mtime)
        version = description.name.removeprefix(f"{package}_").removesuffix(".dsc").rpartition("-")[0]
        partial, whole = folder / f"unpacking-{package}", folder / f"{package}-{version}"
        shutil.rmtree(partial, ignore_errors=True)
        run(["dpkg-source", "-x", description.name, partial.name], folder)
        partial.rename(whole)
    return unpacked_folders(package, folder)[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", help="name of the source package")
    parser.add_argument("--folder", type=pathlib.Path, default=DEFAULT_FOLDER, help="where it goes (default: %(default)s)")
    arguments = parser.parse_args()
    try:
        print(fetch(arguments.package, arguments.folder))
    except SourceUnavailable as reason:
        print(f"debian_source: {reason}", file=sys.stderr)
        return 69
    return 0


if __name__ == "__main__":
    sys.exit(main())
