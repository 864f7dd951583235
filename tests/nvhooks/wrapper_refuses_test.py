"""For each thing that `stillpoint cc` cannot do, it prints one line, with advice, before Clang is started."""

import os
import shutil
import unittest

from compiler_case import BUILD, CC, CLANG, CXX, ROOT, TOOL, CompilerCase, needs_clang, needs_plugin


class WrapperRefuses(CompilerCase):
    def assert_refused(self, done, exit_code, *messages):
        self.assertEqual(done.returncode, exit_code, f"{done.stdout}{done.stderr}")
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("stillpoint: error: "), done.stderr)
        for message in messages:
            self.assertRegex(done.stderr, message)

    def installed(self, plugins=(19,), layers=True, library=True):
        """A copy of the command with the parts around it; the plugins are empty files, since no Clang is started."""
        prefix = self.folder / "prefix"
        (prefix / "bin").mkdir(parents=True)
        (prefix / "lib/stillpoint").mkdir(parents=True)
        shutil.copy(TOOL, prefix / "bin/stillpoint")
        for major in plugins:
            (prefix / f"lib/stillpoint/libstillpoint-nvhooks-{major}.so").touch()
        if layers:
            (prefix / "share/stillpoint").mkdir(parents=True)
            os.symlink(ROOT / "layers", prefix / "share/stillpoint/layers")
        if library:
            os.symlink(BUILD / "lib/libstillpoint.so.1", prefix / "lib/libstillpoint.so.1")
        return prefix / "bin/stillpoint"

    def fake_clang(self, text):
        script = self.write("fake-clang", f"#!/bin/sh\necho '{text}'\n")
        script.chmod(0o755)
        return script

    def layer(self, flags):
        self.write("mine/layer.yaml", "name: mine\nhooks: [post_nvm_write]\nmarks: calls\n")
        self.write("mine/link.flags", flags)
        return "--runtime=mine/layer.yaml"

    def test_no_plugin(self):
        self.assert_refused(self.run_in_folder(self.installed(plugins=()), "cc", "-c", "a.c"), 69,
                            "plugin .* is not beside", "llvm-19-dev", "install again")

    def test_a_clang_of_another_version_than_the_plugin(self):
        tool = self.installed()
        old = str(self.fake_clang("Debian clang version 16.0.6 (15~deb12u1)"))
        for language, variable in (("cc", "STILLPOINT_CLANG"), ("c++", "STILLPOINT_CLANG"), ("c++", "STILLPOINT_CLANGXX")):
            self.assert_refused(self.run_in_folder(tool, language, "-c", "a.c", **{variable: old}), 69,
                                f"{variable}: .*fake-clang is Clang 16", "there is one for 19", "LLVM 16")

    def test_a_compiler_that_is_no_clang(self):
        tool = self.installed()
        gcc = str(self.fake_clang("gcc (Debian 12.2.0-14) 12.2.0"))
        self.assert_refused(self.run_in_folder(tool, "cc", "-c", "a.c", STILLPOINT_CLANG=gcc), 69, "is not Clang", "gcc .Debian")
        self.assert_refused(self.run_in_folder(tool, "cc", "-c", "a.c", STILLPOINT_CLANG="/bin/true"), 69,
                            "/bin/true is not Clang")

    def test_a_compiler_that_is_missing_or_is_the_wrapper_itself(self):
        tool = self.installed()
        self.assert_refused(self.run_in_folder(tool, "cc", "-c", "a.c", STILLPOINT_CLANG="no-such-clang"), 127,
                            "STILLPOINT_CLANG: no-such-clang: no such program in PATH")
        self.assert_refused(self.run_in_folder(tool, "cc", "-c", "a.c", STILLPOINT_CLANG=str(tool)), 64, "stillpoint itself")

    def test_no_clang_of_the_plugins_versions(self):
        tool = self.installed(plugins=(7, 6))
        self.assert_refused(self.run_in_folder(tool, "cc", "-c", "a.c"), 69, "no Clang 7, 6 is in PATH", "Debian: clang-7",
                            "STILLPOINT_CLANG")

    def test_the_plugin_is_chosen_by_the_version_of_the_clang(self):
        tool = self.installed(plugins=(7, 19, 5))
        clang = str(self.fake_clang("clang version 7.0.1"))
        command = self.output_of(tool, "cc", "--stillpoint-show", "-c", "a.c", STILLPOINT_CLANG=clang)
        self.assertIn("-fpass-plugin=", command)
        self.assertNotIn("nvhooks-19", command)
        self.assertIn("nvhooks-7", command)

    @needs_plugin
    @needs_clang
    def test_the_compiler_that_is_named_is_used(self):
        clang = self.folder / "my-clang"
        os.symlink(os.path.realpath(CLANG), clang)
        self.assertEqual(self.command_of("-c", "a.c", STILLPOINT_CLANG=str(clang))[0], str(clang))
        command = self.command_of("-c", "a.c", compiler=CXX, STILLPOINT_CLANG="/bin/true", STILLPOINT_CLANGXX=str(clang))
        self.assertEqual(command[0], str(clang))
        self.assertNotIn("--driver-mode=g++", command)

    def test_no_such_layer(self):
        self.assert_refused(self.run_in_folder(CC, "--runtime=pmthread", "-c", "a.c"), 66,
                            "there is no layer 'pmthread'", r"there are: (\w+, )*pmthreads", "layer.yaml")
        self.assert_refused(self.run_in_folder(CC, "-c", "a.c", STILLPOINT_RUNTIME="pmthread"), 66, "no layer 'pmthread'")
        self.assert_refused(self.run_in_folder(self.installed(layers=False), "cc", "-c", "a.c"), 66,
                            "no layer 'pmthreads'", "none at all", "install Stillpoint again")

    def test_a_configuration_that_cannot_be_read(self):
        self.assert_refused(self.run_in_folder(CC, "--runtime=none/layer.yaml", "a.c"), 66, "none/layer.yaml: No such file")
        (self.folder / "folder/layer.yaml").mkdir(parents=True)
        self.assert_refused(self.run_in_folder(CC, "--runtime=./folder", "a.c"), 66, "folder/layer.yaml.*: Is a directory")

    def test_an_own_option_that_is_wrong(self):
        self.assert_refused(self.run_in_folder(CC, "--runtime=", "a.c"), 64, "names no layer")
        self.assert_refused(self.run_in_folder(CC, "a.c", "--runtime"), 64, "names no layer")
        self.assert_refused(self.run_in_folder(CC, "--stillpoint-shwo", "a.c"), 64, "unknown option --stillpoint-shwo")
        self.assert_refused(self.run_in_folder(CC, "-Wstillpoint-unknown-calls", "a.c"), 64, "unknown option -Wstill")

    @needs_plugin
    @needs_clang
    def test_link_flags_that_are_malformed(self):
        for flags, line, message in (("-L{lib}\n-lfoo -lbar\n", 2, "'-lfoo -lbar' is more than one word"),
                                     ("-L{library}\n", 1, r"\{library\} is not known.*\{lib\}"),
                                     ("# fine\n-L{lib\n", 2, "'{' without its '}'"), ("-Llib}\n", 1, "'}' without its '{'")):
            done = self.run_in_folder(CC, self.layer(flags), "a.o")
            self.assert_refused(done, 65, rf"mine/link\.flags:{line}: .*{message}")
            self.output_of(CC, self.layer(flags), "--version")  # nothing is linked: nothing is refused

    @needs_plugin
    @needs_clang
    def test_a_library_that_is_missing(self):
        done = self.run_in_folder(self.installed(library=False), "cc", "a.o")
        self.assert_refused(done, 69, "libstillpoint.so.1 is missing", "link.flags")


if __name__ == "__main__":
    unittest.main()
