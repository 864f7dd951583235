"""Makes random C++ programs that use standard containers in durable memory, for the differential fuzz of the compiler pass (fuzz.py).

What is searched is what the library has precompiled, and the pass does not see: a store there that no description, body or
instantiation covers changes a byte without a hook. Each statement stands for itself, as in program_generator.py.
"""

import random
from pathlib import Path

from program_generator import parameters_of

# `C` is the container, `O` another of its type, `K` a key made of `i`, `i` the loop's index.
TREES = ("C.emplace(K{args});", "C.erase(K);", "C.insert_or(K{args});", "if (auto at = C.lower_bound(K); at != C.end()) C.erase(at);",
         "C.emplace_hint(C.upper_bound(K), K{args});", "if (auto node = C.extract(K)) {{ C.insert(std::move(node)); }}")
WHOLE = ("C.swap(O);", "O = C;", "O = std::move(C); C.clear();", "C.clear();", "C.merge(O);", "O.merge(C);",
         "C.erase(C.lower_bound(7), C.upper_bound(15));", "{ auto copy = C; C.swap(copy); }")
LISTS = ("C.push_back(K);", "C.push_front(K);", "if (!C.empty()) C.pop_front();", "if (!C.empty()) C.pop_back();",
         "C.insert(C.empty() ? C.end() : ++C.begin(), 2, K);")
WHOLE_LISTS = ("C.reverse();", "C.sort();", "C.unique();", "C.swap(O);", "C.splice(C.begin(), O);", "C.splice(C.end(), C, C.begin());",
               "if (O.size() > 2) C.splice(C.begin(), O, ++O.begin(), --O.end());", "C.sort(); O.sort(); C.merge(O);", "O = C;",
               "C.assign(5, 9);", "C.remove_if([](u64 value) { return value % 3 == 0; });", "C.resize(9); O.clear();")
HASHED = ("C.emplace(K, i);", "C.erase(K);", "if (auto node = C.extract(K)) { node.key() = K + 100; C.insert(std::move(node)); }")
WHOLE_HASHED = ("C.rehash(61);", "C.reserve(50);", "C.swap(O);", "O = C;", "C.clear();", "C.merge(O);", "C.max_load_factor(0.5f);")
SEQUENCES = ("C.push_back(K);", "if (!C.empty()) C.pop_back();", "C.insert(C.begin() + C.size() / 2, K);",
             "if (C.size() > 3) C.erase(C.begin() + 1, C.begin() + 3);", "C.resize(K);")
TEXTS = ("C += name(i);", "C.push_back('x');", "C.insert(C.size() / 2, \"four\");", "C.replace(0, C.size() / 3, \"another\");",
         "if (!C.empty()) C.erase(C.size() / 2);", "C.resize(K, 'z');", "C.assign(K, 'q');", "C.reserve(K + 20);", "C.append(K, 'r');",
         "C = \"short\";", "C.shrink_to_fit();", "C.assign(\"a text that needs a buffer\");", "C.pop_back_if();")
WHOLE_STRINGS = ("w.string.swap(w.other_string);", "w.string = w.other_string;", "w.other_string = std::move(w.string); w.string = \"\";",
                 "w.string.append(w.other_string, 0, 20);", "w.string = w.string + w.other_string;",
                 "w.other_string = name(P[4]) + w.string;",
                 "w.string = std::to_string(P[3] * 77);", "w.wide = std::to_wstring(P[5]); w.wide += L\" and more of it, wide\";",
                 "w.wide.replace(0, 1, L\"wider\"); w.wide.resize(30, L'w');", "new (&w.other_string) std::string(w.string, 0, 18);")
READERS = ("for (auto &entry : w.map) w.sum += entry.first * 3 + entry.second;", "for (auto value : w.list) w.sum = w.sum * 5 + value;",
           "for (auto at = w.set.rbegin(); at != w.set.rend(); ++at) w.sum += *at;", "w.sum += w.hashed.count(7) + w.multimap.size();")


class ContainerGenerator:
    """Statements of one program."""

    def __init__(self, seed, number):
        self.random = random.Random(f"{seed}/containers/{number}")

    def loop(self, texts, container, args=""):
        chooser = self.random
        text = chooser.choice(texts).replace("{args}", args).replace("{{", "{").replace("}}", "}")
        text = text.replace("C.insert_or(", "C.emplace(").replace("C.pop_back_if();", "if (!C.empty()) C.pop_back();")
        seed, spread = chooser.randrange(1000), chooser.choice([3, 12, 24, 40])
        text = text.replace("C.", container + ".").replace("K", f"key(i * {chooser.randrange(1, 50)} + {seed}, {spread})")
        text = text.replace(" C ", f" {container} ").replace("C += ", container + " += ").replace("C = ", container + " = ")
        return f"for (u32 i = 0; i < {chooser.choice([1, 2, 5, 9, 20])} + P[{chooser.randrange(32)}] % 5; ++i) {{ {text} }}"

    def whole(self, texts, container, other):
        text = self.random.choice(texts)
        return text.replace("O", other).replace("C.", container + ".").replace("(C)", f"({container})").replace("= C;", f"= {container};") \
            .replace(" C,", f" {container},").replace(", C,", f", {container},").replace("move(C)", f"move({container})")

    def statement(self):
        kind = self.random.randrange(20)
        if kind < 7:
            container, args = self.random.choice([("w.map", ", i"), ("w.multimap", ", i"), ("w.set", ""), ("w.multiset", ""),
                                                  ("w.plain_map", ", i"), ("w.pmr_map", ", i")])
            return self.loop(TREES, container, args)
        if kind < 8:
            return self.whole(WHOLE, *self.random.choice([("w.map", "w.other_map"), ("w.set", "w.other_set")]))
        if kind < 10:
            return self.loop(LISTS, self.random.choice(["w.list", "w.other_list", "w.plain_list", "w.pmr_list", "w.deque"]))
        if kind < 12:
            return self.whole(WHOLE_LISTS, "w.list", "w.other_list")
        if kind < 13:
            return self.loop(HASHED, self.random.choice(["w.hashed", "w.multihashed", "w.pmr_hashed"]))
        if kind < 14:
            return self.whole(WHOLE_HASHED, "w.hashed", "w.other_hashed")
        if kind < 15:
            return self.loop(SEQUENCES, self.random.choice(["w.vector", "w.deque", "w.bits", "w.pmr_deque"]))
        if kind < 17:
            return self.loop(TEXTS, self.random.choice(["w.string", "w.other_string", "w.text"]))
        if kind < 18:
            return self.random.choice(WHOLE_STRINGS)
        if kind < 19:
            return self.loop(("w.strings.insert(name(i * 7));", "w.strings.erase(name(i * 7));",
                              "w.pmr_strings.emplace(name(i * 3).c_str());",
                              "w.pmr_vector.emplace_back(name(i).c_str());", "w.forward.push_front(i); w.forward.reverse();",
                              "w.forward.insert_after(w.forward.before_begin(), i); w.forward.sort();",
                              "w.other_forward.push_front(i); w.forward.splice_after(w.forward.before_begin(), w.other_forward);"), "")
        return self.random.choice(READERS)


class ContainerProgram:
    """One file, with the interface of program_generator.Program."""

    cplusplus = True
    options = ("-std=c++17", "-isystem", str(Path(__file__).resolve().parents[2] / "include/stillpoint/libstdcxx"))

    def __init__(self, seed, programs=3, statements=16):
        self.parameters = parameters_of(seed)
        self.bodies = []
        for number in range(programs):
            generator = ContainerGenerator(seed, number)
            self.bodies.append(((), [generator.statement() for _ in range(statements)]))

    def text(self, keep=None):
        """The whole file; `keep` is a set of (program, statement), all if absent."""
        lines = ['#include "containers.h"', "#define P parameters", "using namespace containers;"]
        numbers = [number for number in range(len(self.bodies)) if keep is None or any(kept[0] == number for kept in keep)]
        for number in numbers:
            lines.append(f"static void program_{number}(void *durable, void *)\n{{\n    arena.begin(durable);\n    World &w = *new (durable) World;")
            lines += [f"    {text}" for place, text in enumerate(self.bodies[number][1]) if keep is None or (number, place) in keep]
            lines.append("}")
        rows = ", ".join(f"{{program_{number}, memory_bytes, 0}}" for number in numbers)
        lines.append(f'extern "C" const struct program programs[] = {{{rows}}};\nextern "C" const u32 program_count = {len(numbers)};\n')
        return "\n".join(lines)

    def text_in_a_pool(self):
        """A program for `stillpoint run`: each statement is a FASE, and a checkpoint follows it."""
        lines = ["#define CONTAINERS_IN_A_POOL", '#include "containers.h"', "#include <cstdlib>", "using namespace containers;",
                 f"static const u32 P[] = {{{', '.join(str(value) for value in self.parameters)}}};"]
        for number, (_, body) in enumerate(self.bodies):
            lines.append(f"static void program_{number}()\n{{\n    sp_fase_begin();\n"
                         f'    World &w = *new (sp_root("world {number}", sizeof(World))) World;\n    sp_fase_end();')
            lines += [f"    sp_fase_begin();\n    {text}\n    sp_fase_end();\n    if (sp_checkpoint() != SP_OK) std::abort();" for text in body]
            lines.append("}")
        calls = " ".join(f"program_{number}();" for number in range(len(self.bodies)))
        return "\n".join([*lines, f"int main()\n{{\n    {calls}\n    std::_Exit(0);\n}}\n"])
