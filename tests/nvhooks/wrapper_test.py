"""`stillpoint cc` and `stillpoint c++` behave like the compiler that they become.

- What they are asked for is what Clang makes: objects, assembler, preprocessed text, dependencies, programs, libraries.
- Every diagnostic and exit code is Clang's.
- The runtime is linked where a program or a shared library is linked, and nowhere else.
- Options of the wrapper are found in response files too, and never reach Clang.
"""

import os
import random
import re
import unittest

from compiler_case import CC, CLANG, CXX, TOOL, CompilerCase, needs_clang, needs_plugin, needs_program

HELLO = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n'
HELLO_CPP = """
#include <concepts>
#include <cstdio>
#include <vector>
template <std::integral T> T twice(T value) { return value + value; }
int main() { std::vector<int> all{twice(21)}; std::printf("%d\\n", all.at(0)); }
"""


def random_quoting(random_source):
    """A part of a word in a response file: plain, in quotes of either kind, or behind a backslash."""
    text = "".join(random_source.choice("ab \t\n=,.#$") for _ in range(random_source.randrange(4)))
    kind = random_source.randrange(4)
    if kind == 0:
        return "".join(text.split())
    if kind == 1:
        return '"' + text + random_source.choice(("", '\\"', "\\\\", "'")) + '"'
    if kind == 2:
        return "'" + text + random_source.choice(("", "\\'", "\\\\", '"', "\\a")) + "'"
    return "\\" + random_source.choice(" ab\"'\\")


@needs_plugin
@needs_clang
class Wrapper(CompilerCase):
    def assert_links_runtime(self, expected, *words, **more):
        command = self.command_of(*words, **more)
        self.assertEqual("-lstillpoint" in command, expected, command)

    def test_programs_in_c_and_cpp_at_every_level_and_with_lto(self):
        self.write("a.c", HELLO)
        self.write("a.cpp", HELLO_CPP)
        for flags in (("-O0",), ("-O1",), ("-O2",), ("-O3",), ("-Os",), ("-O2", "-flto"), ("-O2", "-flto=thin")):
            if flags[-1] == "-flto=thin" and not self.has_linker("lld"):
                continue
            linker = ("-fuse-ld=lld",) if flags[-1].startswith("-flto") and self.has_linker("lld") else ()
            self.output_of(CC, *flags, *linker, "a.c", "-o", "a")
            self.assertEqual(self.output_of("./a"), "hello\n", flags)
            self.output_of(CXX, "-std=c++20", *flags, *linker, "a.cpp", "-o", "b")
            self.assertEqual(self.output_of("./b"), "42\n", flags)

    def has_linker(self, name):
        self.write("linker.c", "int main(void) { return 0; }\n")
        return self.run_in_folder(CLANG, f"-fuse-ld={name}", "linker.c", "-o", "linker").returncode == 0

    def test_two_words_and_one_word_are_the_same_compiler(self):
        self.write("a.c", HELLO)
        for one, two in ((CC, "cc"), (CXX, "c++")):
            self.assertEqual(self.output_of(one, "--stillpoint-show", "a.c"),
                             self.output_of(TOOL, two, "--stillpoint-show", "a.c"))
        os.symlink(CC, self.folder / "stillpoint-c++")  # the name decides, wherever the link lies
        self.assertIn("--driver-mode=g++", self.command_of("a.c", compiler="./stillpoint-c++"))

    @needs_program("gcc")
    def test_objects_of_gcc_and_of_the_wrapper_make_one_program(self):
        self.write("ours.c", "int theirs(int); int main(void) { return theirs(20) - 41; }\nint mine(int a) { return a + 1; }\n")
        self.write("theirs.c", "int mine(int); int theirs(int a) { return a + mine(a); }\n")
        self.output_of(CC, "-c", "ours.c")
        self.output_of("gcc", "-c", "theirs.c")
        self.output_of(CC, "ours.o", "theirs.o", "-o", "program")
        self.output_of("./program")

    def test_a_shared_library_and_a_static_one(self):
        self.write("lib.c", "int answer(void) { return 42; }\n")
        self.write("main.c", "int answer(void);\nint main(void) { return answer() - 42; }\n")
        self.output_of(CC, "-fPIC", "-shared", "lib.c", "-o", "libanswer.so")
        self.output_of(CC, "main.c", "-L.", "-lanswer", "-Wl,-rpath,.", "-o", "program")
        self.output_of("./program")
        self.output_of(CC, "-c", "lib.c")
        self.output_of("ar", "cr", "libanswer.a", "lib.o")
        self.output_of(CC, "main.c", "libanswer.a", "-o", "program")
        self.output_of("./program")

    def test_preprocessed_text_dependencies_and_questions_are_clangs_own(self):
        self.write("a.c", HELLO)
        self.write("a.h", "int declared;\n")
        for words in (("-E", "a.c"), ("-E", "-dM", "a.c"), ("-M", "a.c"), ("-MM", "a.c"), ("-fsyntax-only", "a.c"),
                      ("-dumpmachine",), ("-dumpversion",), ("-print-search-dirs",), ("-print-file-name=libc.so",),
                      ("-print-prog-name=ld",), ("--version",), ("-print-resource-dir",), ("-E", "-x", "c", "-")):
            ours = self.run_in_folder(CC, *words, text=HELLO)
            clangs = self.run_in_folder(CLANG, *words, text=HELLO)
            self.assertEqual((ours.returncode, ours.stdout, ours.stderr),
                             (clangs.returncode, clangs.stdout, clangs.stderr), words)
            self.assertEqual(ours.returncode, 0, words)
        self.output_of(CC, "-MD", "-MF", "a.d", "-MT", "target", "-c", "a.c")
        self.assertRegex((self.folder / "a.d").read_text(), r"^target: a\.c ")

    def test_diagnostics_and_exit_codes_of_broken_sources_are_clangs_own(self):
        self.write("broken.c", "int main(void) { return missing; }\n")
        self.write("unused.c", "static int unused; int main(void) { return 0; }\n")
        self.write("unresolved.c", "int missing(void); int main(void) { return missing(); }\n")
        for words in (("-c", "broken.c"), ("-Wall", "-Werror", "-c", "unused.c"), ("-Wall", "-c", "unused.c"), (),
                      ("-o", "x"), ("-c", "none.c"), ("-c", "@none.rsp"), ("--no-such-option", "-c", "unused.c"), ("-v",)):
            ours = self.run_in_folder(CC, *words)
            clangs = self.run_in_folder(CLANG, *words)
            self.assertEqual((ours.returncode, ours.stderr), (clangs.returncode, clangs.stderr), words)
        self.assertIn("undefined reference to `missing'", self.run_in_folder(CC, "unresolved.c").stderr)

    def test_no_warning_of_an_unused_argument_is_added(self):
        self.write("a.s", ".globl f\nf: nop\n.section .note.GNU-stack,\"\",@progbits\n")
        self.write("a.S", '#define NAME g\n.globl NAME\nNAME: nop\n.section .note.GNU-stack,"",@progbits\n')
        self.write("a.c", HELLO)
        for words in (("-c", "a.c"), ("a.o", "-o", "a"), ("-c", "a.s", "-o", "s.o"), ("-c", "a.S", "-o", "S.o"),
                      ("a.c", "s.o", "S.o", "-o", "a"), ("-S", "a.c", "-o", "b.s"), ("-c", "b.s"),
                      ("-x", "c-header", "a.c", "-o", "a.pch"), ("-emit-llvm", "-c", "a.c", "-o", "a.bc"),
                      ("-c", "a.bc"), ("-save-temps", "-c", "a.c"), ("-fno-integrated-as", "-c", "a.c")):
            done = self.run_in_folder(CC, "-Werror", *words)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        # An argument that the user gave in vain is still named.
        self.assertIn("unused", self.run_in_folder(CC, "-c", "-lfoo", "a.c").stderr)

    def test_the_runtime_is_linked_with_programs_and_libraries_only(self):
        for words in (("a.c",), ("a.o", "-o", "a"), ("-shared", "a.o"), ("-x", "c", "-"), ("a.h", "a.c"), ("-g", "-MD", "a.c"),
                      ("-flto", "a.o"), ("-o", "a", "--", "a.c"), ("-###", "a.c"), ("-static", "a.c"), ("-lfoo",)):
            self.assert_links_runtime(True, *words)
        for words in (("-c", "a.c"), ("-S", "a.c"), ("-E", "a.c"), ("-M", "a.c"), ("-MM", "a.c"), ("-fsyntax-only", "a.c"), (),
                      ("-v",), ("--version",), ("-o", "a"), ("-x", "c++-header", "a"), ("a.h",), ("-r", "a.o", "b.o"),
                      ("-nostdlib", "-Wl,-r", "a.o"), ("-MF", "a.d"), ("--precompile", "a.cppm"), ("-Wl,--version",)):
            self.assert_links_runtime(False, *words)

    def test_a_source_from_standard_input_is_linked_with_the_runtime(self):
        self.output_of(CC, "-x", "c", "-", "-o", "a", text=HELLO)
        self.assertEqual(self.output_of("./a"), "hello\n")
        done = self.run_in_folder(CC, "-Werror", "-x", "c", "-", "-o", "a", text=HELLO)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.write("mine/layer.yaml", "name: mine\nhooks: [post_nvm_write]\n")
        self.write("mine/link.flags", "{layer}/shim.o\n-lm\n")
        command = self.command_of("--runtime=./mine", "-x", "c", "-")  # the object is no C, whatever the source is
        self.assertEqual(command[-4:], ["-x", "none", str(self.folder / "mine/shim.o"), "-lm"])

    def test_what_follows_the_end_of_options_is_an_input(self):
        self.write("-strange.c", HELLO)
        self.output_of(CC, "-o", "a", "--", "-strange.c")
        self.assertEqual(self.output_of("./a"), "hello\n")

    def test_partial_links(self):
        self.write("a.c", HELLO)
        self.write("b.c", "int b;\n")
        self.output_of(CC, "-c", "a.c", "b.c")
        self.output_of(CC, "-r", "-nostdlib", "a.o", "b.o", "-o", "ab.o")
        self.output_of(CC, "ab.o", "-o", "ab")
        self.assertEqual(self.output_of("./ab"), "hello\n")

    def test_response_files_nested_and_quoted(self):
        self.write("with space.c", HELLO)
        self.write("outer.rsp", '-DX=\\"quoted\\" @inner.rsp\n"with space.c"')
        self.write("inner.rsp", "-o 'pro gram'\n-O2")
        self.output_of(CC, "@outer.rsp")
        self.assertEqual(self.output_of("./pro gram"), "hello\n")
        self.assertIn("@outer.rsp", self.command_of("@outer.rsp"))
        self.write("compile.rsp", "-c a.c")
        self.assert_links_runtime(False, "@compile.rsp")

    def test_response_files_are_read_as_clang_reads_them(self):
        """Random quoting: the words that the wrapper makes of a file mean to Clang what the file means."""
        random_source = random.Random(5)
        self.write("a.c", "int a;\n")
        for _ in range(12):
            words = [f"-DX{number}=" + "".join(random_quoting(random_source) for _ in range(random_source.randrange(5)))
                     for number in range(random_source.randrange(1, 8))]
            text = random_source.choice((" ", "\n", "\t", "\r\n")).join(words)
            text += random_source.choice(("", "\n", '"not closed', "\\"))
            self.write("clangs.rsp", text)
            self.write("ours.rsp", "--runtime=pmthreads " + text)
            made = [word for word in self.command_of("-c", "a.c", "@ours.rsp") if word.startswith("-DX")]
            meant, said = (re.sub(r'/tmp/[^"]*', "", self.run_in_folder(CLANG, "-###", "-c", "a.c", *files).stderr)
                           for files in (["@clangs.rsp"], made))
            self.assertEqual(said, meant, repr(text))

    def test_own_options_in_a_response_file_do_not_reach_clang(self):
        self.write("own.rsp", '--runtime=pmthreads -Wno-stillpoint-unknown-call @more.rsp "with space.c"')
        self.write("more.rsp", "-c -DWORD='\"a b\"'")
        self.write("with space.c", "const char *word = WORD;\n")
        command = self.command_of("@own.rsp")
        self.assertFalse([word for word in command if word.startswith(("@", "--runtime", "-W"))], command)
        self.assertIn('-DWORD="a b"', command)
        self.assertIn("-stillpoint-unknown-call=off", command)
        self.write("own.rsp", '--runtime=pmthreads @more.rsp "with space.c"')
        self.output_of(CC, "@own.rsp")
        self.assertTrue((self.folder / "with space.o").exists())

    def test_more_words_than_the_system_passes_on(self):
        self.write("a.c", '#ifndef LAST_9999\n#error "a word was lost"\n#endif\nint a;\n')
        words = "\n".join(f"-DLAST_{number}={'x' * 300}" for number in range(10000))
        self.write("many.rsp", f"--runtime=pmthreads -c a.c -o 'a b.o'\n{words}\n")
        self.assertGreater((self.folder / "many.rsp").stat().st_size, 3_000_000)
        self.output_of(CC, "@many.rsp")
        self.assertTrue((self.folder / "a b.o").exists())

    def test_a_response_file_that_names_itself(self):
        self.write("self.rsp", "-c @self.rsp")
        done = self.run_in_folder(CC, "@self.rsp")
        self.assertEqual(done.returncode, 1)
        self.assertIn("recursive", done.stderr)

    def test_the_runtime_is_chosen_by_option_then_environment_then_default(self):
        self.write("mine/layer.yaml", "name: mine\nhooks: [post_nvm_write]\nmarks: calls\n")
        self.write("mine/link.flags", "# a comment\n\n  -Wl,--defsym=mine_is_linked=1  \n-L{layer}\n-L{lib}\n")
        mine = str(self.folder / "mine/layer.yaml")
        for words, environment in ((("--runtime=mine/layer.yaml",), {}), (("--runtime", "./mine"), {}),
                                   ((), {"STILLPOINT_RUNTIME": mine}),
                                   (("--lint", "--runtime=./mine"), {"STILLPOINT_RUNTIME": "pmthreads"})):
            command = self.command_of("a.c", *words, **environment)
            self.assertIn(f"-stillpoint-runtime={mine}", command)
            self.assertIn(str(self.folder / "mine"), command)
            self.assertEqual(command[-3:], ["-Wl,--defsym=mine_is_linked=1", f"-L{self.folder}/mine",
                                            f"-L{(TOOL.parent.parent / 'lib').resolve()}"])
            self.assertNotIn("-lstillpoint", command)
        default = self.command_of("a.c")
        self.assertTrue(any(word.endswith("/layers/pmthreads/layer.yaml") for word in default), default)

    def test_warnings_of_unknown_calls_are_passed_to_the_plugin(self):
        for word, value in (("-Wstillpoint-unknown-call", "warn"), ("-Wno-stillpoint-unknown-call", "off"),
                            ("-Werror=stillpoint-unknown-call", "error"), ("-Wno-error=stillpoint-unknown-call", "warn")):
            self.assertIn(f"-stillpoint-unknown-call={value}", self.command_of("-c", "a.c", word))
        self.assertIn("-stillpoint-unknown-call=record", self.command_of("-c", "a.c"))

    def test_unknown_calls_are_named_or_refused(self):
        self.write("a.c", "void unknown(char *p);\nvoid f(char *p) { unknown(p); }\n")
        self.assertEqual(self.run_in_folder(CC, "-c", "a.c").stderr, "")
        warned = self.run_in_folder(CC, "-g", "-Wstillpoint-unknown-call", "-c", "a.c")
        self.assertEqual(warned.returncode, 0, warned.stderr)
        self.assertRegex(warned.stderr, r"a\.c:2:\d+: warning: 'unknown' .*\[-Wstillpoint-unknown-call\]")
        refused = self.run_in_folder(CC, "-g", "-Werror=stillpoint-unknown-call", "-c", "a.c")
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertRegex(refused.stderr, r"a\.c:2:\d+: error: 'unknown' ")

    def test_a_malformed_layer_is_refused_with_line_and_column(self):
        self.write("a.c", "int a; int *f(void) { return &a; }\n")
        self.write("mine/layer.yaml", "name: mine\nhooks: [post_nvm_write]\ncolour: red\n")
        done = self.run_in_folder(CC, "--runtime=./mine", "-c", "a.c")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"mine/layer\.yaml:3:1: error: .*colour")

    def test_values_of_options_are_never_own_options(self):
        command = self.command_of("-c", "a.c", "-o", "--lint", "-MF", "--stillpoint-help")
        self.assertEqual(command[-6:], ["-c", "a.c", "-o", "--lint", "-MF", "--stillpoint-help"])

    def test_help_is_clangs_and_the_wrappers_own_has_a_name_of_its_own(self):
        self.assertEqual(self.output_of(CC, "--help"), self.output_of(CLANG, "--help"))
        for words in ((CC, "--stillpoint-help"), (TOOL, "c++", "--stillpoint-help")):
            self.assertIn("--runtime=NAME|FILE", self.output_of(*words))

    def test_the_front_end_itself_gets_its_words_unchanged(self):
        self.assertIn("LLVM", self.output_of(CC, "-cc1", "-version"))

    def test_the_files_that_the_output_depends_on_are_listed(self):
        self.write("mine/layer.yaml", "name: mine # none.yaml\nhooks: [post_nvm_write]\ndescriptions: [a.yaml, '../b.yaml', c.yaml]\n")
        self.write("mine/a.yaml", "functions: {}\n")
        self.write("b.yaml", "functions: {}\n")
        listed = self.output_of(CC, "--runtime=./mine", "--stillpoint-files").strip().split(":")
        self.assertRegex(listed[0], r"libstillpoint-nvhooks-\d+\.so$")
        self.assertEqual(listed[1:], [str(self.folder / name) for name in ("mine/layer.yaml", "mine/a.yaml", "b.yaml")])

    @needs_program("ccache")
    def test_ccache_serves_what_it_has_and_notices_a_changed_layer(self):
        self.write("mine/layer.yaml", "name: mine\nhooks: [post_nvm_write]\nmarks: calls\n")
        self.write("a.c", "int a; int get(void) { return a; }\n")
        runtime = "--runtime=mine/layer.yaml"
        environment = {"CCACHE_DIR": str(self.folder / "cache"),
                       "CCACHE_EXTRAFILES": self.output_of(CC, runtime, "--stillpoint-files").strip()}

        def hits():
            text = self.output_of("ccache", "--print-stats", **environment)
            return sum(int(line.split()[1]) for line in text.splitlines()
                       if line.split()[0] in ("direct_cache_hit", "preprocessed_cache_hit"))

        compile_words = ("ccache", CC, runtime, "-O2", "-c", "a.c", "-o", "a.o")
        self.output_of(*compile_words, **environment)
        self.assertEqual(hits(), 0)
        self.output_of(*compile_words, **environment)
        self.assertEqual(hits(), 1)
        self.write("mine/layer.yaml", "name: mine\nhooks: [post_nvm_write, pre_nvm_write]\nmarks: calls\n")
        self.output_of(*compile_words, **environment)
        self.assertEqual(hits(), 1)


if __name__ == "__main__":
    unittest.main()
