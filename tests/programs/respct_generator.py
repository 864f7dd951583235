"""Makes random programs with restart points, each with its own model (respct_program.h): for the engine respct what program_generator.py
makes for the others. Elements can be left out likewise."""

import random

from program_generator import Step

PARTS = {"WORDS": (2, 30, 300), "STACK": (0,), "LOG": (50, 3000, 60000), "CHUNKS": (0,), "NAMES": (0,), "QUEUE": (0,)}
FILLS = ("BY_PREAD", "BY_PREADV", "BY_PREAD_DIRECT", "BY_SOCKET")
LOCKS = ("ONE_WORD", "ONE_WORD", "PTHREAD", "READ_WRITE", "VOLATILE")


class RespctProgram:
    """A program, equal for equal seed and features."""

    def __init__(self, seed, features):
        self.seed, self.features = seed, features
        self.random = random.Random(f"respct program {seed}")
        self.locks = [self.random.choice(LOCKS) for _ in range(self.random.randint(1, 5))]
        kinds = [kind for kind in PARTS if features.allow(kind.lower())]
        self.parts = []
        for _ in range(self.random.randint(1, 6)):
            kind = self.random.choice(kinds)
            self.parts.append((kind, self.random.choice(PARTS[kind]), self.random.randrange(len(self.locks))))
        if all(kind == "QUEUE" for kind, _, _ in self.parts):
            self.parts.append(("WORDS", 30, 0))  # Sections are of the other kinds.
        self.steps = []
        for _ in range(self.random.randint(2, 8)):
            self.make_section()
        for number, (kind, _, _) in enumerate(self.parts):
            if kind == "QUEUE":
                self.make_meeting(number)
        for _ in range(self.random.randint(0, 5)):
            self.make_outside_step()
        startable = [step for step in self.steps if step.kind != "meeting"]
        self.threads = [self.random.choices(startable, k=self.random.randint(1, 6)) + [self.steps[0]]
                        for _ in range(self.random.randint(1, 5))]
        self.wait_durable = self.random.random() < 0.4
        self.signal_interval_us = self.random.choice((0, 0, 700, 5000)) if features.allow("signals") else 0

    def operation(self, number):
        kind = self.parts[number][0]
        if kind == "WORDS":
            return f"words_transfer({number}, worker, {self.random.choice((1, 8, 60))});"
        if kind == "STACK":
            return f"stack_{self.random.choice(('push', 'push', 'pop'))}({number}, worker);"
        if kind == "CHUNKS":
            fills = [fill for fill in FILLS if self.features.allow("direct") or "DIRECT" not in fill]
            return self.random.choice((f"chunk_read({number}, worker, {self.random.choice(fills)});",
                                       f"chunk_drop({number}, worker);"))
        if kind == "NAMES":
            return f"name_toggle({number}, worker);"
        return f"log_append({number}, worker, {self.random.choice((1, 1, 20))}, {'false' if self.features.defect == 'untold' else 'true'});"

    def make_section(self):
        number = len(self.steps)
        usable = [part for part, (kind, _, _) in enumerate(self.parts) if kind != "QUEUE"]
        chosen = self.random.sample(usable, self.random.randint(1, min(3, len(usable))))
        operations = [self.operation(part) for part in chosen for _ in range(self.random.randint(1, 3))]
        operations += [f"scratch(worker, {self.random.choice((40, 3000, 90000))});"] if self.random.random() < 0.2 else []
        self.random.shuffle(operations)
        used = sorted({self.parts[part][2] for part in chosen})
        before = [f"section_begin(worker, {number});", *(f"lock_acquire({lock});" for lock in used)]
        releases = [f"lock_release({lock});" for lock in self.random.sample(used, len(used))]
        after = [f"section_ended(worker, {number});", *releases, "section_end(worker);"]
        if self.features.defect == "torn":
            after = [f"section_torn(worker, {number});", *releases, "section_torn_end(worker);"]
        self.steps.append(Step(number, "section", operations, before, after))

    def make_meeting(self, part):
        """A section that puts, one that waits and takes, and the step that runs both. What belongs together is not left out apart."""
        puts, takes = len(self.steps), len(self.steps) + 1
        for number, waits, operation in ((puts, [], "meeting_put"), (takes, [f"meeting_wait({part});"], "meeting_take")):
            before = [f"section_begin(worker, {number});", f"meeting_enter({part});", *waits, f"{operation}({part}, worker);"]
            after = [f"section_ended(worker, {number});", f"meeting_leave({part});", "section_end(worker);"]
            self.steps.append(Step(number, "meeting", [], before, after, helper=self.steps[puts] if number == takes else None))
        meet = f"meet_thread(worker, {self.steps[puts].name()}, {self.steps[takes].name()});"
        self.steps.append(Step(len(self.steps), "outside", [meet], helper=self.steps[takes]))

    def make_outside_step(self):
        helper = self.random.choice([step for step in self.steps if step.kind == "section"])
        kinds = ["rest", "acknowledge", "help", "help"] + (["fork"] if self.features.allow("fork") else [])
        kind = self.random.choice(kinds)
        line = {"rest": f"rest(worker, {self.random.choice((100, 3000))});",
                "acknowledge": f"acknowledge_now(worker, {self.random.choice(('true', 'false'))});",
                "help": f"help_by_thread(worker, {helper.name()});",
                "fork": "if (random_below(20) == 0) { fork_and_end(worker); }"}[kind]
        self.steps.append(Step(len(self.steps), "outside", [line], helper=helper if kind == "help" else None))

    # ---- The text

    def elements(self):
        """All that can be left out."""
        places = [("thread", number) for number in range(len(self.threads))]
        places += [("take", number, place) for number, steps in enumerate(self.threads) for place in range(len(steps))]
        return places + [("operation", step.number, place) for step in self.steps for place in range(len(step.operations))]

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
        for _ in range(2):  # A helper may have one.
            needed |= {step.helper.number for step in self.steps if step.number in needed and step.helper is not None}
        out = [f"/* Made by respct_generator.py: seed {self.seed}. */", '#include "respct_program.h"\n',
               "static const struct respct_part parts[] = {"]
        out += [f"    {{{kind}, {parameter}}}, /* under lock {lock} */" for kind, parameter, lock in self.parts]
        out += ["};", f"static const enum respct_lock_kind locks[] = {{{', '.join(self.locks)}}};\n"]
        out += [step.text(keep).replace("struct worker", "struct respct_worker") for step in self.steps if step.number in needed]
        for number, kept in enumerate(threads):
            out.append(f"static respct_step *const thread_{number}[] = {{{', '.join(step.name() for step in kept)}}};")
        plans = [f"    {{thread_{number}, {len(kept)}}}," for number, kept in enumerate(threads)]
        out += ["static const struct respct_thread_plan threads[] = {", *plans, "};", "static const struct respct_plan the_plan = {",
                f"    parts, {len(self.parts)}, locks, {len(self.locks)}, threads, {len(threads)}, "
                f"{'true' if self.wait_durable else 'false'}, {'true' if self.features.defect == 'early' else 'false'}, "
                f"{self.signal_interval_us}}};",
                "int main(int argc, char **argv)", "{", "    return run_respct_program(argc, argv, &the_plan);", "}", ""]
        return "\n".join(out)
