"""A layer at each of its optimisation settings, and the stores of this folder built with them."""

import re
import shutil
import subprocess
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
ROOT = SOURCES.parent.parent

# Cumulative, in the order of the paper's Figure 4.11: each has its own optimisation and all before it.
SETTINGS = ["initial", "static-check", "coalesce-fields", "coalesce-loops", "no-extra-tracking"]
LAYERS = ["pmdk", "undo", "pmthreads"]
MORE_LAYERS = ["nvthreads"]  # not in the paper
STORES = ["hash_map", "btree"]


def layer_text(text, setting):
    """The layer.yaml `text` with the optimisations up to `setting`. That newly allocated blocks are not tracked is a part of
    no-extra-tracking [NVHooks §4.2.4]. Without static-check a layer of cards has no check in line, so it calls."""
    on = SETTINGS[1:SETTINGS.index(setting) + 1]
    for name in SETTINGS[1:]:
        text = re.sub(rf"^(\s+{name}:).*$", rf"\1 {'yes' if name in on else 'no'}", text, flags=re.MULTILINE)
    if "static-check" not in on:
        text = text.replace("marks: cards", "marks: calls")
        if "is_nvm" not in re.search(r"^hooks:.*$", text, re.MULTILINE).group():
            text = text.replace("hooks: [", "hooks: [is_nvm, ", 1)
    if "no-extra-tracking" not in on:
        text = re.sub(r"^track-newly-allocated:.*$", "track-newly-allocated: yes", text, flags=re.MULTILINE)
    return text


def write_setting(layer, setting, folder):
    """A copy of the layer's folder at that setting, as `folder`/`layer`-`setting`; returns the path of its YAML."""
    made = Path(folder) / f"{layer}-{setting}"
    shutil.copytree(ROOT / "layers" / layer, made)
    configuration = made / "layer.yaml"
    # A layer may share another one's descriptions.
    configuration.write_text(layer_text(configuration.read_text(), setting).replace("[../", f"[{ROOT / 'layers'}/"))
    return configuration


class Compilers:
    """`stillpoint cc`, Clang alone, and the drivers built beside them."""

    def __init__(self, build, clang="clang-19"):
        self.build = Path(build)
        self.clang = clang

    def run(self, *words):
        """Raises CalledProcessError with the compiler's output where it fails."""
        return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout

    def driver(self, name):
        return self.build / "lib" / f"libnvhooks_{name}.a"

    def compile_words(self, store, layer, configuration, target, options):
        words = ["-std=gnu11", "-g", *options, f'-DDURABLE_HOOKS="{layer}-hooks.h"', "-c", SOURCES / f"{store}.c", "-o", target]
        if configuration is None:
            return [self.clang, f"-I{SOURCES}", *words]
        return [self.build / "bin" / "stillpoint", "cc", f"--runtime={configuration}", *words]

    def instrumented(self, store, layer, configuration, driver, target, options=("-O2",)):
        """The store, or another source of this folder, compiled for the layer at `configuration`, linked with a driver."""
        self.run(*self.compile_words(store, layer, configuration, f"{target}.o", options))
        self.run(self.build / "bin" / "stillpoint", "c++", f"--runtime={configuration}", f"{target}.o", self.driver(driver),
                 "-o", target)
        return target

    def volatile(self, store, driver, target, options=("-O2",)):
        self.run(*self.compile_words(store, "volatile", None, f"{target}.o", options))
        self.run("c++", f"{target}.o", self.driver(driver), "-pthread", "-o", target)
        return target

    def hand_annotated(self, store, driver, target, options=("-O2",)):
        self.run(self.clang, "-std=gnu11", "-g", *options, "-c", SOURCES / f"{store}_pmdk.c", "-o", f"{target}.o")
        self.run("c++", f"{target}.o", self.driver(driver), "-lpmemobj", "-pthread", "-o", target)
        return target
