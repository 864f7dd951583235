#!/usr/bin/env python3
"""Adds to the installed parts what Debian's policy asks of a package: copyright, changelog, compressed manual pages, overrides of lintian.

    finish_packages.py FOLDER --version 1.0.0 --contact NAME --package runtime=libstillpoint1 ...

FOLDER/COMPONENT/usr is what a component installs. The changelog's time is that of SOURCE_DATE_EPOCH, or of the commit, or 0: two
builds of one source give the same packages.
"""

import argparse
import gzip
import os
import re
import subprocess
import sys
import textwrap
from email.utils import formatdate
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def time_of_the_source():
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    asked = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
    return int(asked.stdout) if asked.returncode == 0 and asked.stdout.strip() else 0


def debian_changelog(package, contact):
    """CHANGELOG.md as Debian writes it: each version, its points, the maintainer and a date."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = []
    for version, body in re.findall(r"^## (\d\S*)[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        points = [" ".join(point.split()) for point in re.findall(r"^- (.*?)(?=^- |^#|\Z)", body, re.MULTILINE | re.DOTALL)]
        lines = "".join(textwrap.fill(point, 78, initial_indent="  * ", subsequent_indent="    ") + "\n" for point in points)
        date = formatdate(time_of_the_source()).replace("-0000", "+0000")
        entries.append(f"{package} ({version}) unstable; urgency=medium\n\n{lines}\n -- {contact}  {date}\n")
    return "\n".join(entries)


def write_compressed(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw, gzip.GzipFile("", "wb", compresslevel=9, fileobj=raw, mtime=0) as file:
        file.write(data)
    path.chmod(0o644)


def copyright_text(component, memcached):
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    holder = re.search(r"^Copyright (?:\(c\) )?(.*)$", licence, re.MULTILINE | re.IGNORECASE)
    terms = "\n".join(f" {line}" if line.strip() else " ." for line in licence.strip().split("\n"))
    text = (HERE / "copyright.in").read_text(encoding="utf-8")
    text = text.replace("@HOLDER@", holder.group(1).strip() if holder else "the authors of Stillpoint").replace("@TERMS@", terms)
    if component == "memcached":  # The program's own, as Debian has it, and then the patch's.
        return (memcached / "debian/copyright").read_text(encoding="utf-8") + "\n\nThe patch that makes its items durable:\n\n" + text
    return text


def finish(folder, component, package, contact, memcached):
    usr = folder / component / "usr"
    documents = usr / "share/doc" / package
    documents.mkdir(parents=True, exist_ok=True)
    (documents / "copyright").write_text(copyright_text(component, memcached), encoding="utf-8")
    write_compressed(documents / "changelog.gz", debian_changelog(package, contact).encode())
    for page in list(usr.glob("share/man/man*/*.[1-8]")):
        write_compressed(page.with_name(page.name + ".gz"), page.read_bytes())
        page.unlink()
    if (usr / "bin/stillpoint-c++").is_symlink():
        (usr / "share/man/man1/stillpoint-c++.1.gz").symlink_to("stillpoint-cc.1.gz")
    if (usr / "share/zsh/site-functions").is_dir():  # the administrator's on Debian
        (usr / "share/zsh/site-functions").rename(usr / "share/zsh/vendor-completions")
    for archive in usr.glob("lib/*.a"):
        subprocess.run(["strip", "--strip-debug", "--enable-deterministic-archives", archive], check=True)
    if component == "memcached":  # Built by another build system.
        subprocess.run(["strip", "--strip-unneeded", "--remove-section=.comment", usr / "bin/memcached-durable"], check=True)
    overrides = HERE / "lintian" / component
    if overrides.is_file():
        target = usr / "share/lintian/overrides" / package
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(overrides.read_text(encoding="utf-8"), encoding="utf-8")
    for path in usr.rglob("*"):
        if not path.is_symlink():
            is_program = path.is_dir() or path.parent.name == "bin"
            path.chmod(0o755 if is_program else 0o644)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--contact", required=True)
    parser.add_argument("--memcached", type=Path, help="the sources that the durable memcached was built from")
    parser.add_argument("--package", action="append", default=[], help="COMPONENT=NAME")
    arguments = parser.parse_args()
    if f"\n## {arguments.version}" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        print(f"packages: CHANGELOG.md has no entry for version {arguments.version}", file=sys.stderr)
        return 1
    os.umask(0o022)
    for component, package in (one.split("=") for one in arguments.package):
        if (arguments.folder / component).is_dir():
            finish(arguments.folder, component, package, arguments.contact, arguments.memcached)
    return 0


if __name__ == "__main__":
    sys.exit(main())
