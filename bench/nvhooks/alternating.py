"""Rounds of processes that load a store when they start, and then run YCSB's mixes in slices."""

MIXES = {"A": ("mix", 50), "B": ("mix", 5)}  # YCSB: percent of updates
EVERY_MIX = {**MIXES, "D": ("latest", 5), "F": ("modify", 50)}


def alternate(bench, sides, order, counts, durations_ms, mixes=None):
    """{name: {"load" | name of a mix: [answer of each round]}} of `sides` by their names. In each round that loads, every store is loaded
    again by a new process; those of the last one run the mixes. `order`: of each round; `counts`: how many rounds load, and how many run
    each mix; `durations_ms`: of the first, cold slice of a process in a mix, which is not counted, and of each that is."""
    mixes = mixes or MIXES
    answers = {name: {"load": [], **{mix: [] for mix in mixes}} for name in sides}
    loads, rounds = counts
    cold_ns, slice_ns = (int(duration * 1e6) for duration in durations_ms)
    running = {}

    def end(name):
        process = running[name]
        process.end()
        bench.place.remove(running.pop(name))

    try:
        for number in range(loads):
            for name in next(order):
                bench.progress.show(f"load, round {number + 1} of {loads}: {sides[name].name}")
                if name in running:
                    end(name)
                running[name] = bench.place.start(sides[name], {})
                answers[name]["load"].append(running[name].ready)
        for mix, words in mixes.items():
            for process in running.values():
                process.ask(*words, cold_ns)
            for number in range(rounds):
                bench.progress.show(f"workload {mix}, round {number + 1} of {rounds}")
                for name in next(order):
                    answers[name][mix].append(running[name].ask(*words, slice_ns))
        for name in list(running):
            end(name)
        return answers
    finally:
        for process in running.values():
            process.destroy()
            bench.place.remove(process)
