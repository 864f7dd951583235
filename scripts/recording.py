#!/usr/bin/env python3
"""Draws docs/demo.svg: a terminal in which scripts/demo.py really ran, each line at the moment at which it came (longer pauses
are cut to PAUSE_MAX_S).

Usage: recording.py [--output docs/demo.svg] [-- arguments of demo.py]. The picture is text in SVG with no script in it; a
viewer that does not animate shows all lines at once.
"""

import argparse
import subprocess
import sys
import time
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEMO = ["scripts/demo.py", "--seed", "7", "--kills", "3"]
PAUSE_MAX_S = 0.7
CHARACTER_PX, LINE_PX, MARGIN_PX = 7.25, 18, 16
STYLE = """
.back{fill:#0d1117} .bar{fill:#161b22} .dot{fill:#30363d}
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#c9d1d9;white-space:pre}
.kill{fill:#ff7b72} .good{fill:#7ee787} .head{fill:#79c0ff}
.line{animation:appear .01s backwards} @keyframes appear{from{opacity:0}to{opacity:1}}
@media (prefers-reduced-motion:reduce){.line{animation:none}}
"""


def record(words):
    """[(seconds since the start of the picture, line)] of a command; a failure ends this program with the command's words."""
    moment_s, before, lines = 0.0, time.monotonic(), []
    with subprocess.Popen([sys.executable, "-B", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            now = time.monotonic()
            moment_s += min(now - before, PAUSE_MAX_S)
            before = now
            lines.append((moment_s, line.rstrip()))
    if process.returncode != 0:
        sys.exit("\n".join(["recording: the demo failed:", *(line for _, line in lines)]))
    return lines


def kind_of(line):
    if "SIGKILL" in line:
        return "kill"
    if line.endswith("identical") or "it finished" in line:
        return "good"
    return "head" if line.startswith(("$", "1.", "2.")) else "plain"


def picture(words, lines):
    """The SVG of a command and its timed lines."""
    shown = [(0.0, "$ python3 " + " ".join(words)), *lines]
    columns = max(len(line) for _, line in shown)
    width, top = round(columns * CHARACTER_PX + 2 * MARGIN_PX), 28 + MARGIN_PX
    height = top + len(shown) * LINE_PX + MARGIN_PX
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
             "<title>Stillpoint's demo: a program is killed three times with SIGKILL and finishes with the right result</title>",
             f"<style>{STYLE}</style>", f'<rect class="back" width="{width}" height="{height}" rx="8"/>',
             f'<rect class="bar" width="{width}" height="28" rx="8"/>']
    parts += [f'<circle class="dot" cx="{18 + 18 * dot}" cy="14" r="5"/>' for dot in range(3)]
    for at, (moment, line) in enumerate(shown):
        if line:
            parts.append(f'<text class="line {kind_of(line)}" x="{MARGIN_PX}" y="{top + at * LINE_PX + 8}" '
                         f'style="animation-delay:{moment:.2f}s" xml:space="preserve">{escape(line)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--output", type=Path, default=ROOT / "docs/demo.svg")
    parser.add_argument("demo", nargs="*", help="arguments of demo.py in place of --seed 7 --kills 3")
    arguments = parser.parse_args()
    words = [DEMO[0], *arguments.demo] if arguments.demo else DEMO
    arguments.output.write_text(picture(words, record(words)), encoding="utf-8")
    print(f"{arguments.output} written")


if __name__ == "__main__":
    main()
