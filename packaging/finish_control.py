#!/usr/bin/env python3
"""Gives packages with shared libraries what Debian's policy asks for: the trigger of ldconfig and the file shlibs, in place of the
scripts that CPack writes, which would need a shell where the package is installed.

    finish_control.py PACKAGE.deb ...
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from finish_packages import time_of_the_source


def field(control, name):
    return re.search(rf"^{name}: (.*)$", control, re.MULTILINE).group(1)


def shlibs_of(folder, package, version):
    """A line for each library that other programs find by its name: that of `lib` itself."""
    lines = []
    for library in sorted((folder / "usr/lib").glob("lib*.so.*")):
        dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        name = re.search(r"\(SONAME\).*\[(\S+)\.so\.(\d+)\]", dynamic)
        if name and not library.is_symlink():
            lines.append(f"{name.group(1)} {name.group(2)} {package} (>= {version})\n")
    return "".join(lines)


def finish(deb):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "package"
        subprocess.run(["dpkg-deb", "--raw-extract", deb, folder], check=True)
        scripts = [folder / "DEBIAN" / script for script in ("postinst", "postrm") if (folder / "DEBIAN" / script).is_file()]
        if not scripts:
            return
        for script in scripts:
            script.unlink()
        control = (folder / "DEBIAN/control").read_text(encoding="utf-8")
        shlibs = shlibs_of(folder, field(control, "Package"), field(control, "Version"))
        if shlibs:
            (folder / "DEBIAN/shlibs").write_text(shlibs, encoding="utf-8")
            (folder / "DEBIAN/triggers").write_text("activate-noawait ldconfig\n", encoding="utf-8")
        environment = {"SOURCE_DATE_EPOCH": str(time_of_the_source()), **os.environ}
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", folder, deb], check=True, env=environment, stdout=subprocess.DEVNULL)


def main():
    os.umask(0o022)
    for deb in sys.argv[1:]:
        finish(Path(deb))
    return 0


if __name__ == "__main__":
    sys.exit(main())
