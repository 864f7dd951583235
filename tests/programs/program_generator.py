"""Makes random multi-threaded C programs on durable memory, each with its own model (programs.py compiles and kills them).

A program is a set of parts (structures that can be verified), locks, and steps that its threads take at random: sections
under locks, and what threads do outside of sections. program.h says what the calls do and how a restart verifies them.
Elements (threads, steps, operations, signals) can be left out, and the rest is a program again: so failures are reduced.
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import engines  # noqa: E402  (the path must be set first)

MUTEX_FLAGS = ("RECURSIVE", "ERRORCHECK", "ADAPTIVE")
WAYS = ("BY_LOCK", "BY_LOCK", "BY_TRY", "BY_TIMED", "BY_CLOCK", "BY_TWICE")
PARTS = ("words", "list", "tree", "array", "handles", "slots", "queue", "reuse")
FILLS = ("CPU", "READ", "PREAD", "READV", "PREADV", "DIRECT", "DIRECT", "DIRECT_READV", "FREAD", "RECV", "RECVMSG", "PIPE", "RANDOM",
         "VM_WRITE")
URING_FILLS = ("URING", "URING_DIRECT", "URING_FIXED")
STREAM_FILLS = ("RECV", "RECVMSG", "PIPE", "CPU", "RANDOM")  # byte by byte or piece by piece: kept short
REUSE_OBJECTS = ("MUTEX", "CONDITION", "BARRIER", "SEMAPHORE", "RWLOCK", "SPINLOCK")
REUSE_ENDS = ("IN_PLACE", "SHRINK", "FREE", "MOVE")
HELPS = ("help_by_barrier", "help_by_cancel", "help_by_detach", "help_by_key", "help_by_once", "help_by_semaphore")
GLOBAL_KINDS = ("words", "list", "tree", "array", "queue")


class Features:
    """The abilities of a program with a combination of engine and tracker."""

    def __init__(self, engine, tracker="uffd", avoid=(), defect="none"):
        self.engine, self.tracker, self.avoid, self.defect = engine, tracker, frozenset(avoid), defect
        # Where pages are protected, only calls that the library sees can store into durable memory.
        self.fills = FILLS + (URING_FILLS if len(engine.trackers) > 1 and tracker == "uffd" else ())
        for word in {"direct", "uring"} & self.avoid:
            self.fills = tuple(fill for fill in self.fills if word.upper() not in fill)

    def allow(self, what):
        return what not in self.avoid


class Part:
    def __init__(self, index, kind, place, parameter, lock):
        self.index, self.kind, self.place, self.parameter, self.lock = index, kind, place, parameter, lock

    def text(self):
        place = f"global_{self.index}, sizeof global_{self.index}" if self.place == "IN_GLOBAL" else "NULL, 0"
        return f"    {{&{self.kind}_kind, {self.place}, {self.parameter}, {place}, {self.index}, NULL, false}}, /* under lock {self.lock} */"

    def name(self):
        return f"&parts[{self.index}]"


class Lock:
    def __init__(self, index, kind, flags):
        self.index, self.kind, self.flags = index, kind, flags

    def name(self):
        return f"&locks[{self.index}]"

    def is_quick(self):
        return self.kind == "SPINLOCK"

    def can_wait(self):
        return self.kind == "MUTEX"


class Step:
    """A function; `operations` are lines that can be left out, `frame` what stands around them."""

    def __init__(self, number, kind, operations, before=(), after=(), helper=None):
        self.number, self.kind, self.operations, self.before, self.after = number, kind, operations, before, after
        self.helper = helper  # another step that this one calls

    def name(self):
        return f"step_{self.number}"

    def text(self, keep):
        lines = [f"/* {self.kind} */", f"static void {self.name()}(struct worker *worker)", "{"]
        kept = [line for place, line in enumerate(self.operations) if keep is None or ("operation", self.number, place) in keep]
        lines += [f"    {line}" for line in (*self.before, *kept, *self.after)]
        if not any("worker" in line for line in lines[3:]):
            lines.append("    (void)worker;")
        return "\n".join(lines + ["}"])


class Program:
    """A program, equal for equal seed and features."""

    def __init__(self, seed, features):
        self.seed, self.features = seed, features
        self.random = random.Random(f"program {seed}")
        self.locks, self.parts, self.steps = [], [], []
        self.make_locks()
        self.make_parts()
        sections = self.random.randint(2, 8)
        for _ in range(sections):
            self.make_section()
        self.make_robust_end()
        for _ in range(self.random.randint(0, 6)):
            self.make_outside_step()
        if features.engine.programs == engines.OPERATIONS:
            self.steps.append(Step(len(self.steps), "outside", ["add_to_object(worker);"]))
        for part in self.parts:
            if part.kind == "reuse":
                self.make_reuse(part)
        self.make_threads()
        self.signal_interval_us = self.random.choice((0, 0, 0, 700, 5000)) if features.allow("signals") else 0
        self.wait_durable = self.chance(0.4)

    # ---- Pieces

    def chance(self, share):
        return self.random.random() < share

    def make_locks(self):
        for index in range(self.random.randint(1, 5)):
            kind = self.random.choice(("MUTEX",) * 6 + ("RWLOCK", "RWLOCK", "SPINLOCK", "C11_MUTEX"))
            flags = []
            if kind == "MUTEX" and self.chance(0.5):
                flags.append(self.random.choice(MUTEX_FLAGS))
            if kind == "MUTEX":
                flags += [flag for flag in ("ROBUST", "SHARED", "INHERIT") if self.chance(0.3)]
            if kind == "RWLOCK":
                flags += [flag for flag in ("SHARED", "WRITERS") if self.chance(0.3)]
            if kind == "SPINLOCK" and self.chance(0.5):
                flags.append("SHARED")
            if kind == "C11_MUTEX" and self.chance(0.3):
                flags.append("RECURSIVE")
            if self.chance(0.5) and self.features.allow("durable-locks"):
                flags.append("GLOBAL" if self.chance(0.25) and self.features.allow("globals") else "DURABLE")
            self.locks.append(Lock(index, kind, flags))
        if all(lock.kind != "MUTEX" for lock in self.locks):
            self.locks.append(Lock(len(self.locks), "MUTEX", []))

    def make_parts(self):
        kinds = [kind for kind in PARTS if self.features.allow(kind)]
        for index in range(self.random.randint(1, 6)):
            kind = self.random.choice(kinds)
            locks = [lock for lock in self.locks if lock.can_wait()] if kind == "queue" else \
                [lock for lock in self.locks if not lock.is_quick()] if kind in ("slots", "reuse", "handles") else self.locks
            place = self.random.choice(("IN_ROOT", "IN_HEAP", "IN_GLOBAL") if self.features.allow("globals") and kind in GLOBAL_KINDS
                                       else ("IN_ROOT", "IN_HEAP"))
            parameter = {"words": self.random.choice((1, 4, 30, 200)), "list": self.random.choice((10, 60, 200)),
                         "tree": self.random.choice((20, 300)), "array": self.random.choice((500, 6000, 60000)),
                         "slots": self.random.choice((1, 3, 16, 64, 256)), "queue": self.random.randrange(8)}.get(kind, 0)
            if kind == "queue" and not self.features.allow("durable-locks"):
                parameter &= 6
            self.parts.append(Part(index, kind, place, parameter, self.random.choice(locks).index))

    def operation(self, part):
        """A line that changes the part."""
        size = self.random.choice((16, 200, 3000, 9000, 70000))
        part_and_worker = f"{part.name()}, worker"
        choices = {
            "words": [f"words_transfer({part_and_worker}, {self.random.choice((1, 8, 60))});"],
            "list": [f"list_push({part_and_worker}, {size});", f"list_pop({part_and_worker});", f"list_resize({part_and_worker}, {size});"],
            "tree": [f"tree_insert({part_and_worker});", f"tree_erase({part_and_worker});"],
            "array": [f"array_append({part_and_worker}, {self.random.choice((1, 30, 700))});",
                      f"array_shrink({part_and_worker}, {self.random.choice((5, 50, 99))});", f"array_store({part_and_worker});"],
            "handles": [f"handles_create({part_and_worker}, {size});", f"handles_delete({part_and_worker});",
                        f"handles_resize({part_and_worker}, {size});"],
            "reuse": [f"part_touch({part_and_worker});"],
        }
        if part.kind == "slots":
            way = self.random.choice(self.features.fills)
            whole = part.parameter * 4096
            length = min(whole, self.random.choice((700, 5000) if way in STREAM_FILLS else (4096, 40000, whole, whole)))
            return f"slots_fill({part_and_worker}, FILL_{way}, {length});"
        if part.kind == "queue":
            return f"queue_wait_and_{self.random.choice(('put', 'take'))}({part_and_worker}, &locks[{part.lock}]);"
        return self.random.choice(choices[part.kind])

    def way(self, lock):
        return self.random.choice(WAYS)

    def make_section(self):
        waiting = [part for part in self.parts if part.kind == "queue"]
        if waiting and (self.chance(0.3) or len(waiting) == len(self.parts)):
            first = self.random.choice(waiting)
            parts = [part for part in self.parts if part.lock == first.lock and part.kind != "queue"]
            operations = [self.operation(first)] + [self.operation(self.random.choice(parts)) for _ in range(2) if parts]
            used = [self.locks[first.lock]]
        else:
            parts = [part for part in self.parts if part.kind != "queue"]
            if not parts:
                return
            chosen = self.random.sample(parts, self.random.randint(1, min(3, len(parts))))
            operations = [self.operation(part) for part in chosen for _ in range(self.random.randint(1, 3))]
            operations += [f"usleep({self.random.choice((100, 3000, 30000))});"] if self.chance(0.1) else []
            self.random.shuffle(operations)
            used = [self.locks[index] for index in sorted({part.lock for part in chosen})]
        number = len(self.steps)
        before = ["section_begin();"] + [f"lock_acquire({lock.name()}, {self.way(lock)});" for lock in used]
        self.random.shuffle(used)
        releases = [f"lock_release({lock.name()});" for lock in used]
        after = [f"section_ended(worker, {number});", *releases, "section_end(worker);"]
        if self.features.defect == "torn":
            after = [f"++worker->by_section[{number}];", *releases, "section_leave();", "usleep(500);",
                     "++worker->count;", "section_note(worker);"]
        self.steps.append(Step(number, "section", operations, before, after))

    def make_robust_end(self):
        """A thread that ends while it holds its mutex."""
        robust = [lock for lock in self.locks if "ROBUST" in lock.flags and "RECURSIVE" not in lock.flags]
        parts = [part for part in self.parts if part.kind not in ("queue",) and any(lock.index == part.lock for lock in robust)]
        if not parts or not self.features.allow("robust-ends") or self.chance(0.4):
            return
        part = self.random.choice(parts)
        number = len(self.steps)
        section = Step(number, "section of a thread that dies", [self.operation(part)],
                       ["section_begin();", f"lock_acquire(&locks[{part.lock}], BY_LOCK);"],
                       [f"section_ended(worker, {number});", "section_leave();"])
        self.steps.append(section)
        self.steps.append(Step(number + 1, "outside", [f"die_with_robust(worker, {section.name()});"], helper=section))

    def make_outside_step(self):
        sections = [step for step in self.steps if step.kind == "section"]
        locks = [lock for lock in self.locks if not {"DURABLE", "GLOBAL"} & set(lock.flags) and not lock.is_quick()]
        scribbled = [part for part in self.parts if part.place != "IN_GLOBAL"]
        kinds = ["help"] * 4 + ["acknowledge"] * 2 + ["verify", "fault", "sleep"]
        kinds += ["pause"] if locks else []
        kinds += ["ignored"] if self.features.allow("ignored-locks") else []
        kinds += ["object"] * 3 if self.features.engine.programs == engines.OPERATIONS else []
        kinds += ["fork", "spawn"] if scribbled and self.features.allow("fork") else []
        kinds += ["map"] * 2 if scribbled and self.features.allow("mappings") else []
        kind = self.random.choice(kinds)
        helper = self.random.choice(sections) if sections else None
        part = self.random.choice(self.parts)
        lines = {
            "help": f"{self.random.choice(HELPS)}(worker, {helper.name()});" if helper else "usleep(100);",
            "acknowledge": f"acknowledge({self.random.choice(('true', 'false'))});",
            "verify": f"lock_read(&locks[{part.lock}], {self.way(None)}); "
                      f"parts[{part.index}].kind->verify({part.name()}); lock_release(&locks[{part.lock}]);",
            "fault": "fault_and_repair();",
            "object": f"for (int i = 0; i < {self.random.choice((1, 5))}; ++i) {{ add_to_object(worker); }}",
            "sleep": f"usleep({self.random.choice((50, 1000))});",
            "ignored": f"hold_ignored(worker, {self.random.choice((100, 2000, 20000))});",
            "pause": f"pause_in_section(worker, {self.random.choice(locks).name()});" if locks else "",
            "fork": f"fork_and_scribble({self.random.choice(scribbled).name()});" if scribbled else "",
            "map": f"map_over({self.random.choice(scribbled).name()});" if scribbled else "",
            "spawn": "if (random_below(8) == 0) { spawn_true(); }",
        }
        self.steps.append(Step(len(self.steps), "outside", [lines[kind]], helper=helper if kind == "help" else None))

    def make_reuse(self, part):
        for _ in range(self.random.randint(1, 3)):
            number = len(self.steps)
            end = self.random.choice(REUSE_ENDS)
            destroys = self.chance(0.5) or (end == "IN_PLACE" and not self.features.allow("abandon"))
            self.steps.append(Step(number, "outside", [
                f"reuse_as({part.name()}, worker, {number}, &locks[{part.lock}], REUSE_{self.random.choice(REUSE_OBJECTS)}, "
                f"REUSE_{end}, {'true' if destroys else 'false'});"]))

    def make_threads(self):
        usable = [step for step in self.steps if step.kind != "section of a thread that dies"]
        self.threads = []
        for _ in range(self.random.randint(1, 5)):
            steps = self.random.choices(usable, k=self.random.randint(1, 6))
            sections = [step for step in usable if step.kind == "section"] or usable
            if all(step.kind != "section" for step in steps):
                steps.append(self.random.choice(sections))
            steps += [step for step in usable if "add_to_object(worker);" in step.operations]
            self.threads.append(steps)

    # ---- The text

    def elements(self):
        """All that can be left out."""
        places = [("thread", number) for number in range(len(self.threads))]
        places += [("take", number, place) for number, steps in enumerate(self.threads) for place in range(len(steps))]
        places += [("operation", step.number, place) for step in self.steps for place in range(len(step.operations))]
        return places + [("signals",)]

    def kept_threads(self, keep):
        threads = []
        for number, steps in enumerate(self.threads):
            kept = [step for place, step in enumerate(steps) if keep is None or ("take", number, place) in keep]
            if kept and (keep is None or ("thread", number) in keep):
                threads.append(kept)
        return threads

    def text(self, keep=None):
        threads = self.kept_threads(keep)
        needed = {step.number for steps in threads for step in steps}
        needed |= {step.helper.number for step in self.steps if step.number in needed and step.helper is not None}
        steps = [step for step in self.steps if step.number in needed]
        signals = self.signal_interval_us if keep is None or ("signals",) in keep else 0
        out = [f"/* Made by program_generator.py: seed {self.seed}, engine {self.features.engine}, tracker {self.features.tracker}. */",
               "#include <unistd.h>\n", '#include "program.h"\n']
        for part in self.parts:
            if part.place == "IN_GLOBAL":
                pages = part.parameter + 2 if part.kind == "words" else 1
                out.append(f"SP_PERSISTENT char global_{part.index}[{pages} * 4096] __attribute__((aligned(64)));")
        has_global_locks = any("GLOBAL" in lock.flags for lock in self.locks)
        out += ["SP_PERSISTENT char global_locks[4096] __attribute__((aligned(64)));"] if has_global_locks else []
        out += ["static struct part parts[] = {", *(part.text() for part in self.parts), "};", "static struct lock locks[] = {"]
        out += [f"    {{{lock.kind}, {' | '.join(lock.flags) or '0'}, NULL}}," for lock in self.locks] + ["};\n"]
        out += [step.text(keep) for step in steps]
        for number, kept in enumerate(threads):
            out.append(f"static step *const thread_{number}[] = {{{', '.join(step.name() for step in kept)}}};")
        plans = [f"    {{thread_{number}, {len(kept)}}}," for number, kept in enumerate(threads)]
        out += ["static const struct thread_plan threads[] = {", *plans, "};", "static const struct plan the_plan = {"]
        out += [f"    parts, {len(self.parts)}, locks, {len(self.locks)}, {'global_locks' if has_global_locks else 'NULL'}, threads, {len(threads)}, {signals}, "
                f"{'true' if self.wait_durable else 'false'}, {'true' if self.features.defect == 'early' else 'false'}}};",
                "int main(int argc, char **argv)", "{", "    return run_program(argc, argv, &the_plan);", "}", ""]
        return "\n".join(out)
