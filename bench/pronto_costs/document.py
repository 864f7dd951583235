"""The page of a run."""

from driver.tables import duration

from .parts import PARTS
from .shown import safe, table

SLOW_LOAD = 0.5  # an average, for each CPU, that says that other work ran

INTRODUCTION = """\
# What pronto costs

This page is generated: `python3 bench/pronto_costs.py --json build/pronto.json --markdown docs/measured/tables/pronto.md`. Sides that are
compared are processes that work in turn, in an order that is shuffled in each round; a ratio is taken within a round, and the median of
the rounds is given with its quartiles. The volatile side is compiled and linked without Stillpoint. Pools of the medium `memory` lie in
shared memory and must survive power (`--durability power`), so that each log entry is written around the caches and fenced; those of
the medium `file` lie on the disk of the build's folder. [bench](../../../bench/README.md) says how it is measured,
[papers.md](papers.md) has the same figures beside the paper's.
"""


def conditions(parts):
    facts = [part["facts"] for part in parts.values()]
    machine = facts[0]["machine"]
    loads = [one["machine"]["load_before"] for one in facts]
    busy = " Other work ran beside it: single figures are off by 20 % and more." if max(loads) > SLOW_LOAD * machine["cpus"] else ""
    commits = ", ".join(dict.fromkeys(str(one["commit"]) for one in facts))
    return (f"Measured {facts[0]['began'][:10]} on {machine['cpus']} CPUs ({safe(machine['processor'])}), {safe(machine['system'])}, "
            f"Linux {safe(machine['kernel'])}, commit {commits}, load average before {min(loads):.1f} to {max(loads):.1f}.{busy}")


def value_of(bar):
    if bar["value"] is None:
        return "not measured"
    return duration(bar["value"]) if bar["unit"] == "ns" else f"{bar['value']:.3g}{bar['unit']}"


def bars_of(whole):
    return [bar for name, part in whole["parts"].items() for bar in PARTS[name].bars(part["result"])]


def cells_of(result):
    return [cell for cells in result.values() if isinstance(cells, list) for cell in cells]


def page(whole):
    parts = {name: whole["parts"][name] for name in PARTS if name in whole["parts"]}
    lines = [INTRODUCTION, conditions(parts), ""]
    if whole["quick"]:
        lines += ["This was a quick run: small data and two rounds. It shows that everything works and measures nothing.", ""]
    for name, part in parts.items():
        left_out = dict.fromkeys(one for cell in cells_of(part["result"]) for one in cell.get("left_out", []))
        lines += [f"## {PARTS[name].TITLE}", "", PARTS[name].SAYS, "", *PARTS[name].lines(part["result"]), "",
                  *(f"Left out: {safe(one)}." for one in left_out), *([""] if left_out else [])]
        lines += ["Made by:", "", f"    {part['command']}", ""]
    return "\n".join(lines).rstrip() + "\n"
