"""`stillpoint dump` and `stillpoint diff` with a program in Rust: enums are shown by their variants. Skipped without rustc."""

import json
import shutil
import subprocess
import unittest
from pathlib import Path

from command_line import BUILD, SMALL, CommandLineTest
from support import json_schema

SOURCE = Path(__file__).resolve().parent / "cli_shapes.rs"


def has_rustc():
    return shutil.which("rustc") is not None and subprocess.run(["rustc", "--version"], capture_output=True, check=False).returncode == 0


@unittest.skipUnless(has_rustc(), "needs rustc")
class RustTypes(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.program = self.folder / "cli_shapes"
        words = ["rustc", "--edition", "2021", "-g", SOURCE, "-o", self.program, "-L", BUILD / "lib", "-l", "dylib=stillpoint",
                 "-C", f"link-arg=-Wl,-rpath,{BUILD / 'lib'}"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.run_program()

    def run_program(self, *arguments):
        done = self.stillpoint("run", "--quiet", "--pool", self.pool, *SMALL, "--", self.program, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)

    def looked_into(self, command, *pools):
        return self.stillpoint(*command, "--program", self.program, "--type", "root=cli_shapes::Root", *pools)

    def test_each_form_of_enum(self):
        done = self.looked_into(("dump", "--json"), self.pool)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        json_schema.validate(found, "dump")
        root = {field["name"]: field for field in found["roots"][0]["value"]["fields"]}

        def shown(field):
            return field.get("value"), {inner["name"]: inner.get("value") for inner in field.get("fields", [])}

        self.assertEqual([shown(shape) for shape in root["shapes"]["elements"]],
                         [("Circle", {"__0": "2.5"}), ("Rectangle", {"width": "1.5", "height": "2"}), ("Nothing", {})])
        self.assertEqual([shown(root[name]) for name in ("some", "none", "niche", "no_niche", "only")],
                         [("Some", {"__0": "7"}), ("None", {}), ("Some", {"__0": "Second"}), ("None", {}), ("One", {"__0": "12"})])
        self.assertEqual(root["kind"]["value"], "Third")
        self.assertEqual([shown(one) for one in root["signed"]["elements"]], [("Low", {"__0": "11"}), ("High", {})])
        node = {field["name"]: field for field in root["first"]["fields"][0]["object"]["fields"]}
        self.assertEqual(node["value"]["value"], "1")
        last = {field["name"]: field for field in node["next"]["fields"][0]["object"]["fields"]}
        self.assertEqual((last["value"]["value"], shown(last["next"])), ("2", ("None", {})))

    def test_the_text_names_variants(self):
        text = self.looked_into(("dump",), self.pool).stdout
        self.assertRegex(text, r"(?m)^    \[1\]: cli_shapes::Shape = Rectangle\n      width: f64 = 1\.5\n      height: f64 = 2$")
        self.assertRegex(text, r"(?m)^  none: core::option::Option<u32> = None$")

    def test_diff_tells_another_variant_and_another_value_of_one(self):
        before = self.folder / "before.pool"
        shutil.copy(self.pool, before)
        self.run_program("change")
        done = self.looked_into(("diff",), before, self.pool)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"shapes\[0\]: cli_shapes::Shape = Circle -> Nothing")
        self.assertRegex(done.stdout, r"some\.__0: u32 = 7 -> 8")
        self.assertRegex(done.stdout, r"first: .* = Some -> None")
        self.assertRegex(done.stdout, r"signed\[1\]: .* = High -> no variant")
        text = self.looked_into(("dump",), self.pool).stdout
        self.assertIn("[1]: cli_shapes::Signed  (its discriminant is that of no variant)", text)


if __name__ == "__main__":
    unittest.main()
