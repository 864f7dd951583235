"""`stillpoint convert`: pools of random structures for programs with changed ones, compared with a model; and what is refused."""

import json
import random
import unittest

from compiler_case import CC, TOOL, CompilerCase, needs_clang, needs_plugin

WIDTHS = {"int8_t": (-128, 127), "uint8_t": (0, 255), "int16_t": (-32768, 32767), "uint16_t": (0, 65535), "int32_t": (-2**31, 2**31 - 1),
          "uint32_t": (0, 2**32 - 1), "int64_t": (-2**63, 2**63 - 1), "uint64_t": (0, 2**64 - 1)}
HEAD = "#include <inttypes.h>\n#include <stdio.h>\n#include <string.h>\n#include <stillpoint/breeze.h>\n"
PROGRAM = HEAD + """
{types}
#define CHECK(step) do {{ if (!(step)) {{ fprintf(stderr, "%s: %s\\n", #step, sp_last_error()); return 1; }} }} while (0)
static int make(const char* path)
{{
    NVM_POOL* pool = nvm_pool_create(path, 4 << 20);
    CHECK(pool != NULL && nvm_tx_begin(pool) == SP_OK);
    Root* root = nvm_alloc(pool, NVM_TYPE_ID(Root), sizeof *root);
    CHECK(nvm_pool_set_root(pool, root) == SP_OK);
{values}
    CHECK(nvm_tx_commit(pool) == SP_OK && nvm_pool_close(pool) == SP_OK);
    return 0;
}}
static int show(const char* path)
{{
    NVM_POOL* pool = nvm_pool_open(path);
    CHECK(pool != NULL);
    Root* root = nvm_pool_root(pool);
{shown}
    CHECK(nvm_pool_close(pool) == SP_OK);
    return 0;
}}
int main(int argc, char** argv) {{ return argc == 3 && strcmp(argv[1], "make") == 0 ? make(argv[2]) : show(argv[argc - 1]); }}
"""


class Structure:
    """A random structure, or what becomes of one. `fields`: name -> (type, elements)."""

    def __init__(self, fields, order, bits):
        self.fields, self.order, self.bits = fields, order, bits

    @staticmethod
    def random(dice):
        fields = {f"f{number}": (dice.choice([*WIDTHS, "float"]), dice.choice((1, 1, 3))) for number in range(dice.randint(3, 9))}
        return Structure(fields, dice.sample(list(fields), len(fields)), dice.randint(2, 20))

    def changed(self, dice):
        """With other places and wider values, longer arrays, and new fields."""
        fields = {}
        for name, (kind, count) in self.fields.items():
            fits = ["double", "float"] if kind == "float" else [
                other for other, (low, high) in WIDTHS.items() if low <= WIDTHS[kind][0] and WIDTHS[kind][1] <= high]
            fields[name] = (dice.choice(fits), count + dice.choice((0, 0, 2)))
        fields |= {f"new{number}": (dice.choice([*WIDTHS, "double"]), 1) for number in range(dice.randint(0, 3))}
        return Structure(fields, dice.sample(list(fields), len(fields)), self.bits + dice.randint(0, 9))

    def members(self):
        return " ".join(f"{self.fields[name][0]} {name}[{self.fields[name][1]}];" for name in self.order) + f" unsigned bits : {self.bits};"

    def values(self, dice):
        """name -> its values, those that each float holds exactly."""
        def one(kind):
            real = kind in ("float", "double")
            return dice.randint(-9999, 9999) / 8 if real else dice.choice((*WIDTHS[kind], dice.randint(*WIDTHS[kind])))
        return {name: [one(kind) for _ in range(count)] for name, (kind, count) in self.fields.items()} | {
            "bits": [dice.getrandbits(self.bits)]}

    def expected(self, values):
        return {name: (values.get(name, []) + [0] * count)[:count] for name, (_, count) in self.fields.items()} | {"bits": values["bits"]}


def constant(value):
    return f"({value + 1}LL - 1)" if value == -2**63 else f"{value}ULL" if isinstance(value, int) and value >= 2**63 else str(value)


def program(item, objects, links):
    """Items in a list, with a pointer into another one; its fields, and those of an array of structures in it."""
    types = (f"typedef NVM_STRUCT Item {{ {item.members()} struct Item* next; uint64_t mark; uint64_t* into; nvm_weak back; "
             f"struct {{ {item.members()} struct Item* other; }} parts[2]; }} Item;\n"
             "typedef NVM_STRUCT Root { Item* items[16]; Item* block; } Root;\nNVM_AUTO_TYPES(Item, Root);")
    lines = [f"    Item* items[{len(objects)}];", f"    for (int i = 0; i < {len(objects)}; ++i) {{",
             "        CHECK((items[i] = root->items[i] = nvm_alloc(pool, NVM_TYPE_ID(Item), sizeof(Item))) != NULL);", "    }",
             "    CHECK((root->block = nvm_alloc(pool, NVM_TYPE_ID(Item), 3 * sizeof(Item))) != NULL);"]
    for number, (values, (to, inside)) in enumerate(zip(objects, links)):
        for place in (f"items[{number}]->", f"root->block[{number % 3}].", f"items[{number}]->parts[1]."):
            for name, each in values.items():
                lines += [f"    {place}{name}{'' if name == 'bits' else f'[{index}]'} = {constant(value)};"
                          for index, value in enumerate(each)]
        lines += [f"    items[{number}]->next = items[{to}];", f"    items[{number}]->mark = {number};",
                  f"    items[{number}]->into = &{f'items[{to}]->' if inside else 'root->block[2].'}mark;",
                  f"    items[{number}]->parts[0].other = root->block + 1;",
                  f"    CHECK(nvm_weak_set(pool, &items[{number}]->back, items[{to}]) == SP_OK);"]
    shown = [f"    for (int i = 0; i < {len(objects)}; ++i) {{", "        Item* at = root->items[i];"]
    for name, (kind, count) in [*item.fields.items(), ("bits", ("unsigned", 1))]:
        number = f"PRI{'u' if kind[0] == 'u' else 'd'}{kind.strip('uint_')}"
        text = '"%g"' if kind in ("float", "double") else '"%u"' if name == "bits" else number
        text = text if text.startswith('"') else f'"%" {text}'
        for index in range(count):
            for place in ("at->", "at->parts[1]."):
                member = f'{place}{name}{"" if name == "bits" else f"[{index}]"}'
                shown.append(f'        printf("%d {place} {name} {index} " {text} "\\n", i, {member});')
    shown += ["        int to = -1;", f"        for (int j = 0; j < {len(objects)}; ++j) {{ to = root->items[j] == at->next ? j : to; }}",
              '        printf("%d to %d %d %d %d\\n", i, to, at->into == &at->next->mark ? 1 : at->into == &root->block[2].mark ? 0 : -1,',
              "               nvm_weak_get(pool, &at->back) == at->next, at->parts[0].other == root->block + 1);", "    }"]
    return PROGRAM.format(types=types, values="\n".join(lines), shown="\n".join(shown))


@needs_plugin
@needs_clang
class Conversion(CompilerCase):
    def setUp(self):
        super().setUp()
        self.medium = {"STILLPOINT_MEDIUM": "memory"}

    def build(self, name, text):
        self.write(f"{name}.c", text)
        self.output_of(CC, "--runtime=breeze", "-O1", f"{name}.c", "-o", name)

    def simple(self, name, item, values="", shown=""):
        """A program with one object; `item`: its structure and what NVM_AUTO_TYPE gets."""
        members, _, rest = item.partition("|")
        types = (f"typedef NVM_STRUCT Item {{ {members} }} Item;\nNVM_AUTO_TYPE(Item{rest});\ntypedef Item Root;\n"
                 "#define nvm_type_of_Root nvm_type_of_Item")
        self.build(name, PROGRAM.format(types=types, values=values, shown=shown))

    def convert(self, *options, to="new", old="old.pool", new="new.pool"):
        return self.run_in_folder(TOOL, "convert", old, new, "--types", f"./{to}", *options, **self.medium)

    def test_carries_every_value_and_pointer_over(self):
        for seed in range(3):
            with self.subTest(seed=seed):
                dice = random.Random(seed)
                old = Structure.random(dice)
                new = old.changed(dice)
                objects = [old.values(dice) for _ in range(4)]
                links = [(dice.randrange(4), dice.random() < 0.5) for _ in objects]
                self.build("old", program(old, objects, links))
                self.build("new", program(new, objects, links))
                for name in ("old.pool", "new.pool"):
                    (self.folder / name).unlink(missing_ok=True)
                self.medium["STILLPOINT_MEDIUM"] = dice.choice(("memory", "file"))
                self.output_of("./old", "make", "old.pool", **self.medium)
                refused = self.run_in_folder("./new", "old.pool", **self.medium)
                self.assertRegex(refused.stderr, "another one in the pool than in this program.*stillpoint convert")
                done = self.convert()
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                shown = self.output_of("./new", "new.pool", **self.medium).splitlines()
                expected = []
                for number, values in enumerate(objects):
                    for name, each in new.expected(values).items():
                        for index, value in enumerate(each):
                            text = f"{value:g}" if isinstance(value, float) else str(value)
                            expected += [f"{number} {place} {name} {index} {text}" for place in ("at->", "at->parts[1].")]
                    expected.append(f"{number} to {links[number][0]} {int(links[number][1])} 1 1")
                self.assertEqual(sorted(shown), sorted(expected))
                self.output_of(TOOL, "check", "new.pool", **self.medium)

    def test_renames_gives_defaults_and_drops_only_what_is_allowed(self):
        self.simple("old", "int32_t key; int32_t gone; char name[4];", 'root->key = -5; root->gone = 9; strcpy(root->name, "abc");')
        self.simple("new", "char name[9]; int64_t number; uint16_t level; | , NVM_RENAMED(Item, number, key), NVM_DEFAULT(Item, level, 7)",
                    shown='printf("%s %ld %d\\n", root->name, (long)root->number, root->level);')
        self.output_of("./old", "make", "old.pool", **self.medium)
        refused = self.convert()
        self.assertEqual(refused.returncode, 65)
        self.assertRegex(refused.stdout, r"refused: gone: gone, int32_t: its data would be lost; --drop Item\.gone")
        self.assertFalse((self.folder / "new.pool").exists())
        self.assertEqual(self.convert("--drop", "Item.gone,Item.other").returncode, 64)
        tried = json.loads(self.output_of(TOOL, "convert", "--dry-run", "--json", "old.pool", "new.pool", "--types", "./new", "--drop",
                                          "Item.gone", **self.medium))
        texts = [difference["text"] for difference in tried["types"][0]["differences"]]
        self.assertEqual(texts[:5], ["name: 4 -> 9 elements", "number: was called key", "number: int32_t -> int64_t, widened",
                                     "level: new, uint16_t, 7", "gone: gone, int32_t, dropped"])
        self.assertEqual((tried["refused"], tried["dry_run"], (self.folder / "new.pool").exists()), (False, True, False))
        done = self.convert("--drop", "Item.gone")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.output_of("./new", "new.pool", **self.medium), "abc -5 7\n")

    def test_narrows_only_where_every_value_fits_and_names_those_that_do_not(self):
        self.simple("old", "int64_t key; double share; int32_t list[3]; int64_t* into;",
                    "root->key = 300; root->share = 0.1; root->list[2] = 5; root->into = &root->key;")
        self.simple("new", "int8_t key; float share; int32_t list[2]; int64_t* into;")
        self.output_of("./old", "make", "old.pool", **self.medium)
        for options in ((), ("--dry-run",)):
            done = self.convert(*options)
            self.assertEqual(done.returncode, 65, done.stdout)
            for text in ("field key has the value 300, which does not fit into int8_t", "field share has the value 0.1",
                         "array list has elements beyond the new 2"):
                self.assertRegex(done.stdout, "refused: the object at byte [0-9]+ of the image, of type Item: its " + text)
        self.assertEqual(sorted(entry.name for entry in self.folder.glob("*.pool*")), ["old.pool"])

    def test_refuses_pointers_to_what_is_gone_and_other_kinds_of_fields(self):
        self.simple("old", "long first; long gone; long* into;", "root->into = &root->gone;")
        self.simple("new", "long first; long* into;")
        self.simple("other", "long first; long gone; long into;")
        self.output_of("./old", "make", "old.pool", **self.medium)
        self.assertIn("a pointer leads to its byte 8, which has no place in the new type", self.convert("--drop", "Item.gone").stdout)
        self.assertRegex(self.convert(to="other").stdout, "refused: into: pointer -> int64_t: another kind of field")

    def test_refuses_files_that_describe_no_types(self):
        self.simple("old", "long first;")
        self.output_of("./old", "make", "old.pool", **self.medium)
        self.write("text", "no program")
        for name in ("text", "gone", "/bin/true"):
            done = self.run_in_folder(TOOL, "convert", "old.pool", "new.pool", "--types", name, **self.medium)
            self.assertEqual(done.returncode, 66, done.stderr)
            self.assertIn("describes types of a pool", done.stderr)

    def test_a_pool_takes_over_a_complete_description(self):
        fields = "struct Item* next; int32_t key;"
        by_hand = f"typedef NVM_STRUCT Item {{ {fields} }} Item;\nNVM_TYPE(Item, NVM_HAS_PTR(Item, next));\n"
        self.build("old", PROGRAM.format(types=by_hand + "typedef Item Root;\n#define nvm_type_of_Root nvm_type_of_Item",
                                         values="root->next = root; root->key = 4;", shown=""))
        self.simple("full", fields, shown="(void)root;")
        self.simple("new", "int64_t key; struct Item* next;", shown='printf("%d %ld\\n", root->next == root, (long)root->key);')
        self.output_of("./old", "make", "old.pool", **self.medium)
        self.assertRegex(self.convert().stdout, "refused: .*open the pool once with the older program")
        self.output_of("./full", "old.pool", **self.medium)
        self.output_of("./old", "old.pool", **self.medium)  # A program that knows the pointers only goes on with it.
        done = self.convert()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.output_of("./new", "new.pool", **self.medium), "1 4\n")

    def test_a_dump_shows_fields_by_name_with_their_values(self):
        self.simple("old", "struct Item* next; int32_t key; float share; char name[6]; unsigned low : 3; int high : 5; _Bool done; "
                    "struct { int16_t x[2]; } parts[2]; int64_t wide;",
                    'root->key = -5; root->share = 0.5f; strcpy(root->name, "a\\"\\n"); root->low = 6; root->high = -3; root->done = 1;'
                    "root->parts[1].x[0] = 7;")
        self.output_of("./old", "make", "old.pool", **self.medium)
        text = self.output_of(TOOL, "dump", "old.pool", **self.medium)
        found = json.loads(self.output_of(TOOL, "dump", "--json", "old.pool", **self.medium))["objects"][0]
        fields = {field["field"]: field["value"] for field in found["fields"]}
        self.assertEqual(fields, {"key": "-5", "share": "0.5", "name": '"a\\"\\x0a"', "low": "6", "high": "-3", "done": "true",
                                  "parts[0].x": "{0, 0}", "parts[1].x": "{7, 0}", "wide": "0"})
        self.assertEqual(found["data"], [])
        for line in (" +0  next null", " +8  key = -5", " +12  share = 0.5", r" +28  parts\[1\]\.x = \{7, 0\}"):
            self.assertRegex(text, f"(?m)^{line}".replace("next null", "next -> null"))
        self.assertEqual(len(self.output_of(TOOL, "dump", "--bytes", "5", "old.pool", **self.medium).splitlines()), 4)

    def test_leaves_the_new_pool_whole_or_not_at_all_where_it_is_killed(self):
        self.simple("old", "int32_t key;", "root->key = 4;")
        self.simple("new", "int64_t key;", shown='printf("%ld\\n", (long)root->key);')
        self.medium["STILLPOINT_MEDIUM"] = "file"
        self.output_of("./old", "make", "old.pool", **self.medium)
        killed = 0
        for point in range(1, 1000):
            self.medium["STILLPOINT_FAULT"] = f"persist:kill@{point}"
            done = self.convert()
            if done.returncode == 0:
                break
            self.assertEqual(done.returncode, -9, done.stderr)
            killed += 1
            self.assertFalse((self.folder / "new.pool").exists())
            for left in self.folder.glob("new.pool.unfinished-*"):
                left.unlink()
        self.assertGreater(killed, 8)
        del self.medium["STILLPOINT_FAULT"]
        self.assertEqual(self.output_of("./new", "new.pool", **self.medium), "4\n")


if __name__ == "__main__":
    unittest.main()
