"""Colours: one table for the page, its plots, and plots in files.

Each has a light and a dark value; text reaches a contrast of 4.5 on page, surface and the levels, series 3 on the surface. For eyes and
printers that do not tell hues apart each line has a marker of its own, and each bar stands beside its name.
"""

# name: (light, dark)
COLOURS = {
    "page": ("#f4f6f8", "#10151b"),
    "surface": ("#ffffff", "#182028"),
    "ink": ("#15202b", "#e8edf2"),
    "muted": ("#495664", "#b0bbc7"),
    "line": ("#c3ccd5", "#435060"),
    "accent": ("#0a4f9e", "#8fc3ff"),
    "met": ("#0b6b3a", "#7fdca6"),
    "missed": ("#a82018", "#ffa198"),
    "level-4": ("#bcdcff", "#0f4478"),
    "level-3": ("#e3f0ff", "#1c3550"),
    "level-2": ("#fff0cc", "#4d3b14"),
    "level-1": ("#ffd5ad", "#67330f"),
    "series-0": ("#5c6873", "#a9b4bf"),  # the baseline
    "series-1": ("#0b62c1", "#6fb4ff"),
    "series-2": ("#c4540a", "#ffa05c"),
    "series-3": ("#0c7d5b", "#55d3a5"),
    "series-4": ("#8b3a9e", "#dd9ff0"),
    "series-5": ("#776500", "#d8c552"),
    "series-6": ("#0b7486", "#5ccfe0"),
    "series-7": ("#bf2459", "#ff93b3"),
}
# The colours that a plot is drawn in, to be found again in its SVG: no two are equal, and nothing else is drawn in these.
MARKS = {name: f"#0101{number:02x}" for number, name in enumerate(COLOURS)}
SERIES = 7
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<", ">"]


class Styles:
    """Colour and marker of each configuration: the same in every plot of a run."""

    def __init__(self, kinds):
        """`kinds`: of each configuration, by its name."""
        baselines = [name for name in kinds if kinds[name] == "volatile"][:1]
        others = [name for name in kinds if name not in baselines]
        self.numbers = {name: None for name in baselines} | {name: at for at, name in enumerate(others)}

    def number(self, name):
        return self.numbers.setdefault(name, len(self.numbers))

    def colour(self, name):
        at = self.number(name)
        return MARKS["series-0" if at is None else f"series-{at % SERIES + 1}"]

    def marker(self, name):
        at = self.number(name)
        return "*" if at is None else MARKERS[at % len(MARKERS)]


def declarations(theme):
    """CSS custom properties; `theme` 0: light, 1: dark."""
    return "".join(f"--{name}:{values[theme]};" for name, values in COLOURS.items())
