"""Statements of SPHT's text about its figures, next to what the model gives for the same."""

import dataclasses

SPHT = ("SPHT-NL", "SPHT-FL", "SPHT-BL")
HARDWARE_RIVALS = ("DudeTM", "Crafty", "cc-HTM")
STILL_GROWING = 1.05  # fewer threads that reach all but a twentieth of the highest throughput are as many as are of use


@dataclasses.dataclass(frozen=True)
class Claim:
    where: str
    text: str
    paper: str
    model: object  # Runs of the workload -> text
    workload: str


class Runs:
    """The runs of one workload on one machine."""

    def __init__(self, document):
        self.runs = {(run["system"], run["threads"]): run for run in document["runs"]}
        self.systems = list(dict.fromkeys(run["system"] for run in document["runs"]))
        self.threads = sorted({run["threads"] for run in document["runs"]})

    def rate(self, system, threads):
        return self.runs[system, threads]["transactions_per_s"]

    def inside(self, system, threads, activity):
        """Share of the time inside transactions."""
        shares = self.runs[system, threads]["shares"]
        return shares[activity] / (1 - shares["outside"])

    def aborts(self, system, threads):
        return self.runs[system, threads]["abort_rate"]

    def scales_to(self, system):
        """The least number of threads that reaches, but for a twentieth, the highest throughput."""
        highest = max(self.rate(system, threads) for threads in self.threads)
        return next(threads for threads in self.threads if self.rate(system, threads) * STILL_GROWING >= highest)


def percent(value):
    return f"{100 * value:.0f} %"


def times_the_best(runs, systems, others, threads):
    return f"{max(runs.rate(one, threads) for one in systems) / max(runs.rate(one, threads) for one in others):.1f}"


def ratio(systems, others, threads):
    return lambda runs: times_the_best(runs, systems, others, threads)


def commit_share(system, threads):
    return lambda runs: percent(runs.inside(system, threads, "commit_phase"))


def scaling(*systems):
    return lambda runs: ", ".join(f"{runs.scales_to(one)}" for one in systems)


def largest_loss(systems, reference):
    return lambda runs: percent(max(1 - runs.rate(one, threads) / runs.rate(reference, threads)
                                    for one in systems for threads in runs.threads))


def abort_rates(systems, threads):
    return lambda runs: ", ".join(percent(runs.aborts(one, threads)) for one in systems)


CLAIMS = [
    Claim("4.1.1", "threads up to which SPHT gains", "64", scaling("SPHT-NL"), "vacation_low"),
    Claim("4.1.1", "SPHT to NV-HTM at 64 threads: SPHT-NL, the best variant", "2.6",
          lambda runs: f"{times_the_best(runs, SPHT[:1], ['NV-HTM'], 64)}, {times_the_best(runs, SPHT, ['NV-HTM'], 64)}", "vacation_low"),
    Claim("4.1.1", "NV-HTM's time in the commit phase at 64 threads", "76 %", commit_share("NV-HTM", 64), "vacation_low"),
    Claim("4.1.1", "SPHT's time in the commit phase at 64 threads", "62 %", commit_share("SPHT-NL", 64), "vacation_low"),
    Claim("4.1.1", "cc-HTM's time in the commit phase at 32 threads", "almost 95 %", commit_share("cc-HTM", 32), "vacation_low"),
    Claim("4.1.1", "largest loss by links, against SPHT-NL", "25 %", largest_loss(SPHT[1:], "SPHT-NL"), "vacation_low"),
    Claim("4.1.1", "aborts of Crafty, DudeTM and SPHT at 64 threads", "the first two much higher",
          abort_rates(["Crafty", "DudeTM", "SPHT-NL"], 64), "vacation_low"),
    Claim("4.1.1", "the best system at 64 threads besides SPHT", "NV-HTM",
          lambda runs: max((one for one in runs.systems if one not in SPHT), key=lambda one: runs.rate(one, 64)), "vacation_low"),
    Claim("4.1.1", "largest loss by links, against SPHT-NL", "25 %", largest_loss(SPHT[1:], "SPHT-NL"), "ssca2"),
    Claim("4.1.1", "SPHT-NL to NV-HTM at 64 threads", "about 1.3", ratio(SPHT[:1], ["NV-HTM"], 64), "kmeans_vlow"),
    Claim("4.1.1", "SPHT-NL to the best other system with HTM at 64 threads", "about 5", ratio(SPHT[:1], HARDWARE_RIVALS, 64),
          "kmeans_vlow"),
    Claim("4.1.1", "aborts of SPHT-NL, -FL, -BL at 64 threads", "79 %, 45 %, 43 %", abort_rates(SPHT, 64), "kmeans_vlow"),
    Claim("4.1.1", "links make SPHT faster at 64 threads", "yes",
          lambda runs: "yes" if min(runs.rate(one, 64) for one in SPHT[1:]) > runs.rate("SPHT-NL", 64) else "no", "kmeans_vlow"),
    Claim("4.1.2", "threads up to which SPHT-NL, -FL, -BL gain", "48", scaling(*SPHT), "tpcc"),
    Claim("4.1.2", "threads up to which NV-HTM gains", "8", scaling("NV-HTM"), "tpcc"),
    Claim("4.1.2", "threads up to which cc-HTM gains", "8", scaling("cc-HTM"), "tpcc"),
    Claim("4.1.2", "threads up to which DudeTM gains", "12", scaling("DudeTM"), "tpcc"),
    Claim("4.1.2", "SPHT-NL at 20 threads to 16: hyper-threads begin", "a drop",
          lambda runs: f"{runs.rate('SPHT-NL', 20) / runs.rate('SPHT-NL', 16):.2f}", "tpcc"),
    Claim("1", "the best SPHT to NV-HTM at 64 threads", "up to 2.2", ratio(SPHT, ["NV-HTM"], 64), "tpcc"),
]
