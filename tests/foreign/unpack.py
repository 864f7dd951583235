#!/usr/bin/env python3
"""unpack.py FOLDER: servers of Debian, downloaded and unpacked below FOLDER but not installed: installing one would start it.
Does nothing for those that are there, or that this system has already."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SERVERS = {"redis-server": ("redis-server", "redis-tools"), "memcached": ("memcached",), "nginx": ("nginx",), "haproxy": ("haproxy",),
           "unbound": ("unbound",)}


def main():
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for command, packages in SERVERS.items():
        here = folder / command
        if here.exists() or shutil.which(command, path="/usr/local/bin:/usr/bin:/usr/sbin:/usr/local/sbin"):
            continue
        with tempfile.TemporaryDirectory(dir=folder) as downloads:
            done = subprocess.run(["apt-get", "download", "-q", *packages], cwd=downloads, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(f"unpack: {command} cannot be downloaded: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
                continue
            for archive in Path(downloads).glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", archive, Path(downloads) / "files"], check=True)
            (Path(downloads) / "files").rename(here)


if __name__ == "__main__":
    main()
