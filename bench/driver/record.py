"""Where and how a run was made: enough to repeat it and to doubt it."""

import datetime
import os
import platform
import subprocess
from pathlib import Path


def first_line(words):
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        return done.stdout.strip().split("\n")[0]
    except (OSError, subprocess.CalledProcessError):
        return None


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU implementer")):
            return line.split(":", maxsplit=1)[1].strip()
    return platform.machine()


def memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def commit_of(folder):
    """The commit of the sources that this driver lies in, with a + where they have changes; None: installed."""
    commit = first_line(["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"])
    if commit is None:
        return None
    changed = first_line(["git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no"])
    return commit + ("+" if changed else "")


def record(command, version, compiler, options):
    """`options`: the parsed command line, as JSON can hold it."""
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "began": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": command,
        "version": version,
        "commit": commit_of(Path(__file__).resolve().parent),
        "compiler": compiler,
        "machine": {"processor": processor(), "cpus": len(os.sched_getaffinity(0)), "memory_bytes": memory_bytes(),
                    "kernel": platform.release(), "system": system_name(),
                    "governor": governor.read_text().strip() if governor.is_file() else None,
                    "load_before": os.getloadavg()[0]},
        "options": options,
    }


def system_name():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return platform.system()
