"""Machine, options and dates of a run as (name, text) pairs; names and sentences that the page and the document share."""


from .. import tables
from .reading import inside, number, text

TITLE = "Every engine and every peer on the same work"
SENTENCE = ("Stillpoint's engines and other systems for durable data, measured by one program, in turn, in one run on one machine; "
            "a ratio of 1 is the speed of the same program without Stillpoint (volatile).")
SUMMARY = "Speed as a ratio to the same program without Stillpoint, the faster of volatile and volatile-words where both ran"
TURNS = ("Each configuration is a process of its own; they work in turn, in an order that is shuffled in each round. A ratio is taken between "
         "two slices of the same round, because machines drift; the median of the rounds counts, with its quartiles. ")
ENDS_INSIDE = ("A slice ends when what was written in it is durable: checkpoints, snapshots and that wait are inside its time. Memory is what no "
               "named file holds and the blocks of the pool's files together.")
ENDS_OUTSIDE = ("Before a process hands over it waits until what it wrote is durable; that wait is not in its time. Memory is the process's "
                "resident memory.")
NOT_COMPLETE = "This run was interrupted: what follows is what was measured until then."
SLICE_MS_TO_JUDGE = 3000
SMOKE = "Small inputs and two rounds (--smoke): this shows that everything works, and measures nothing."


def load_warning(load, cpus):
    """The sentence at the top of everything, where the machine had other work than the CPUs can do at once; None: it had not."""
    if load is None or cpus is None or load <= cpus:
        return None
    return (f"The load was {load:.1f} on {cpus} CPUs before this run began: other programs took part of the time, and the figures are not those "
            "of an idle machine.")


def short_slice_warning(slice_ms):
    """None: slices were long enough to judge an engine by."""
    if slice_ms is None or slice_ms >= SLICE_MS_TO_JUDGE:
        return None
    return (f"Slices were {slice_ms / 1000:.2g} s long. Engines are judged by slices of {SLICE_MS_TO_JUDGE / 1000:.0f} s or more: in short "
            "ones a disk's cache can hide what durability costs, and a wait for the end of a checkpoint can exaggerate it.")


def how(run):
    """How a run was measured: older runs waited for durability outside of their slices."""
    return TURNS + (ENDS_INSIDE if all(cell.has_durable_end for cell in run.cells) else ENDS_OUTSIDE)


def notices(run):
    """Sentences that a reader must know before any figure."""
    shortest_ms = min((cell.slice_ms for cell in run.cells if cell.slice_ms is not None), default=None)
    warning = load_warning(number(run.raw, "machine", "load_before"), number(run.raw, "machine", "cpus"))
    length = SMOKE if run.is_smoke else short_slice_warning(shortest_ms)
    return [text for text in (warning, None if run.is_complete else NOT_COMPLETE, length) if text]


# Level of a ratio to volatile, what it means; colours are named after the level.
LEVELS = [(0.9, 4, "0.9 or more"), (0.5, 3, "0.5 to 0.9"), (0.1, 2, "0.1 to 0.5"), (0, 1, "less than 0.1")]


def level_of(ratio):
    """4 (near volatile) to 1; None without a ratio."""
    if ratio is None:
        return None
    return next((level for limit, level, _ in LEVELS if ratio >= limit), 1)


def one_or_list(value):
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def machine_facts(run):
    memory = number(run.raw, "machine", "memory_bytes")
    load = number(run.raw, "machine", "load_before")
    cpus = number(run.raw, "machine", "cpus")
    facts = [("Processor", text(run.raw, "machine", "processor")),
             ("CPUs used", None if cpus is None else str(cpus)),
             ("Memory", None if memory is None else f"{memory / 2**30:.1f} GiB"),
             ("System", text(run.raw, "machine", "system")),
             ("Kernel", text(run.raw, "machine", "kernel")),
             ("Frequency governor", text(run.raw, "machine", "governor")),
             ("Load before the run", None if load is None else f"{load:.2f}"),
             ("Compiler", text(run.raw, "compiler")),
             ("Stillpoint", text(run.raw, "version")),
             ("Commit", text(run.raw, "commit")),
             ("Began", text(run.raw, "began"))]
    return [(name, value) for name, value in facts if value is not None]


def option_facts(run):
    """Options that say something; output files and empty ones do not."""
    options = inside(run.raw, "options")
    if not isinstance(options, dict):
        return []
    unsaid = {"json", "html", "markdown", "bar", "quiet"}
    return [("--" + name.replace("_", "-"), "yes" if value is True else one_or_list(value))
            for name, value in options.items() if name not in unsaid and value not in (None, False, [], "", 0)]


def commands(run):
    """The shell lines that repeat the run and make its report."""
    lines = []
    commit = text(run.raw, "commit")
    if commit:
        lines.append(f"git checkout {commit.rstrip('+')} && make")
    lines += (run.command or "stillpoint bench --json run.json").split("\n")
    if "--html" not in lines[-1]:
        lines.append(f"stillpoint bench report {data_files(run)} --html report")
    return lines


def data_files(run):
    """Where the JSON of the run, or of several that were joined, went: words of a shell."""
    files = []
    for command in (run.command or "").split("\n"):
        words = command.split()
        files += [after for word, after in zip(words, words[1:]) if word == "--json" and after != "-"]
    return " ".join(files) or "run.json"


def skipped_lines(run):
    """[(engine, reason, what brings it)]"""
    return [(text(one, "engine") or "?", text(one, "reason") or "not there", text(one, "remedy")) for one in run.skipped]


def verdicts(run):
    """[(text, is met, [what fell short])]"""
    found = []
    for bar in run.bars:
        reached = [one for one in inside(bar, "reached") or [] if isinstance(one, dict)]
        short = [f"{tables.short(number(one, 'value'))} in {text(one, 'cell') or '?'} ({text(one, 'configuration') or '?'})"
                 for one in reached if one.get("met") is not True]
        if not reached:
            short = ["no cell of this run has it"]
        found.append((text(bar, "text") or "?", bar.get("met") is True, short))
    return found
