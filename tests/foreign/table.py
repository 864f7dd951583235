"""The form of a row of the table of foreign programs, and how output is made comparable."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A program of another project, and a script that lets it work.

    The script runs by `sh -eu` in an empty folder and starts the program by `./run PROGRAM ARGUMENTS`, which is a plain exec in the
    reference run and `stillpoint run` in the others. It has $INPUTS (text, random, many: files of 4 MiB, 1 MiB, 400,000 lines), $PORT
    (free, on loopback) and $FILES, the folder files here.
    """

    name: str
    packages: str  # Debian's names, for the message where a command is missing
    needs: tuple  # commands, or files with a slash
    script: str
    drop: str = ""  # lines of output that match are not compared
    replace: tuple = ()  # (pattern, replacement) for what is compared
    sorted_lines: bool = False
    expect: tuple = ()  # patterns that the output of durable runs must have; then it is not compared with the reference
    limit_s: int = 120
    quick: bool = False
    keeps: bool = True  # False: nothing need be kept, since it ends past libc or holds a lock all the time
    variants: tuple = ()  # empty: all that make sense
    durable: bool = False  # the program is ours: no reference run

    def canonical(self, text):
        lines = [line for line in text.splitlines() if not (re.search(f"^Terminated$|{self.drop}" if self.drop else "^Terminated$", line))]
        for pattern, replacement in self.replace:
            lines = [re.sub(pattern, replacement, line) for line in lines]
        return "\n".join(sorted(lines) if self.sorted_lines else lines)


NUMBERS = ((r"\d+(\.\d+)?", "N"), (r"  +", " "))
