"""`stillpoint dump` on pools with handles: bytes without the program, fields with it, and every wrong word refused."""

import json
import random
import re
import shutil
import subprocess
import unittest

from command_line import BUILD, COUNTER, ROOT, SMALL, TOOL, CommandLineTest
from support import json_schema

INSIDE = BUILD / "bin/cli_inside"


class Inside(CommandLineTest):
    def make(self, *arguments, program=INSIDE, engine="pmthreads"):
        done = self.stillpoint("run", "--quiet", "--engine", engine, "--pool", self.pool, *SMALL, "--", program, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.pool

    def dumped(self, *options, exit_code=0):
        done = self.assert_untouched_by(self.pool, lambda: self.stillpoint("dump", "--json", *options, self.pool))
        self.assertEqual(done.returncode, exit_code, done.stderr)
        found = json.loads(done.stdout)
        json_schema.validate(found, "dump")
        return {root["name"]: root for root in found["roots"]}

    def fields(self, value):
        return {field["name"]: field for field in value["fields"]}

    def test_without_a_program_bytes_are_shown(self):
        self.make()
        roots = self.dumped()
        self.assertEqual({name: root["size_bytes"] for name, root in roots.items()},
                         {"bank": 88, "items": 400, "hidden": 8, "rates": 24, "starts": 4})
        self.assertEqual(roots["starts"]["bytes"], "02000000")
        self.assertEqual((roots["rates"]["type"], roots["rates"]["type_from"]), ("double[3]", "pool"))
        text = self.stillpoint("dump", "--bytes", "64", self.pool).stdout
        self.assertRegex(text, r'handle "bank"  88 bytes at 0x48[0-9a-f]+, in a block of 96\n')
        self.assertRegex(text, r"\|  \+40 -> 0x48[0-9a-f]+, a block of 96\n")

    def test_fields_have_the_values_that_the_program_has_stored(self):
        self.make()
        roots = self.dumped("--program", INSIDE)
        bank = self.fields(roots["bank"]["value"])
        self.assertEqual((bank["count"]["value"], bank["lock"]["value"]), ("2", "lock"))
        self.assertEqual([row["value"] for row in bank["matrix"]["elements"][1]["elements"]], ["0", "0", "42"])
        account = self.fields(bank["first"]["object"])
        shown = {name: field.get("value") for name, field in account.items()}
        self.assertEqual({name: shown[name] for name in ("owner", "balance", "rate", "state", "small", "negative", "is_new", "key")},
                         {"owner": '"owner \\"0\\""', "balance": "0", "rate": "0.1", "state": "open | frozen", "small": "5",
                          "negative": "-3", "is_new": "true", "key": None})
        self.assertEqual([byte["value"] for byte in account["key"]["elements"]][0], "254 '\\xfe'")
        self.assertEqual([field["value"] for field in account[""]["fields"]], ["1065353216", "1"])
        self.assertEqual(self.fields(account["pair"]["elements"][1])["right"]["value"], "-2")
        self.assertIn('"hello\\n"', account["label"]["value"])
        targets = {name: account[name]["target"] for name in ("outside", "label", "too_small", "freed")}
        self.assertEqual(targets, {"outside": "outside", "label": "shown", "too_small": "block too small", "freed": "no live block"})
        second = self.fields(account["next"]["object"])
        self.assertEqual((second["next"]["target"], second["next"]["note"]), ("cycle", "bank.first"))
        self.assertEqual((bank["again"]["target"], bank["again"]["note"]), ("shown elsewhere", "bank.first"))
        self.assertEqual([root["value"].get("value") for name, root in roots.items() if name == "starts"], ["2"])
        self.assertEqual([one["value"] for one in roots["rates"]["value"]["elements"]], ["1.5", "2.5", "0"])
        self.assertEqual(self.fields(roots["hidden"]["value"])["number"]["value"], "7")

    def test_each_engine_with_an_image(self):
        for engine in ("spht", "nvthreads", "pronto", "respct"):
            with self.subTest(engine=engine):
                self.pool.unlink(missing_ok=True)
                done = self.stillpoint("run", "--quiet", "--engine", engine, "--pool", self.pool, *SMALL, "--", INSIDE)
                if done.returncode == 0:
                    self.assertEqual(self.dumped("--program", INSIDE)["bank"]["type_from"], "name of the handle")

    def test_types_and_limits(self):
        self.make()
        items = self.dumped("--program", INSIDE, "--type", "items=struct item", "--limit", "3", "--root", "items")["items"]
        self.assertEqual((items["type"], items["type_from"]), ("struct item[50]", "--type"))
        self.assertEqual((len(items["value"]["elements"]), items["value"]["left_out"]), (3, 47))
        two = self.dumped("--program", INSIDE, "--type", "items=long", "--type", "bank=struct account")
        self.assertEqual(two["items"]["value"]["elements"][2]["value"], "2")
        self.assertEqual(two["bank"]["note"], "the type has 96 bytes, the object 88")
        bank = self.fields(self.dumped("--program", INSIDE, "--depth", "0")["bank"]["value"])
        self.assertEqual(bank["first"]["target"], "not followed")

    def test_wrong_words_are_refused(self):
        self.make()
        for exit_code, message, words in ((64, "has no type of that name; there are: .*account",
                                           ("--program", INSIDE, "--type", "bank=accoun")),
                                          (64, "no handle of that name", ("--program", INSIDE, "--type", "none=int")),
                                          (64, "of the form HANDLE=TYPE", ("--type", "bank")),
                                          (64, "--type needs --program", ("--type", "bank=int")),
                                          (64, "no handle and no durable global", ("--root", "none")),
                                          (66, "No such file", ("--program", "none")),
                                          (65, "is not a file", ("--program", self.folder)),
                                          (65, "cannot be read as a program", ("--program", __file__))):
            with self.subTest(words=words):
                self.assert_refused(self.stillpoint("dump", *words, self.pool), exit_code, message)

    def test_separate_debug_information_is_found_and_a_stripped_program_is_told(self):
        program = self.folder / "inside"
        shutil.copy(INSIDE, program)
        self.make(program=program)
        subprocess.run(["objcopy", "--only-keep-debug", program, self.folder / "types"], check=True)
        subprocess.run(["strip", "-g", program], check=True)
        self.assert_refused(self.stillpoint("dump", "--program", program, self.pool), 66, "no debug information.*compile it with -g")
        subprocess.run(["objcopy", "--add-gnu-debuglink=types", program], cwd=self.folder, check=True)
        self.assertEqual(self.fields(self.dumped("--program", program)["bank"]["value"])["count"]["value"], "2")

    def test_containers_are_shown_by_their_elements(self):
        self.make(program=BUILD / "bin/cli_containers", engine="pronto")
        roots = self.dumped("--program", BUILD / "bin/cli_containers")
        numbers = self.fields(roots["numbers"]["value"])["values_"]
        self.assertEqual([one["value"] for one in numbers["elements"]], ["0", "1", "4", "9", "16"])
        for name, entries in (("visits", {"Anna": "3", "a name that has no room in a short string": "4"}), ("words", {"one": "1"})):
            pairs = [self.fields(one) for one in self.fields(roots[name]["value"])["values_"]["elements"]]
            self.assertEqual({json.loads(pair["first"]["value"]): pair["second"]["value"] for pair in pairs}, entries)
        [pair] = [self.fields(one) for one in roots["texts"]["value"]["elements"]]
        self.assertEqual((pair["first"]["value"], pair["second"]["value"]), ('"key"', '"value"'))
        self.assertEqual(self.dumped("--program", BUILD / "bin/cli_containers", "--limit", "1")["visits"]["type_from"], "pool")

    def test_logged_variables_are_shown_by_their_values(self):
        self.make(program=BUILD / "bin/cli_logged", engine="respct")
        roots = self.dumped("--program", BUILD / "bin/cli_logged")
        self.assertEqual((roots["list"]["type"], roots["list"]["type_from"]), ("List", "pool"))
        first = self.fields(roots["list"]["value"])["first"]
        node = self.fields(first["object"])
        self.assertEqual((first["type"], node["count"]["value"], node["key"]["value"]), ("logged<Node *>", "20", "2"))

    def test_classes(self):
        self.make(program=BUILD / "bin/cli_classes")
        roots = self.dumped("--program", BUILD / "bin/cli_classes", "--type", "tail=bank::Tail")
        account = roots["bank::Account"]["value"]
        bases = [field for field in account["fields"] if field.get("note") == "base class"]
        self.assertEqual([base["type"] for base in bases], ["bank::Base", "bank::Other"])
        self.assertEqual(self.fields(bases[0])["base_value"]["value"], "5")
        fields = self.fields(account)
        self.assertNotIn("count", fields)
        self.assertEqual({name: fields[name]["value"] for name in ("kind", "hits", "own", "text", "member")},
                         {"kind": "big", "hits": "3", "own": "null", "text": '"hi\\x01"', "member": "0xffffffffffffffff"})
        self.assertEqual((fields["self"]["target"], fields["maybe"]["fields"][0]["value"]), ("cycle", "7"))
        self.assertEqual([one["value"] for one in fields["triple"]["elements"]], ["1", "2", "3"])
        self.assertEqual([one["value"] for one in self.fields(roots["tail"]["value"])["items"]["elements"]], ["1", "2", "3", "4"])

    def test_every_form_of_debug_information_says_the_same(self):
        self.make()
        said = {}
        for words in ("gcc -gdwarf-4 -fdebug-types-section", "gcc -gdwarf-5 -fdebug-types-section -gz", "gcc -g -gsplit-dwarf",
                      "clang-19 -g", "clang-19 -g -gsplit-dwarf"):
            if shutil.which(words.split()[0]):
                source = [ROOT / "tests/cli/cli_inside.c", f"-I{ROOT}/include", f"-L{BUILD}/lib", "-lstillpoint", "-pthread",
                          "-o", "inside"]
                subprocess.run([*words.split(), *map(str, source)], cwd=self.folder, check=True)
                text = self.stillpoint("dump", "--program", "inside", self.pool).stdout
                said[words] = text.replace("long int", "long").replace("short int", "short")
        self.assertEqual(len(set(said.values())), 1, said)

    def diff(self, *options, exit_code=1, before="before.pool"):
        done = self.stillpoint("diff", "--json", *options, before, self.pool)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        json_schema.validate(found, "diff")
        return found

    def make_two(self):
        self.make()
        shutil.copy(self.pool, self.folder / "before.pool")
        self.make()

    def test_a_pool_and_its_copy_are_the_same(self):
        self.make_two()
        found = self.diff(exit_code=0, before=self.pool)
        self.assertEqual((found["same"], found["roots"], found["blocks"]), (True, [], []))
        self.assertEqual(self.stillpoint("diff", self.pool, self.pool).stdout, "")

    def test_a_difference_is_told_by_bytes_and_by_fields(self):
        self.make_two()
        plain = {root["name"]: root for root in self.diff()["roots"]}
        self.assertEqual(set(plain), {"bank", "items", "starts"})
        self.assertEqual((plain["starts"]["changed_bytes"], plain["starts"]["ranges"]), (1, [{"offset": 0, "size_bytes": 1}]))
        found = self.diff("--program", INSIDE, "--type", "items=struct item")
        typed = {root["name"]: root for root in found["roots"]}
        self.assertEqual([(field["field"], field["offset"]) for field in typed["bank"]["fields"]],
                         [("first", 40), ("again", 48), ("count", 56)])
        self.assertEqual([(field["before"], field["after"]) for field in typed["bank"]["fields"]][2], ("2", "4"))
        self.assertEqual(typed["items"]["fields"][0], {"field": "[1].number", "type": "long int", "offset": 8, "before": "1", "after": "2"})
        self.assertEqual((found["blocks_added"], found["blocks_removed"], found["blocks_changed"]), (6, 0, 0))
        self.assertIn("bank.first.next", [block.get("name") for block in found["blocks"]])

    def test_what_is_gone_is_told_and_so_is_a_changed_block(self):
        self.make_two()
        self.make()
        names = [block.get("name") for block in self.diff("--program", INSIDE)["blocks"]]
        self.assertIn("bank.first.next*3", names)
        shutil.copy(self.pool, self.folder / "before.pool")
        self.make("delete")
        found = self.diff("--program", INSIDE, "--type", "items=struct item")
        self.assertEqual([root["name"] for root in found["roots"] if root["change"] == "removed"], ["items"])
        [block] = found["blocks"]
        self.assertEqual((block["change"], block["name"]), ("changed", "bank.first"))
        self.assertEqual([(field["field"], field["before"], field["after"]) for field in block["fields"]], [("balance", "-400", "1")])
        back = self.stillpoint("diff", "--limit", "0", self.pool, "before.pool")
        self.assertEqual(back.returncode, 1)
        self.assertRegex(back.stdout, r"(?m)^\+ handle items  400 bytes at 0x48")
        self.assertRegex(back.stdout, r"handles and globals: 2 differ; other blocks: 0 added, 0 removed, 1 changed")

    def test_objects_of_junk_are_shown_with_what_is_wrong(self):
        self.make("junk")
        shutil.copy(self.pool, self.folder / "before.pool")
        map_of_strings = "durable::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>, int>"
        kinds = {BUILD / "bin/cli_containers": ("stillpoint::" + map_of_strings, "stillpoint::durable::vector<long>",
                                                "stillpoint::durable::string_map", "unsigned long*"),
                 INSIDE: ("struct bank", "struct account", "struct account*", "char", "bool"), BUILD / "bin/cli_logged": ("Node", "List*")}
        for program, types in kinds.items():
            for kind in types:
                words = [word for seed in range(40) for word in ("--type", f"junk {seed}={kind}")]
                for command in (["dump", "--limit", "0", "--depth", "30", "--json"], ["diff", "before.pool"]):
                    with self.subTest(program=program, kind=kind, command=command[0]):
                        done = self.stillpoint(*command, "--program", program, *words, self.pool)
                        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_pool_in_use_is_refused_and_a_copy_suggested(self):
        words = [TOOL, "run", "--quiet", "--pool", self.pool, *SMALL, "--", COUNTER, "wait"]
        with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True) as holder:
            self.assertEqual([holder.stdout.readline() for _ in range(2)][1], "ready\n")
            for command in (("dump", self.pool), ("diff", self.pool, self.pool)):
                self.assert_refused(self.stillpoint(*command), 75, "look into a copy: `stillpoint copy ")
            self.assertEqual(self.stillpoint("copy", "--pause", self.pool, "copied.pool").returncode, 0)
            self.assertIn('handle "runs"', self.stillpoint("dump", "copied.pool").stdout)
            holder.kill()

    def test_damaged_debug_information_ends_no_command_by_a_signal(self):
        self.make()
        whole = INSIDE.read_bytes()
        sections = subprocess.run(["readelf", "-SW", INSIDE], capture_output=True, text=True, check=True).stdout
        places = [(int(at, 16), int(size, 16)) for at, size in re.findall(r"\.debug_\w+ +PROGBITS +\w+ (\w+) (\w+)", sections)]
        dice = random.Random(7)
        program = self.folder / "damaged"
        for _ in range(150):
            bytes_ = bytearray(whole)
            for _ in range(dice.choice((1, 3, 20))):
                at, size = dice.choice([*places, (0, 1024)])
                bytes_[at + dice.randrange(size)] ^= 1 << dice.randrange(8)
            program.write_bytes(bytes_)
            done = self.stillpoint("dump", "--json", "--program", program, "--depth", "20", self.pool)
            self.assertIn(done.returncode, (0, 65, 66), done.stderr)


if __name__ == "__main__":
    unittest.main()
