#!/usr/bin/env python3
"""The adaptation layers: folders, YAML, shims, wrapper headers and layers/README.md say the same; and one program runs on
every layer, at every end of its optimisations, and finds its data again.

Both ways: what one place names the other has, and nothing else.
"""

import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from compiler_case import BUILD, CC, ROOT, CompilerCase, needs_clang, needs_plugin

sys.path.insert(0, str(ROOT / "bench/nvhooks"))
from settings import LAYERS, SETTINGS, STORES, Compilers, write_setting  # noqa: E402  (the path must be set first)

FOLDER = ROOT / "layers"
README = (FOLDER / "README.md").read_text()
RUN = [*LAYERS, "breeze"]  # the benchmark does not run the last one
FOLDERS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
HEADERS = [FOLDER / name / f"{name}-hooks.h" for name in RUN] + [ROOT / "bench/nvhooks/volatile-hooks.h"]
BOTH_RUNTIMES = """
#include <stdio.h>
#include <stillpoint/stillpoint.h>
#include "undo-hooks.h"
int main(int count, char **words)
{
    if (count != 3 || undo_open(words[1], 1 << 20) != 0 || sp_open(words[2], "durability=process quiet=1") != SP_OK) {
        fprintf(stderr, "%s; %s\\n", undo_error(), sp_last_error());
        return 1;
    }
    long *here = undo_root(sizeof *here);
    long *there = sp_root("there", sizeof *there);
    undo_fase_begin();
    *here += 1;
    undo_fase_end();
    sp_fase_begin();
    *there += 1;
    sp_fase_end();
    printf("%ld %ld\\n", *here, *there);
    return sp_close() == SP_OK ? 0 : 1;
}
"""
TRANSLATION = "int *place; void store(int value) { *place = value; }\n"


def archive(layer):
    return BUILD / "lib" / f"libstillpoint-layer-{layer}.a"


def api_of(layer):
    """The header that declares the runtime's own functions."""
    return FOLDER / layer / f"{layer}-hooks.h" if has_shim(layer) else ROOT / "include/stillpoint/stillpoint.h"


def has_shim(layer):
    """Whether the layer links an archive of its own; else its hooks, if it has any, are libstillpoint's."""
    return archive(layer).name in (FOLDER / layer / "link.flags").read_text()


def built(layer):
    return not has_shim(layer) or archive(layer).is_file()


def defined_functions(layer):
    """Names that what the layer links defines for the program."""
    library = [archive(layer)] if has_shim(layer) else ["--dynamic", BUILD / "lib/libstillpoint.so"]
    listed = subprocess.run(["nm", "--defined-only", "--extern-only", *map(str, library)], capture_output=True, text=True,
                            check=True).stdout
    return {line.split()[2].split("@")[0] for line in listed.splitlines() if re.match(r"^[0-9a-f]+ T ", line)}


def listed_hooks(layer):
    text = (FOLDER / layer / "layer.yaml").read_text()
    hooks = re.search(r"^hooks: \[(.*)\]$", text, re.MULTILINE)
    return set(hooks.group(1).split(", ")) if hooks else set(), "marks: cards" in text


def listed_clones(path):
    """The functions under `cloned:`, and all that is said of transactions."""
    transactions = path.read_text().partition("\ntransactions:\n")[2]
    cloned = re.search(r"^  cloned:\n((?:    - .*\n)+)", transactions, re.MULTILINE)
    return re.findall(r"^    - (\S+)", cloned.group(1), re.MULTILINE) if cloned else [], transactions


def clone_name(function):
    return f"_ZGTt{function[2:]}" if function.startswith("_Z") else f"_ZGTt{len(function)}{function}"


def described_functions(layer):
    path = FOLDER / layer / "functions.yaml"
    return set(re.findall(r"^  (\w+):", path.read_text(), re.MULTILINE)) if path.is_file() else set()


class FoldersAndDocuments(unittest.TestCase):
    def test_readme_lists_every_layer_and_no_other(self):
        listed = re.findall(r"^\| \[(\w+)\]\(\1\) \|", README, re.MULTILINE)
        self.assertEqual(sorted(listed), FOLDERS)
        self.assertLessEqual(set(RUN), set(listed))

    def test_each_folder_has_the_files_that_the_readme_names(self):
        named = re.findall(r"^\| `([\w.-]+)` \|", README, re.MULTILINE)
        self.assertIn("layer.yaml", named)
        for layer in FOLDERS:
            for name in named:
                path = FOLDER / layer / name.replace("NAME", layer)
                described = re.search(r"[\[ ]functions\.yaml", (FOLDER / layer / "layer.yaml").read_text())  # its own
                needed = name != "functions.yaml" or described is not None
                self.assertEqual(path.is_file(), needed, f"{path}: {'missing' if needed else 'there, and layer.yaml does not name it'}")

    def test_each_header_has_the_operations_of_the_readme_and_no_other(self):
        wanted = set(re.findall(r"`(durable_\w+)", README))
        self.assertGreater(len(wanted), 10)
        for header in HEADERS:
            self.assertEqual(set(re.findall(r"\bdurable_\w+", header.read_text())), wanted, header)


class Shims(unittest.TestCase):
    def layers(self):
        for layer in FOLDERS:
            if built(layer):
                yield layer
            else:
                print(f"layers_test: the layer {layer} was not built: its runtime is not installed")

    def test_each_shim_defines_the_hooks_of_its_yaml_and_no_other(self):
        for layer in self.layers():
            hooks, marks_cards = listed_hooks(layer)
            wanted = set() if marks_cards else {f"nvhooks_{hook}" for hook in hooks}
            defined = {name for name in defined_functions(layer) if name.startswith("nvhooks_")}
            if has_shim(layer):
                self.assertEqual(defined, wanted, layer)
            else:  # libstillpoint has the hooks of every layer that it serves
                self.assertLessEqual(wanted, defined, layer)

    def test_libstillpoint_itm_has_the_clones_of_the_yaml_and_no_other(self):
        listed, transactions = listed_clones(FOLDER / "spht/layer.yaml")
        symbols = subprocess.run(["nm", "--dynamic", "--defined-only", BUILD / "lib/libstillpoint-itm.so"], capture_output=True, text=True,
                                 check=True).stdout
        defined = set(re.findall(r" T (_ZGTt\S+)$", symbols, re.MULTILINE))
        self.assertEqual({clone_name(function) for function in listed}, defined)
        self.assertEqual(listed_clones(FOLDER / "spht/lint.yaml")[1], transactions)

    def test_each_described_function_is_the_shims_and_declared(self):
        for layer in self.layers():
            header = api_of(layer).read_text()
            for function in described_functions(layer):
                self.assertRegex(header, rf"\b{function}\(")
                self.assertIn(function, defined_functions(layer))

    def test_each_function_of_the_shim_is_declared_in_the_header(self):
        for layer in self.layers():
            header = (FOLDER / layer / f"{layer}-hooks.h").read_text()
            for function in defined_functions(layer):
                if function.startswith(f"{layer}_"):
                    self.assertRegex(header, rf"\b{function}\(")


@needs_clang
@needs_plugin
class Compilation(CompilerCase):
    def test_each_layer_at_each_setting_is_accepted_by_the_plugin(self):
        source = self.write("store.c", TRANSLATION)
        for layer in RUN:
            for setting in SETTINGS:
                configuration = write_setting(layer, setting, self.folder)
                self.output_of(CC, f"--runtime={configuration}", "-O1", "-c", source, "-o", "store.o")

    def test_the_operations_of_every_layer_are_described(self):
        """The compiler knows each call of a wrapper header, so no optimisation stops at one because a description is missing."""
        for layer in RUN:
            for store in STORES:
                done = self.run_in_folder(CC, f"--runtime={layer}", "-O2", "-Wstillpoint-unknown-call",
                                          f'-DDURABLE_HOOKS="{layer}-hooks.h"', "-c", ROOT / f"bench/nvhooks/{store}.c")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("unknown-call", done.stderr)


    def test_undo_and_libstillpoint_live_in_one_process(self):
        source = self.write("both.c", BOTH_RUNTIMES)
        library = BUILD / "lib"
        self.output_of(CC, "--runtime=undo", f"-I{ROOT / 'include'}", "-O1", source, f"-L{library}", f"-Wl,-rpath,{library}",
                       "-lstillpoint", "-o", "both")
        self.assertEqual(self.output_of(self.folder / "both", "undo.pool", "other.pool"), "1 1\n")
        self.assertEqual(self.output_of(self.folder / "both", "undo.pool", "other.pool"), "2 2\n")


@needs_clang
@needs_plugin
class Programs(unittest.TestCase):
    """The hash map and the B+tree of bench/nvhooks against a model, in two runs on one pool."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="layers-", dir=BUILD)
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.compilers = Compilers(BUILD)

    def survives(self, layer, setting, options):
        if not built(layer):
            self.skipTest(f"the layer {layer} was not built: its runtime is not installed")
        configuration = write_setting(layer, setting, self.folder)
        for store in STORES:
            program = self.compilers.instrumented(store, layer, configuration, "store_exerciser", self.folder / store, options)
            self.runs(program, store)

    def runs(self, program, store):
        pool = self.folder / f"{store}.pool"
        for generation in (1, 2):
            words = [str(program), f"pool={pool}", "pool_mib=32", "threads=3", "operations=1500", f"generation={generation}"]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300,
                                  env={"PMEM_IS_PMEM_FORCE": "1", "STILLPOINT_QUIET": "1"})
            self.assertEqual(done.returncode, 0, f"{program}, run {generation}: {done.stderr}")
        pool.unlink()

    def killed(self, layer):
        """A store whose process is killed with three threads at work has every operation that had returned, and is sound."""
        if not built(layer):
            self.skipTest(f"the layer {layer} was not built: its runtime is not installed")
        environment = {"PMEM_IS_PMEM_FORCE": "1"}
        pool, acknowledged = self.folder / "killed.pool", self.folder / "acknowledged"
        for store in STORES:
            configuration = write_setting(layer, SETTINGS[-1], self.folder / store)
            program = self.compilers.instrumented(store, layer, configuration, "store_exerciser", self.folder / f"{store}-killed")
            for seconds in (0.04, 0.09, 0.15, 0.25):
                words = [str(program), f"pool={pool}", "pool_mib=64", "threads=3", "generation=1", f"acknowledged={acknowledged}"]
                running = subprocess.Popen([*words, "operations=100000000"], env=environment)
                while running.poll() is None and not (acknowledged.is_file() and any(acknowledged.read_bytes())):
                    time.sleep(0.005)
                time.sleep(seconds)
                running.kill()
                self.assertEqual(running.wait(), -signal.SIGKILL)
                done = subprocess.run([*words, "operations=0"], capture_output=True, text=True, check=False,
                                      timeout=300, env=environment)
                self.assertEqual(done.returncode, 0, f"{store}, killed after {seconds} s: {done.stderr}")
                pool.unlink()
                acknowledged.unlink()

    def test_pmdk_loses_nothing_to_a_kill(self):
        self.killed("pmdk")

    def test_breeze_loses_nothing_to_a_kill(self):
        self.killed("breeze")

    def test_undo_loses_nothing_to_a_kill(self):
        self.killed("undo")

    def test_hand_annotated_stores_equal_the_model(self):
        if not built("pmdk"):
            self.skipTest("libpmemobj is not installed")
        for store in STORES:
            self.runs(self.compilers.hand_annotated(store, "store_exerciser", self.folder / store), store)


def add_tests():
    """One test for each layer, setting and level: their names say which failed."""
    for layer in RUN:
        for setting, options in (("initial", ("-O2",)), ("no-extra-tracking", ("-O2",)), ("no-extra-tracking", ("-O0",))):
            name = f"test_{layer}_with_{setting.replace('-', '_')}_at_{options[0][1:]}"
            setattr(Programs, name, lambda self, what=(layer, setting, options): self.survives(*what))


add_tests()

if __name__ == "__main__":
    unittest.main()
