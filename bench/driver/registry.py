"""The benchmarks: each is one line here, and one command, `python3 bench/run.py NAME`."""

import dataclasses
import importlib
import importlib.util
import time

from . import command, main
from .errors import UNAVAILABLE, BenchError


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """`module`, or `what` in it, is a benchmark (benchmark.py) or a page (pages.py); `main` measures and shows it."""

    question: str
    module: str
    what: str = None
    main: str = "driver.benchmark"
    is_in_all: bool = False

    def run(self, name, arguments):
        if importlib.util.find_spec(self.module.partition(".")[0]) is None:
            raise BenchError(f"{name} measures what only a checkout has: run python3 bench/run.py {name} there", UNAVAILABLE)
        module = importlib.import_module(self.module)
        return importlib.import_module(self.main).main(getattr(module, self.what) if self.what else module, name, arguments)


PAGES = "driver.pages"
BENCHMARKS = {
    "stop_time": Benchmark("How long does a checkpoint hold the program's threads, with a heap of 1 GiB? How long does recovery take?",
                           "parts.stop_time", is_in_all=True),
    "memory": Benchmark("What does a program with 64 MiB of durable memory take in memory, part by part?", "parts.memory", is_in_all=True),
    "pool_copy": Benchmark("What does a copy of a running program's pool of 1 GiB cost that program, and how long does it take?", "parts.pool_copy"),
    "pool_increments": Benchmark("How large is an increment after 1 % of a pool of 1 GiB has changed, and how long does it take?",
                                 "parts.pool_increments"),
    "exporter_cost": Benchmark("What does a program pay for figures that Prometheus asks for each second?", "parts.exporter_cost"),
    "quiescence": Benchmark("Do checkpoints go on while a thread sleeps, computes or blocks outside every FASE?", "parts.quiescence",
                            is_in_all=True),
    "allocator": Benchmark("How does the durable heap compare with glibc malloc? How many pages do frees dirty?", "parts.programs",
                           "ALLOCATOR", is_in_all=True),
    "locks": Benchmark("What does an intercepted lock cost, against libc's own function?", "parts.programs", "LOCKS", is_in_all=True),
    "marks": Benchmark("What does the mark after a store cost, and a look over all marks?", "parts.programs", "MARKS", is_in_all=True),
    "replay": Benchmark("What does replaying redo logs cost, by timestamp or along links, with one replayer or two?", "parts.programs", "REPLAY",
                        is_in_all=True),
    "clients": Benchmark("What is sharing a sync worth to 64 clients on a file, against an fdatasync for each operation?", "parts.clients",
                         is_in_all=True),
    "volatile_programs": Benchmark("What does an engine cost programs that keep nothing durable?", "parts.volatile_programs",
                                   is_in_all=True),
    "executors": Benchmark("Which executor of spht's transactions is fastest?", "parts.programs", "EXECUTORS", is_in_all=True),
    "nvhooks": Benchmark("What do compiled-in hooks cost, by layer and optimisation?", "nvhooks.benchmark", is_in_all=True),
    "breeze_ports": Benchmark("What do Breeze and libpmemobj cost a B+tree and a cuckoo table, in speed and in changed lines?",
                              "breeze_ports.benchmark"),
    "breeze_costs": Benchmark("How long does the engine breeze take to open a pool, and what does its collection of garbage cost?",
                              "breeze_costs.benchmark"),
    "respct_costs": Benchmark("What does the engine respct cost, part by part?", "respct_costs", "PAGE", PAGES),
    "pronto_costs": Benchmark("What does the engine pronto cost against volatile objects, libpmemobj and RocksDB?", "pronto_costs.page",
                              "PAGE", PAGES),
    "papers": Benchmark("What do the papers' figures and tables give on this machine?", "papers.program", main="papers.program"),
    "commit_model": Benchmark("What do SPHT and the systems that it is compared with reach on 64 threads, by simulation?", "model.program",
                              main="model.program"),
    "memcached": Benchmark("What does memcached lose when its items survive a crash?", "memcached.main", main="memcached.main"),
    "tokyocabinet": Benchmark("Tokyo Cabinet's database on memory, durable, against its own synchronised file", "tokyocabinet.benchmark"),
    "kyotocabinet": Benchmark("The same of Kyoto Cabinet's databases on memory", "kyotocabinet.benchmark"),
    "rrdcached": Benchmark("What does rrdcached lose when each update is durable once it is answered?", "rrdcached.benchmark"),
}


def run_all(arguments):
    """`stillpoint bench` and the benchmarks of all parts, one after the other."""
    names = ["", *(name for name, one in BENCHMARKS.items() if one.is_in_all)]
    failures = 0
    for number, name in enumerate(names, start=1):
        print(f"{number} of {len(names)}: {name or 'stillpoint bench'}", flush=True)
        begin = time.monotonic()
        code = run([*([name] if name else []), *arguments])
        failures += code not in (0, command.SKIPPED)
        print(f"  ended with exit code {code} in {time.monotonic() - begin:.0f} s\n", flush=True)
    return 1 if failures else 0


def run(arguments):
    """A benchmark by its name, all of them, or `stillpoint bench`; its exit code."""
    if arguments[:1] == ["all"]:
        return run_all(arguments[1:])
    if arguments and arguments[0] in BENCHMARKS:
        name = arguments[0]
        return command.run(name, lambda words: BENCHMARKS[name].run(name, words), arguments[1:])
    return command.run("stillpoint: error", main.main, arguments)
