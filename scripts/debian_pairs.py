"""A million real key-value pairs, from what apt and dpkg know: each field of each package, and each installed file's checksum."""

import os
import shutil
import subprocess
from pathlib import Path

KEY_BYTES_MAX = 250  # memcached's
DPKG_FILES = Path("/var/lib/dpkg/info")


class TooFewPairs(Exception):
    """This system does not have as many; the message says how to get them."""


def package_fields(text):
    """Yields (package/version/field, value) of each stanza of a Packages file, given as bytes."""
    for stanza in text.split(b"\n\n"):
        fields = {}
        name = None
        for line in stanza.split(b"\n"):
            if line[:1] in (b" ", b"\t"):
                fields[name] += b"\n" + line.strip()
            elif b":" in line:
                name, _, value = line.partition(b":")
                fields[name] = value.strip()
        if b"Package" in fields:
            place = b"%s/%s/" % (fields[b"Package"], fields.get(b"Version", b"-"))
            for name, value in fields.items():
                yield place + name, value


def known_packages():
    """The text of all packages that apt knows of; empty where it knows none."""
    if not shutil.which("apt-cache"):
        return b""
    return subprocess.run(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout


def installed_files():
    """Yields (path, "MD5 size") of files that dpkg has installed."""
    for sums in sorted(DPKG_FILES.glob("*.md5sums")):
        for line in sums.read_bytes().splitlines():
            checksum, _, path = line.partition(b"  ")
            try:
                yield b"/" + path, b"%s %d" % (checksum, os.stat(b"/" + path).st_size)
            except OSError:
                continue


def debian_pairs(wanted):
    """`wanted` pairs, {key: value}, as many as there are of packages, then of files. Raises TooFewPairs."""
    pairs = {}
    for source in (package_fields(known_packages()), installed_files()):
        for key, value in source:
            if len(pairs) == wanted:
                return pairs
            if value and len(key) <= KEY_BYTES_MAX and not set(key) & set(b" \r\n\t") and key.isascii():
                pairs[key.decode()] = value
    if len(pairs) < wanted:
        raise TooFewPairs(f"apt and dpkg know {len(pairs)} pairs here, {wanted} are wanted: run apt-get update, or ask for fewer (--pairs)")
    return pairs
