"""Runs of `stillpoint bench`, each made once however many figures need it; what they said can be saved and read again."""

import datetime
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FORMAT = "stillpoint-papers"
FORMAT_VERSION = 1
COMMAND_LIMIT_S = 1800


class PapersError(Exception):
    """What is wrong and what to do, in a sentence."""


class Catalogue:
    """What `stillpoint bench list` knows: workloads, engines, and which engines are here."""

    def __init__(self, listed):
        self.workloads = {row["name"]: row for row in listed["workloads"]}
        self.engines = {row["name"]: row for row in listed["engines"]}

    @property
    def engines_here(self):
        return [name for name, row in self.engines.items() if row["state"] == "here"]

    def why_without(self, system):
        """Why a system gives no figures here; None: it does."""
        if system.engine is None:
            return system.absent
        if system.engine not in self.engines:
            return "engine not yet here"
        state = self.engines[system.engine]["state"]
        return None if state == "here" else f"not here: {state}"


def bench_words(binaries):
    command = Path(binaries) / "stillpoint"
    if not os.access(command, os.X_OK):
        raise PapersError(f"{command} is missing: build it first (make), or name the folder of the build's programs with --binaries")
    return [str(command), "bench"]


def catalogue(binaries):
    done = subprocess.run([*bench_words(binaries), "list", "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        raise PapersError(f"stillpoint bench list --json - ended with exit code {done.returncode}: {done.stderr.strip()}")
    return Catalogue(json.loads(done.stdout))


class Progress:
    """A line for each run on standard error, with how many there are and how long it has taken."""

    def __init__(self, quiet):
        self.quiet = quiet
        self.began = time.monotonic()
        self.count = self.done = 0

    def step(self, text):
        self.done += 1
        if not self.quiet:
            print(f"{time.monotonic() - self.began:6.0f} s  [{self.done}/{self.count}] {text}", file=sys.stderr, flush=True)


class Measurements:
    """Documents of runs by their command. `saved`: those of an earlier program; `only_saved`: nothing is measured."""

    def __init__(self, options, saved=None, only_saved=False):
        self.options = options
        self.only_saved = only_saved
        self.retried = set()
        self.document = saved or {"format": FORMAT, "format_version": FORMAT_VERSION, "quick": options.quick,
                                  "began": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                                  "cpus": len(os.sched_getaffinity(0)), "load_before": os.getloadavg()[0], "runs": {}}
        self.progress = Progress(options.quiet)

    def plan(self, all_arguments):
        self.progress.count = len(dict.fromkeys(shlex.join(words) for words in all_arguments))

    def note(self, name, make):
        """A fact that is measured once and kept."""
        if name not in self.document:
            self.document[name] = None if self.only_saved else make()
        return self.document[name]

    def of(self, arguments, command=None):
        """The document of a run, or {"failed": sentence}. `command`: words before the arguments, if not those of the bench."""
        key = shlex.join(arguments)
        known = self.document["runs"].get(key)
        if self.only_saved:
            return known or {"failed": "not in the saved results"}
        if known is None or ("failed" in known and key not in self.retried):
            self.retried.add(key)
            self.progress.step(key)
            self.document["runs"][key] = self.measured(arguments, command)
        return self.document["runs"][key]

    def measured(self, arguments, command):
        words = ([*command, *arguments] if command else
                 [*bench_words(self.options.binaries), *self.sized(arguments), *self._length(), "--quiet", "--json", "-"])
        try:
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=COMMAND_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return {"failed": f"no end within {COMMAND_LIMIT_S} s"}
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            return {"failed": said.removeprefix("stillpoint: error: ")}
        return json.loads(done.stdout)

    def sized(self, arguments):
        """The arguments, but for the size of the data in a quick run, which has no time to make millions of keys."""
        if not self.options.quick or "--size" not in arguments:
            return arguments
        at = arguments.index("--size") + 1
        return [*arguments[:at], str(max(2000, int(arguments[at]) // 50)), *arguments[at + 1:]]

    def _length(self):
        if self.options.quick:
            return ["--smoke"]
        words = ["--seconds", str(self.options.seconds), "--repeat", str(self.options.repeat)]
        return [*words, "--pool", self.options.pool, "--medium", self.options.medium] if self.options.pool else words


def load(path):
    try:
        document = json.loads(Path(path).read_text())
    except (OSError, ValueError) as failure:
        raise PapersError(f"{path} cannot be read as saved results: {failure}") from None
    if document.get("format") != FORMAT or document.get("format_version") != FORMAT_VERSION:
        raise PapersError(f"{path} has no results of this version of bench/papers: make them with --json {path}")
    return document
