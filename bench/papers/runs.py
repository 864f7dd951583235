"""Runs of `stillpoint bench`, each made once however many figures need it; what they said can be saved and read again."""

import datetime
import os
import shlex

from driver.engines import Installation
from driver.errors import BenchError
from driver.main import listing
from driver.progress import Progress
from driver.subruns import bench_document

FORMAT = "stillpoint-papers"
FORMAT_VERSION = 2


class Catalogue:
    """The answer of `stillpoint bench list`: workloads, engines, and which engines are here."""

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
            return "an engine that this build does not have"
        state = self.engines[system.engine]["state"]
        return None if state == "here" else f"not here: {state}"


def catalogue(binaries):
    return Catalogue(listing(Installation(binaries, binaries / "stillpoint")))


class Measurements:
    """Documents of runs by their command. `saved`: those of an earlier program; `only_saved`: nothing is measured."""

    def __init__(self, options, saved=None, only_saved=False):
        self.options = options
        self.only_saved = only_saved
        self.retried = set()
        self.document = saved or {"format": FORMAT, "format_version": FORMAT_VERSION, "quick": options.quick,
                                  "began": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                                  "cpus": len(os.sched_getaffinity(0)), "seconds": options.seconds,
                                  "repeat": options.repeat, "load_before": os.getloadavg()[0], "runs": {}}
        self.progress = Progress(options.quiet)

    def plan(self, all_arguments):
        self.progress.plan(len(dict.fromkeys(shlex.join(words) for words in all_arguments)))

    def note(self, name, make):
        """A fact that is measured once and kept."""
        if name not in self.document:
            self.document[name] = None if self.only_saved else make()
        return self.document[name]

    def of(self, arguments, measure=None):
        """The document of a run, or {"failed": sentence}. `measure`: options -> the document, if it is not one of `stillpoint bench`."""
        key = shlex.join(arguments)
        known = self.document["runs"].get(key)
        if self.only_saved:
            return known or {"failed": "left for another run"}
        if known is None or ("failed" in known and key not in self.retried):
            self.retried.add(key)
            self.progress.step(key)
            try:
                self.document["runs"][key] = measure(self.options) if measure else self.measured(arguments)
            except BenchError as failure:
                self.document["runs"][key] = {"failed": str(failure)}
        return self.document["runs"][key]

    def measured(self, arguments):
        place = ["--pool", self.options.pool, "--medium", self.options.medium] if self.options.pool else []
        return bench_document(self.options, [*arguments, *place])
