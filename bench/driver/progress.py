"""The progress that a person sees while it runs: one line that changes on a terminal, a line for each step elsewhere."""

import sys
import time


class Progress:
    def __init__(self, quiet=False, stream=sys.stderr):
        self.stream = stream
        self.quiet = quiet
        self.is_terminal = stream.isatty()
        self.began = time.monotonic()
        self.drawn = 0
        self.steps = 0
        self.done = 0

    def plan(self, steps):
        self.steps = steps

    def step(self, text):
        """A new step begins."""
        self.done += 1
        number = f"{self.done}/{self.steps}" if self.steps else self.done
        self.show(f"[{number}] {text}", lasting=not self.is_terminal)

    def show(self, text, lasting=False):
        if self.quiet:
            return
        text = f"{time.monotonic() - self.began:6.0f} s  {text}"
        if self.is_terminal:
            self.stream.write("\r" + text[:110].ljust(self.drawn))
            self.drawn = min(110, len(text))
        elif lasting:
            self.stream.write(text + "\n")
        self.stream.flush()

    def say(self, text):
        """A line that stays."""
        if self.is_terminal and self.drawn:
            self.stream.write("\r" + " " * self.drawn + "\r")
            self.drawn = 0
        self.stream.write(text + "\n")
        self.stream.flush()

    def end(self):
        if self.is_terminal and self.drawn:
            self.stream.write("\r" + " " * self.drawn + "\r")
            self.drawn = 0
