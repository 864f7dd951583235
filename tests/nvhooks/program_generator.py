"""Makes random C and C++ programs for the differential fuzz of the compiler pass (fuzz.py runs them).

A program stores into a `struct world` in durable memory (`w`), into one in ordinary memory (`o`), into the stack and into blocks
of recorder_allocate. What it stores depends on what it loads; which addresses it stores to does not, nor does its control
flow. No store leaves a byte as it was, but by chance: recorder.c tells the bytes that were written by that.
Each statement stands for itself, so that any subset is a program again: that is how failures are reduced.
"""

import random

# Element type and length of the arrays that loops run over.
ARRAYS = {"bytes": ("u8", 200), "shorts": ("u16", 100), "words": ("u32", 96), "longs": ("u64", 64)}
REALS = {"reals": ("double", 32), "floats": ("float", 64)}
RECORD_FIELDS = [("a", "u8"), ("b", "u16"), ("c", "u32"), ("d", "u64"), ("in.tag", "u8"), ("in.count", "u32"), ("in.key", "u64")]
TIGHT_FIELDS = [("a", "u8"), ("b", "u32"), ("c", "u16"), ("d", "u64"), ("e[1]", "u8")]


class Generator:
    """One program: statements() are strings; each statement is whole."""

    def __init__(self, seed, cplusplus, number):
        self.random = random.Random(f"{seed}/{number}")
        self.cplusplus = cplusplus
        self.number = number
        self.parameters = parameters_of(seed)
        self.names = 0
        self.functions = []

    # ---- Pieces

    def name(self, stem):
        self.names += 1
        return f"{stem}_{self.number}_{self.names}"

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def world(self):
        return "w" if self.chance(0.85) else "o"

    def known(self, value):
        """Text of a number that the generator knows, and the compiler in half of the cases."""
        if self.chance(0.4):
            return str(value)
        which = self.random.randrange(32)
        difference = value - self.parameters[which]
        return f"((int)P[{which}] {'+' if difference >= 0 else '-'} {abs(difference)})"

    def condition(self):
        which = self.random.randrange(32)
        return self.pick(f"P[{which}] % 2", f"P[{which}] > {self.random.randrange(40)}", f"opaque(P[{which}]) & 8",
                         f"P[{which}] % 3 == 1")

    def place(self, base, type_of=None):
        """An lvalue of an integer type, and its type."""
        kind = self.random.randrange(9)
        if type_of is not None or kind < 4:
            array = type_of or self.random.choice(list(ARRAYS))
            kind_of, length = ARRAYS[array]
            return f"{base}->{array}[{self.random.randrange(length)}]", kind_of
        if kind < 6:
            field, kind_of = self.random.choice(RECORD_FIELDS)
            return f"{base}->record[{self.random.randrange(8)}].{field}", kind_of
        if kind < 7:
            field, kind_of = self.random.choice(TIGHT_FIELDS)
            return f"{base}->tight[{self.random.randrange(6)}].{field}", kind_of
        if kind < 8:
            field, kind_of = self.pick(("whole", "u64"), ("half[1]", "u32"), ("byte[3]", "u8"), ("pair.y", "u32"))
            return f"{base}->either[{self.random.randrange(6)}].{field}", kind_of
        return f"{base}->grid[{self.random.randrange(8)}][{self.random.randrange(12)}]", "u32"

    def value(self, type_of, index=None):
        """A number that differs in each byte from what lies anywhere, but by chance."""
        constant = self.random.getrandbits(60)
        if index is not None and self.chance(0.5):
            source = f"{index} + {self.random.randrange(1000)}"
        elif self.chance(0.5):
            source = self.place(self.pick("w", "o"))[0]
        else:
            source = f"P[{self.random.randrange(32)}]"
        return f"({type_of})(M({source}) + {constant}ul)"

    # ---- Statements

    def scalar(self):
        place, type_of = self.place(self.world())
        volatile = self.chance(0.1) and "tight" not in place
        target = f"*(volatile {type_of} *)&{place}" if volatile else place
        return f"{target} = {self.value(type_of)};"

    def fields(self):
        """Neighbours: what coalesce-fields merges, with and without gaps."""
        base = f"{self.world()}->record[{self.random.randrange(8)}]"
        chosen = self.random.sample(RECORD_FIELDS, self.random.randrange(2, 7))
        text = " ".join(f"{base}.{field} = {self.value(type_of)};" for field, type_of in chosen)
        if self.chance(0.5):
            text += f" memset({base}.list, {self.random.randrange(256)}, sizeof {base}.list);"
        if self.chance(0.3):
            text += f" {base}.f = {self.random.random():.5f} * P[3]; {base}.link = {base}.list + 2;"
        if self.chance(0.3):
            text = text.replace(";", f"; if ({self.condition()}) o->words[1] = opaque(7);", 1)
        return text

    def again(self):
        """Writes to one place twice and more: what no-extra-tracking leaves out."""
        place, type_of = self.place("w")
        first, second, third = (self.value(type_of) for _ in range(3))
        return self.pick(
            f"{place} = {first}; if ({self.condition()}) {place} = {second};",
            f"if ({self.condition()}) {place} = {first}; else {place} = {second}; {place} = {third};",
            f"{place} = {first}; opaque(1); {place} = {second};",
            f"{place} = {first}; boundary(1); {place} = {second};",
            f"if ({self.condition()}) {{ {place} = {first}; boundary(2); }} {place} = {second};",
            f"{place} = {first}; if ({self.condition()}) boundary(3); {place} = {second};",
            f"memset(w->grid[3], 7, 48); w->grid[3][{self.random.randrange(12)}] = {self.value('u32')};",
            f"w->longs[5] = {self.value('u64')}; *(u32 *)((char *)&w->longs[5] + 4) = {self.value('u32')};")

    def loop_head(self, length):
        """(declaration of the loop, name of its index, the values that the index takes)."""
        low = self.random.randrange(0, max(1, length // 3))
        high = self.random.choice([low, low + 1, self.random.randrange(low, length + 1), length])
        high = min(high, length)
        step = self.random.choice([1, 1, 1, 1, 2, 3, 5])
        i = self.name("i")
        kind = self.random.randrange(6)
        if kind < 3:
            type_of = self.pick("u32", "int", "u64", "long", "u8" if length < 200 else "u16")
            return f"for ({type_of} {i} = {self.known(low)}; {i} < ({type_of}){self.known(high)}; {i} += {step})", i, range(low, high, step)
        if kind == 3:
            return (f"for (int {i} = {self.known(high)} - 1; {i} >= {self.known(low)}; {i} -= {step})", i,
                    range(high - 1, low - 1, -step))
        if kind == 4:
            return f"for (u32 {i} = {self.known(high)}; {i}-- > (u32){self.known(low)};)", i, range(high - 1, low - 1, -1)
        high = max(high, low + 1)
        high = low + (high - low + step - 1) // step * step
        if high > length:
            high = low + step
        return f"for (u64 {i} = {self.known(low)}; {i} != (u64){self.known(high)}; {i} += {step})", i, range(low, high, step)

    def index(self, i, values, length):
        """An index into an array of `length` elements that is within it for all `values` of i."""
        for _ in range(4):
            factor, offset = self.pick((1, 0), (1, 0), (1, self.random.randrange(8)), (2, 1), (3, self.random.randrange(3)),
                                       (-1, length - 1))
            reached = [value * factor + offset for value in values] or [0]
            if min(reached) >= 0 and max(reached) < length:
                if (factor, offset) == (1, 0):
                    return i
                return f"{length - 1} - {i}" if factor < 0 else f"{i} * {factor} + {offset}"
        return self.pick(f"({i} * 7 + 3) % {length}", f"({i} ^ 1) % {length}", f"(u32){i} / 2 % {length}", f"{i} % {length}")

    def loop_store(self, i, values):
        base = self.world()
        kind = self.random.randrange(10)
        if kind < 5:
            array = self.random.choice(list(ARRAYS))
            type_of, length = ARRAYS[array]
            return f"{base}->{array}[{self.index(i, values, length)}] = {self.value(type_of, i)};"
        if kind < 7:
            field, type_of = self.random.choice(RECORD_FIELDS)
            return f"{base}->record[{self.index(i, values, 8)}].{field} = {self.value(type_of, i)};"
        if kind < 8:
            array, (type_of, length) = self.random.choice(list(REALS.items()))
            return f"{base}->{array}[{self.index(i, values, length)}] = ({type_of})({i} * 3.7 + P[{self.random.randrange(32)}]);"
        if kind < 9:
            field, type_of = self.random.choice(TIGHT_FIELDS)
            return f"{base}->tight[{self.index(i, values, 6)}].{field} = {self.value(type_of, i)};"
        place, type_of = self.place(base)
        return f"{place} = {self.value(type_of, i)};"

    def loop(self):
        length = self.pick(6, 8, 12, 24, 60, 64, 96)
        head, i, values = self.loop_head(length)
        stores = [self.loop_store(i, values) for _ in range(self.pick(1, 1, 1, 2, 2, 3))]
        twist = self.random.randrange(12)
        if twist == 0:
            stores[0] = f"if ({i} % 3 == 1) {{ {stores[0]} }}"
        elif twist == 1:
            stores[0] = f"if ((u32){i} % 5 < P[{self.random.randrange(32)}] % 5) {{ {stores[0]} }}"
        elif twist == 2:
            stores.insert(self.random.randrange(len(stores) + 1), f"if (opaque((u32){i}) % 9 == 2) break;")
        elif twist == 3:
            stores.insert(self.random.randrange(len(stores) + 1), f"if ((u32){i} % 4 == {self.random.randrange(4)}) continue;")
        elif twist == 4:
            stores.insert(self.random.randrange(len(stores) + 1), f"if ((u32){i} == {self.random.randrange(8)}) boundary(4);")
        elif twist == 5:
            stores.append(f"if ({self.condition()}) {{ {self.loop_store(i, values)} }} else {{ {self.loop_store(i, values)} }}")
        elif twist == 6:
            stores.append(f"memset(w->grid[(u32){i} % 8] + 2, (int){i} + 1, {self.random.randrange(1, 40)});")
        elif twist == 7:
            stores.append(f"opaque((u32){i});")
        return f"{head} {{ {' '.join(stores)} }}"

    def copy_loop(self):
        """Simple enough to be vectorised, or to become memcpy or memset."""
        array = self.random.choice(list(ARRAYS))
        type_of, length = ARRAYS[array]
        count = self.random.randrange(length + 1)
        condition = self.pick("", "", "", "if (i * 2654435761u >> 31) ", "if (i % 7 != 3) ", "if (P[i % 32] & 1) ")
        body = self.pick(f"w->{array}[i] = o->{array}[i];", f"w->{array}[i] = (({type_of})77);",
                         f"w->{array}[i] = ({type_of})(o->{array}[i] * 3 + i);",
                         f"w->{array}[i] = ({type_of})M(w->{array}[i] + {self.random.getrandbits(20)});",
                         f"w->{array}[{length - 1} - i] = o->{array}[i];")
        return f"for (u32 i = 0; i < (u32){self.known(count)}; ++i) {condition}{body}"

    def nested(self):
        rows, columns = self.random.randrange(1, 9), self.random.randrange(1, 13)
        start = self.pick("0", "0", "r % 3", "columns - 1")
        order = self.pick("w->grid[r][c]", "w->grid[7 - r][c]", "w->grid[r][11 - c]",
                          "((u32 *)w->grid)[r * 12 + c]", "(&w->words[0])[r * 3 + c]")
        inner = f"for (int c = {start}; c < columns; c += {self.pick(1, 1, 2)}) {order} = (u32)M(r * 100 + c + P[{self.random.randrange(32)}]);"
        extra = self.pick("", "", "w->shorts[r] = (u16)M(r + 9);", "if (r == 2) boundary(5);", "if (r % 2) continue;",
                          "memcpy(w->record[r].list, o->words + r, 24);")
        return (f"{{ const int rows = {self.known(rows)}, columns = {self.known(columns)}; "
                f"for (int r = 0; r < rows; ++r) {{ {extra} {inner} }} }}")

    def odd_loop(self):
        """Loops that look regular and are not quite, or the other way round."""
        count, step = self.random.randrange(0, 15), self.random.randrange(1, 5)
        n = self.known(count)
        return self.pick(
            f"for (u32 i = 0; i < (u32){n}; ++i) {{ w->longs[2 * i] = M(i); w->longs[2 * i + 1] = M(i + 1); }}",
            f"for (u32 i = 0; i < (u32){n}; ++i) {{ w->longs[2 * i + 1] = M(i); w->longs[2 * i] = M(i + 1); w->words[i] = (u32)M(i); }}",
            f"for (u32 i = 0; i < 60; i += (u32){self.known(step)}) w->words[i] = (u32)M(i + 3);",
            f"for (u8 i = 250; i != (u8){n}; ++i) w->bytes[i % 200] = (u8)M(i);",
            f"for (u32 i = 0; i < (u32){n}; ++i) {{ u32 x = (u32)M(i); memcpy(w->bytes + i, &x, 4); }}",
            f"for (u32 i = 0; i < (u32){n}; ++i) {{ u32 x = (u32)M(i); memcpy(w->bytes + i * 3, &x, 3); }}",
            f"for (int r = 0; r < {self.known(min(count, 8))}; ++r) for (int c = 0; c <= r; ++c) w->grid[r][c] = (u32)M(r * 20 + c);",
            f"for (int r = 0; r < {self.known(min(count, 8))}; ++r) for (int c = r; c < 12; ++c) w->grid[r][c] = (u32)M(r * 20 + c);",
            f"for (u32 i = 0; i < (u32){self.known(min(count, 8))}; ++i) {{ w->record[i].a = (u8)M(i); w->record[i].b = (u16)M(i); w->record[i].c = (u32)M(i); "
            f"w->record[i].d = M(i); w->record[i].in.tag = 3; w->record[i].in.count = (u32)M(i); w->record[i].in.key = M(i); }}",
            f"for (u32 i = 0; i < (u32){self.known(min(count, 6))}; ++i) {{ struct tight x = {{(u8)M(i), (u32)M(i), 7, M(i), {{1, 2, 3}}}}; "
            "w->tight[i] = x; }",
            f"{{ u32 i = (u32){n}; while (i) {{ --i; w->shorts[i] = (u16)M(i); if (i == {self.random.randrange(20)}) break; }} }}",
            f"for (u32 i = 0;; ++i) {{ w->words[i] = (u32)M(i); if (i >= (u32){n}) break; w->shorts[i] = (u16)M(i); }}",
            f"for (u32 i = 0; i < (u32){n}; ++i) {{ w->longs[9] = M(i); w->words[i] = (u32)w->longs[9]; }}",
            f"for (u32 i = 0; i < (u32){n}; ++i) for (u32 k = 0; k < 3; ++k) {{ w->words[i * 3 + k] = (u32)M(i + k); if (opaque(k + i) % 13 == 1) break; }}",
            f"{{ u32 i = 0, k = 0; for (; i < (u32){n}; ++i) {{ if (opaque(i) & 2) w->words[k++] = (u32)M(i); }} w->longs[0] = M(k); }}",
            f"for (u64 i = {self.known(2)}; i < (u64){self.known(count + 2)}; ++i) {{ w->words[i] = (u32)M(w->words[i - 1]); w->words[i - 2] = (u32)M(i); }}",
            f"for (long i = 40; i > (long){n}; i -= {self.known(step)}) {{ w->shorts[i] = (u16)M(i); w->longs[i] = M(i); }}",
            f"for (u32 i = 0; i < (u32){n}; ++i) {{ w->floats[i] = (float)i * 2.5f + 1; w->reals[i] = i * 0.37; }} w->floats[0] = 1.25f;")

    # ---- A few places, written again and again on many ways

    def tangle(self):
        overlapping = self.random.randrange(6)
        places = [(f"w->either[{overlapping}].whole", "u64"), (f"w->either[{overlapping}].half[0]", "u32"),
                  (f"w->either[{overlapping}].half[1]", "u32"), (f"w->either[{overlapping}].byte[{self.random.randrange(8)}]", "u8"),
                  ("w->record[2].c", "u32"), ("w->record[2].d", "u64"), ("w->record[2].in.count", "u32"), ("w->record[2].in.key", "u64")]
        return self.block(self.random.sample(places, self.random.randrange(2, 6)), 3, False)

    def block(self, places, depth, in_loop):
        parts = [self.tangled(places, depth, in_loop) for _ in range(self.random.randrange(1, 4))]
        return "{ " + " ".join(parts) + " }"

    def tangled(self, places, depth, in_loop):
        kind = self.random.randrange(12)
        if depth > 0 and kind < 3:
            return f"if ({self.condition()}) {self.block(places, depth - 1, in_loop)}"
        if depth > 0 and kind == 3:
            return f"if ({self.condition()}) {self.block(places, depth - 1, in_loop)} else {self.block(places, depth - 1, in_loop)}"
        if depth > 0 and kind == 4:
            i = self.name("t")
            return f"for (u32 {i} = 0; {i} < (u32){self.known(self.random.randrange(3))}; ++{i}) {self.block(places, depth - 1, True)}"
        if kind == 5 and self.chance(0.4):
            return "boundary(10);"
        if kind == 6:
            return "opaque(5);"
        if kind == 7 and in_loop:
            return f"if ({self.condition()}) {self.pick('break', 'continue')};"
        if kind == 8 and self.chance(0.5):
            return self.pick("memset(&w->record[2], 9, sizeof w->record[2]);", "w->record[2].in = o->record[1].in;",
                             "__atomic_thread_fence(__ATOMIC_SEQ_CST);")
        if kind == 9 and self.cplusplus and depth > 0:
            first, second = (self.tangled(places, depth - 1, False) for _ in range(2))
            return f"try {{ {first} if ({self.condition()}) throw 1; {second} }} catch (int) {self.block(places, depth - 1, False)}"
        place, type_of = self.random.choice(places)
        return f"{place} = {self.value(type_of)};"

    def pointer_walk(self):
        array = self.random.choice(list(ARRAYS))
        type_of, length = ARRAYS[array]
        start = self.random.randrange(length)
        end = self.random.randrange(start + 1, length + 1)
        base = self.world()
        setup = f"{type_of} *p = {base}->{array} + {self.known(start)}, *const e = {base}->{array} + {self.known(end)};"
        value = self.value(type_of)
        return f"{{ {setup} " + self.pick(
            f"while (p != e) *p++ = {value};", f"do {{ *p = {value}; }} while (++p < e);",
            f"while (e - p >= 2) {{ p[0] = {value}; p[1] = 3; p += 2; }}",
            f"for (; p < e; ++p) {{ if ((u64)p % 3 == 0) *p = {value}; }}" if base == "o" else f"for (; p < e; ++p) {{ *p = {value}; }}",
            f"while (p < e) {{ *p++ = {value}; if (opaque((u32)(e - p)) & 1) break; }}") + " }"

    def bulk(self):
        start, count = self.random.randrange(60), self.random.randrange(100)
        return self.pick(
            f"memset({self.world()}->bytes + {start}, {self.random.randrange(256)}, {self.known(count)});",
            f"memcpy({self.world()}->bytes + {start}, o->text, {self.known(count)});",
            f"memmove(w->bytes + {start}, w->bytes + {start + 17}, {self.known(count)});",
            f"memset(&w->record[{self.random.randrange(8)}], 0, sizeof(struct record));",
            f"w->record[{self.random.randrange(4)}] = o->record[{self.random.randrange(8)}];",
            f"w->record[{self.random.randrange(4)}] = w->record[{self.random.randrange(4, 8)}];",
            f"w->tight[{self.random.randrange(3)}] = w->tight[{self.random.randrange(3, 6)}];",
            f"{{ struct inner x = {{(u8)M(P[2]), {{1, 2, 3}}, (u32)M(P[4]), M(P[5])}}; memcpy(&w->record[{self.random.randrange(8)}].in, &x, 1 + {self.known(7)}); }}",
            f"memcpy(w->bytes + {start}, w->text[2], {self.random.choice([1, 2, 3, 4, 7, 8, 16, 31])});")

    def strings(self):
        to = f"w->text[{self.random.randrange(6)}]"
        text, more = (f"word({self.known(self.random.randrange(8))})" for _ in range(2))
        line = f"w->line[{self.random.randrange(4)}]"
        return self.pick(
            f"strcpy({to}, {text});", f"stpcpy({to}, {text});", f"strncpy({to}, {text}, {self.known(self.random.randrange(48))});",
            f"strcpy({to}, {text}); strcat({to}, {more});", f"strcpy({to}, {text}); strncat({to}, {more}, {self.known(9)});",
            f"sprintf({to}, \"%u:%s\", P[{self.random.randrange(32)}], {text});",
            f"snprintf({line}, {self.known(self.random.randrange(64))}, \"%u %s\", (u32)M(P[1]), {text});",
            f"strcpy({to} + 3, {text}); {to}[1] = 'x';", f"strcpy({self.pick('w', 'o')}->text[0], \"literal text\");",
            f"{{ void *(*volatile copy)(void *, const void *, u64) = {self.pick('memcpy', 'memmove')}; "
            f"copy(w->bytes + {self.random.randrange(90)}, o->text, {self.known(self.random.randrange(100))}); }}",
            f"{{ u64 (*const volatile fill)(u64 *, u64, u64) = described_fill; fill(w->longs + 2, {self.known(9)}, M(P[4])); }}",
            f"strcpy({to}, {text}); o->words[3] = (u32)strlen({to}); o->words[4] = (u32)strcmp({to}, {more});",
            f"o->words[5] = (u32)memcmp(w->bytes, o->bytes + 3, {self.known(20)}); w->pointers[1] = o;",
            "qsort(w->sorted, 24, sizeof(u32), compare);",
            f"described_fill(w->longs + {self.random.randrange(30)}, {self.known(self.random.randrange(30))}, M(P[9]));",
            f"attributed_fill(M(P[8]), w->bytes + {self.random.randrange(90)}, {self.known(self.random.randrange(100))});")

    def pointers(self):
        place, type_of = self.place("w", self.random.choice(list(ARRAYS)))
        value = self.value(type_of)
        return self.pick(
            f"{{ {type_of} local[4] = {{1, 2, 3, 4}}; {type_of} *p = {self.condition()} ? &{place} : local + 1; *p = {value}; o->words[0] ^= (u32)local[1]; }}",
            f"{{ struct world *x = {self.condition()} ? w : o; x->words[3] = {self.value('u32')}; x->record[1].in.key = {self.value('u64')}; }}",
            f"{{ struct world *x = {self.condition()} ? w : o; for (u32 i = 0; i < (u32){self.known(20)}; ++i) x->words[i + 2] = (u32)M(i); }}",
            f"w->pointers[{self.random.randrange(8)}] = &w->words[{self.random.randrange(90)}];",
            f"for (u32 i = 0; i < (u32){self.known(self.random.randrange(9))}; ++i) w->pointers[i] = &w->longs[i * 3 + 1];",
            f"global_words[{self.random.randrange(16)}] = {self.value('u32')}; thread_longs[3] = {self.value('u64')};",
            f"w->wide[{self.random.randrange(3)}] = (long double)P[{self.random.randrange(32)}] * 1.7L + 0.3L;",
            f"w->flags[{self.random.randrange(16)}] = {self.condition()} ? true : false;",
            f"w->vectors[{self.random.randrange(6)}] = (lanes){{(u32)M(P[1]), (u32)M(P[2]), 77, (u32)M(P[3])}};",
            f"w->changed[{self.random.randrange(4)}][{self.random.randrange(4)}] = {self.value('u32')};",
            f"{{ volatile u32 room[8]; room[P[0] % 8] = {self.value('u32')}; w->words[{self.random.randrange(96)}] = (u32)M(room[P[0] % 8]); }}")

    def loose(self):
        order = self.pick("__ATOMIC_RELAXED", "__ATOMIC_SEQ_CST", "__ATOMIC_ACQ_REL")
        counter = f"&w->counters[{self.random.randrange(16)}]"
        store_order = self.pick("__ATOMIC_RELAXED", "__ATOMIC_RELEASE", "__ATOMIC_SEQ_CST")
        return self.pick(
            f"__atomic_fetch_add({counter}, {self.value('u32')}, {order});",
            f"__atomic_exchange_n({counter}, {self.value('u32')}, {order});",
            f"{{ u32 seen = __atomic_load_n({counter}, __ATOMIC_RELAXED); __atomic_compare_exchange_n({counter}, &seen, {self.value('u32')}, 0, {order}, __ATOMIC_RELAXED); }}",
            f"__atomic_store_n(&w->words[{self.random.randrange(96)}], {self.value('u32')}, {store_order});",
            f"w->bits[{self.random.randrange(6)}].{self.pick('a', 'b', 'c', 'd', 'e')} = M(P[{self.random.randrange(32)}]);",
            f"w->bits[{self.random.randrange(6)}].b = (u32)M(P[7]); w->bits[2].c = 9;",
            "__atomic_thread_fence(__ATOMIC_SEQ_CST);",
            f"w->words[4] = {self.value('u32')}; __atomic_store_n(&w->words[8], {self.value('u32')}, __ATOMIC_RELEASE); w->words[4] = {self.value('u32')};")

    def allocation(self):
        r = self.name("r")
        made = f"struct record *{r} = (struct record *)recorder_allocate(sizeof *{r});"
        fields = " ".join(f"{r}->{field} = {self.value(type_of)};" for field, type_of in self.random.sample(RECORD_FIELDS, 4))
        count = self.random.randrange(1, 20)
        return self.pick(
            f"{{ {made} {fields} w->pointers[2] = {r}; }}",
            f"{{ {made} memset({r}, 0, sizeof *{r}); {fields} for (int i = 0; i < {self.known(6)}; ++i) {r}->list[i] = (u32)M(i); }}",
            f"{{ {made} if ({self.condition()}) {{ {fields} boundary(6); }} {r}->c = {self.value('u32')}; }}",
            f"{{ {made} {fields} opaque(3); {r}->in.count = {self.value('u32')}; {r}->d = {self.value('u64')}; }}",
            f"{{ u64 *p = (u64 *)recorder_allocate({self.known(count)} * 8); for (int i = 0; i < {self.known(count)}; ++i) p[i] = M(i); w->pointers[0] = p; }}",
            f"{{ u64 *p = {self.condition()} ? (u64 *)recorder_allocate(64) : w->longs; p[2] = {self.value('u64')}; p[5] = {self.value('u64')}; }}",
            f"for (int i = 0; i < {self.known(self.random.randrange(4))}; ++i) {{ u32 *p = (u32 *)recorder_allocate(16); p[i] = (u32)M(i); p[3] = 5; w->pointers[i] = p; }}")

    def helper(self):
        """A call of a function of the program's own."""
        f = self.name("f")
        noinline = self.pick("NOINLINE ", "")
        kind = self.random.randrange(7)
        start, count = self.random.randrange(40), self.random.randrange(30)
        if kind == 0:
            self.functions.append(f"static {noinline}void {f}(u32 *p, u32 n, u64 *q)\n{{\n    for (u32 i = 0; i < n; ++i) {{ p[i] = (u32)M(i + *q); }}\n    *q = M(n + 1);\n}}\n")
            return f"{f}({self.world()}->words + {start}, {self.known(count)}, &{self.world()}->longs[{self.random.randrange(64)}]);"
        if kind == 1:
            self.functions.append(f"static {noinline}u32 {f}(u16 *p, u32 n)\n{{\n    for (u32 i = 0; i < n; ++i) {{\n        p[i] = (u16)M(i * 3);\n        if (opaque(i) % 11 == 4) {{ return i; }}\n    }}\n    return n;\n}}\n")
            return f"o->words[5] = {f}({self.world()}->shorts + {start}, {self.known(count)});"
        if kind == 2:
            self.functions.append(f"static {noinline}struct inner {f}(u32 x)\n{{\n    struct inner made = {{(u8)M(x), {{1, 2, 3}}, (u32)M(x + 1), M(x + 2)}};\n    return made;\n}}\n")
            return f"w->record[{self.random.randrange(8)}].in = {f}(P[{self.random.randrange(32)}]);"
        if kind == 3:
            self.functions.append(f"static NOINLINE void {f}(u8 *p, u32 n)\n{{\n    if (n == 0) {{ return; }}\n    p[0] = (u8)M(n);\n    {f}(p + 2, n - 1);\n    p[1] = (u8)M(n + 7);\n}}\n")
            return f"{f}(w->bytes + {start}, {self.known(count)});"
        if kind == 4:
            self.functions.append(f"static NOINLINE u64 *{f}(struct world *w, struct world *o, u32 which)\n{{\n    return which & 1 ? &w->longs[which % 64] : &o->longs[which % 64];\n}}\n")
            return f"*{f}(w, o, {self.known(self.random.randrange(64))}) = {self.value('u64')};"
        if kind == 5:
            self.functions.append(f"static NOINLINE void {f}(struct record *r, struct record *s)\n{{\n    r->c = (u32)M(s->c);\n    s->d = M(r->d);\n    r->list[2] = (u32)M(s->list[1] + 5);\n    s->in.key = M(4);\n}}\n")
            a, b = self.random.randrange(8), self.random.randrange(8)
            return f"{f}(&w->record[{a}], &{self.world()}->record[{b}]);"
        self.functions.append(f"static NOINLINE void {f}(struct world *w, u32 n)\n{{\n    w->words[n % 96] = (u32)M(n);\n    if (n % 3 == 0) {{ boundary(7); }}\n    w->words[(n + 1) % 96] = (u32)M(n + 1);\n}}\n")
        return f"w->longs[7] = {self.value('u64')}; {f}(w, {self.known(start)}); w->longs[7] = {self.value('u64')};"

    def jumps(self):
        top, middle = self.name("top"), self.name("middle")
        count = self.random.randrange(1, 12)
        return self.pick(
            f"{{ u32 i = 0; if ({self.condition()}) goto {middle};\n{top}: w->words[i + 3] = (u32)M(i);\n{middle}: w->shorts[i * 2] = (u16)M(i); "
            f"if (++i < (u32){self.known(count)}) goto {top}; }}",
            f"switch (P[{self.random.randrange(32)}] % 4) {{ case 0: w->words[1] = {self.value('u32')}; break; case 1: w->words[2] = {self.value('u32')}; "
            f"case 2: w->longs[1] = {self.value('u64')}; boundary(8); break; default: w->record[0].c = {self.value('u32')}; }}",
            f"for (u32 i = 0; i < (u32){self.known(count)}; ++i) {{ switch (i % 3) {{ case 0: w->words[i] = (u32)M(i); break; case 1: w->longs[i] = M(i); break; "
            f"default: w->words[i + 1] = (u32)M(i + 5); }} }}",
            f"{{ u32 i = 0; while (1) {{ w->words[i * 2] = (u32)M(i); if (++i >= (u32){self.known(count)}) break; w->bytes[i] = (u8)M(i); }} }}")

    def exceptions(self):
        """C++ only."""
        f = self.name("throws")
        limit, count = self.random.randrange(12), self.random.randrange(12)
        kind = self.random.randrange(4)
        if kind == 0:
            self.functions.append(f"static NOINLINE void {f}(struct world *w, u32 n, u32 limit)\n{{\n    for (u32 i = 0; i < n; ++i) {{\n        w->words[i + 4] = (u32)M(i);\n        if (i == limit) {{ throw 7; }}\n    }}\n    w->longs[9] = M(n);\n}}\n")
            return (f"try {{ w->shorts[3] = {self.value('u16')}; {f}(w, {self.known(count)}, {self.known(limit)}); w->shorts[4] = {self.value('u16')}; }} "
                    f"catch (int) {{ w->longs[3] = {self.value('u64')}; }}")
        if kind == 1:
            self.functions.append(f"struct {f}_guard {{ u32 *p; ~{f}_guard() {{ *p = (u32)M(*p); }} }};\nstatic NOINLINE void {f}(u32 n) {{ if (n % 2) {{ throw 1.5; }} }}\n")
            return f"try {{ {f}_guard guard{{&w->words[{self.random.randrange(96)}]}}; w->record[2].c = {self.value('u32')}; {f}({self.known(limit)}); w->record[2].d = {self.value('u64')}; }} catch (...) {{ boundary(9); }}"
        if kind == 2:
            self.functions.append(f"struct {f}_base {{ u64 key; virtual void store(struct world *w) {{ w->words[2] = (u32)M(key); }} }};\n"
                                  f"struct {f}_derived : {f}_base {{ u32 more[3]; {f}_derived(u32 x) {{ key = M(x); for (u32 i = 0; i < 3; ++i) {{ more[i] = (u32)M(x + i); }} }}\n"
                                  f"    void store(struct world *w) override {{ w->longs[key % 64 * 0 + 4] = M(more[1]); }} }};\n")
            if self.chance(0.5):
                return f"{{ {f}_derived local({self.known(5)}); {f}_base *b = &local; b->store(w); }}"
            return f"{{ {f}_derived *made = new (recorder_allocate(sizeof({f}_derived))) {f}_derived({self.known(5)}); w->pointers[1] = made; }}"
        self.functions.append(f"static NOINLINE u32 {f}(u32 n) {{ if (n > 4) {{ throw n; }} return n; }}\n")
        return (f"for (u32 i = 0; i < (u32){self.known(count)}; ++i) {{ try {{ w->words[i * 2] = (u32)M({f}(i)); w->bytes[i] = (u8)M(i); }} "
                f"catch (u32 seen) {{ w->longs[seen] = M(seen); if (i == 7) break; }} }}")

    def statement(self):
        makers = [self.scalar, self.fields, self.again, self.loop, self.loop, self.loop, self.odd_loop, self.odd_loop, self.tangle,
                  self.tangle, self.copy_loop, self.nested, self.pointer_walk, self.bulk, self.strings, self.pointers, self.loose,
                  self.allocation, self.helper, self.jumps]
        if self.cplusplus:
            makers += [self.exceptions, self.exceptions]
        if self.chance(0.12):
            return "boundary(0);"
        return self.random.choice(makers)()


def parameters_of(seed):
    chooser = random.Random(f"{seed}/parameters")
    return [chooser.choice([0, 1, 2, 3, 5, 8, 13, 24, 31, 47, 60]) for _ in range(32)]


class Program:
    """The parts of one file: for each of its programs helper functions and statements."""

    def __init__(self, seed, cplusplus, programs=4, statements=14):
        self.parameters = parameters_of(seed)
        self.cplusplus = cplusplus
        self.bodies = []
        for number in range(programs):
            generator = Generator(seed, cplusplus, number)
            body = [generator.statement() for _ in range(statements)]
            self.bodies.append((generator.functions, body))

    def text(self, keep=None):
        """The whole file; `keep` is a set of (program, statement), all if absent."""
        lines = ['#include "world.h"']
        numbers = [number for number in range(len(self.bodies)) if keep is None or any(kept[0] == number for kept in keep)]
        for number in numbers:
            functions, body = self.bodies[number]
            chosen = [text for place, text in enumerate(body) if keep is None or (number, place) in keep]
            joined = "\n".join(chosen)
            lines += [text for text in functions if used(text, joined)]
            halves = (chosen[:len(chosen) // 2], chosen[len(chosen) // 2:])
            for part, statements in enumerate(halves):
                lines.append(f"static NOINLINE void part_{number}_{part}(struct world *w, struct world *o)\n{{")
                lines += [f"    {text}" for text in statements]
                lines.append("    (void)w, (void)o;\n}")
            lines.append(f"static void program_{number}(void *durable, void *ordinary)\n{{\n    struct world *w = (struct world *)durable, *o = (struct world *)ordinary;")
            lines.append(f"    part_{number}_0(w, o);\n    part_{number}_1(w, o);\n}}\n")
        rows = ", ".join(f"{{program_{number}, sizeof(struct world), __builtin_offsetof(struct world, bits)}}" for number in numbers)
        linkage = 'extern "C" ' if self.cplusplus else ""
        lines.append(f"{linkage}const struct program programs[] = {{{rows}}};\n{linkage}const u32 program_count = {len(numbers)};\n")
        return "\n".join(lines)


def used(function, text):
    """Whether `text` calls what `function` defines: its name is the last word before the first parenthesis or brace that has a number."""
    names = [word.strip("*(){}:;") for word in function.replace("(", " ").replace("{", " ").split()]
    return any(name in text for name in names if name.count("_") >= 2)
