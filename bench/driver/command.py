"""How a command reads its arguments, and how it ends."""

import argparse
import signal
import subprocess
import sys

from .errors import FELL_SHORT, INTERRUPTED, USAGE, WRONG_RESULT, BenchError

SKIPPED = 77  # what is measured is not here; the exit code by which ctest knows it


class Parser(argparse.ArgumentParser):
    """Errors in the form of the command's other subcommands."""

    def error(self, message):
        raise BenchError(f"{message} (see `{self.prog} --help`)", USAGE)


def positive(kind):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is no {'whole ' if kind is int else ''}number above 0")
        return value

    return parse


def interrupt(*_):
    """SIGTERM ends a run as Ctrl-C does: with what there is, and nothing left."""
    raise KeyboardInterrupt


def run(name, command, arguments):
    """A command as a whole: its exit code. `name`: what its errors begin with."""
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return command(arguments)
    except BenchError as failure:
        print(f"{name}: {failure}", file=sys.stderr)
        return failure.code
    except subprocess.CalledProcessError as failure:
        print(f"{name}: {' '.join(map(str, failure.cmd))} ended with exit code {failure.returncode}: {failure.stdout or ''}", file=sys.stderr)
        return WRONG_RESULT
    except KeyboardInterrupt:
        print(f"{name}: interrupted; what was measured until then is in the file that --json names", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return FELL_SHORT
