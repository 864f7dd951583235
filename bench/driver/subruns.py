"""Runs of `stillpoint bench` that another benchmark is made of: in this process, with nothing printed."""

from . import main
from .errors import BenchError


def sized(words):
    """The arguments, but for the size of the data in a quick run, which has no time to make millions of keys."""
    if "--size" not in words:
        return words
    at = words.index("--size") + 1
    return [*words[:at], str(max(2000, int(words[at]) // 50)), *words[at + 1:]]


def bench_document(options, arguments, seconds=None, repeat=None):
    """The document of `stillpoint bench` with these arguments; durability `process` where they name none. `options`: binaries, seconds,
    repeat and quick."""
    words = ["--durability", "process", *(sized(arguments) if options.quick else arguments), "--quiet", "--json", "-"]
    words += ["--smoke"] if options.quick else ["--seconds", str(max(seconds or options.seconds, 0.1)), "--repeat",
                                                     str(repeat or options.repeat)]
    run = main.Run(main.command_line.parse([*words, "--binaries", str(options.binaries)]), words)
    run.measure()
    if not run.complete:
        raise KeyboardInterrupt
    if not run.results:
        raise BenchError(f"stillpoint bench {' '.join(words)} measured nothing")
    return run.document()
