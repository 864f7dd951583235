"""The rules of scripts/tidy.py and scripts/tidy_documents.py, each on a small tree that breaks it."""

import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import tidy  # noqa: E402

# In two parts, so that this file passes the check itself.
UNFINISHED = "TO" "DO"


class Tidy(unittest.TestCase):
    def findings_of(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return tidy.check_tree(root)[0]

    def assert_clean(self, files):
        self.assertEqual(self.findings_of(files), [])

    def assert_found(self, files, *wanted):
        found = self.findings_of(files)
        self.assertEqual(len(found), len(wanted), found)
        for finding, text in zip(found, wanted):
            self.assertIn(text, finding)

    def test_accepts_a_file_of_500_lines_and_rejects_one_of_501(self):
        self.assert_clean({"src/core/a.cpp": "int x;\n" * 500})
        self.assert_found({"src/core/a.cpp": "int x;\n" * 501}, "501 lines")

    def test_accepts_a_function_of_70_lines_and_rejects_one_of_71_and_72_and_more(self):
        def function(lines):
            return "namespace n {\n\nint f(int a)\n{\n" + "    ++a;\n" * (lines - 3) + "}\n}\n"
        self.assert_clean({"src/core/a.cpp": function(70)})
        for lines in (71, 72, 73, 200):
            self.assert_found({"src/core/a.cpp": function(lines)}, f"src/core/a.cpp:3: error: a function of {lines} lines")

    def test_rejects_words_that_the_prose_avoids_in_comments_strings_documents_and_manuals(self):
        self.assert_found({"src/core/a.cpp": "int x;  // Set behind the store.\n"}, "write 'after'")
        self.assert_found({"src/core/a.cpp": 'const char* text = "no log is to be had";\n'}, "write 'is available'")
        self.assert_found({"docs/a.md": "# A\n\nWrite it anew.\n"}, "docs/a.md:3: error: 'anew': write 'again'")
        self.assert_found({"docs/man/a.1": "Mend the cause.\n"}, "write 'fix' or 'repair'")
        self.assert_clean({"src/core/a.cpp": "int behind = 1;  // A disk behind a cache; nothing is left behind.\n"})
        self.assert_clean({"docs/a.md": "# A\n\nThe field `behind`.\n\n```c\nint behind;  // behind\n```\n"})

    def test_rejects_is_no_and_persons_for_threads_where_files_are_clean(self):
        self.assert_found({"docs/a.md": "# A\n\nThe file is no pool.\n"}, "'is no': write 'is not a'")
        self.assert_found({"src/os/a.cpp": "int x;  // Nobody reads this word.\n"}, "'Nobody': write the thread")
        self.assert_found({"src/os/a.cpp": "int x;  // For threads, and who waits.\n"}, "'who' is for people")
        self.assert_clean({"docs/a.md": "# A\n\nThere is no pool, and it is no longer open. A user who asks is told.\n"})
        self.assert_clean({"tests/programs/a.c": "int x;  // Nobody reads this word.\n"})

    def test_keeps_the_first_pages_short(self):
        self.assert_found({"README.md": "# A\n" + "a\n" * 150}, "at most 150")
        self.assert_found({"docs/ARCHITECTURE.md": "# A\n\n## Where do I change\n\n" + "| a | b |\n" * 32}, "31 rows")

    def test_rejects_a_comment_that_does_not_say_what_it_is_about(self):
        self.assert_found({"src/core/a.cpp": "/// Of the calling thread.\nint x;\n"}, "begins with 'Of'")
        self.assert_found({"src/core/a.cpp": "int x;  // It may be zero.\n"}, "begins with 'It'")
        self.assert_clean({"src/core/a.cpp": "// The lock is free.\n// It stays so.\nint x;\n"})

    def test_does_not_take_a_class_or_a_namespace_for_a_function(self):
        body = "    int f() { return 1; }\n" * 80
        self.assert_clean({"src/core/a.hpp": "#pragma once\nnamespace n {\nclass A : public B {\n" + body + "};\n}\n"})

    def test_is_not_misled_by_braces_in_literals_comments_and_digits(self):
        self.assert_clean({"src/core/a.cpp": 'int f() { return \'{\' + 1\'000 + g("{"); } // {\n' + "int x;\n" * 80})

    def test_measures_python_functions_too(self):
        self.assert_found({"scripts/a.py": "def f():\n" + "    f()\n" * 70, "Makefile": "# a\n"}, "a function of 71 lines")

    def test_rejects_trailing_space_tabs_and_bad_ends_of_files(self):
        self.assert_found({"src/core/a.cpp": "int x; \n"}, "trailing space")
        self.assert_found({"src/core/a.cpp": "\tint x;\n"}, "a tab")
        self.assert_found({"src/core/a.cpp": "int x;"}, "no newline")
        self.assert_found({"src/core/a.cpp": "int x;\n\n"}, "empty lines at the end")

    def test_rejects_words_that_mark_unfinished_work(self):
        self.assert_found({"src/core/a.cpp": f"// {UNFINISHED}: more\n"}, "unfinished work")

    def test_rejects_code_in_comments_but_not_sentences(self):
        for code in ("persist(&epoch);", "x = y + 1;", "return count;", "if (a < b) {", "#include <x>"):
            self.assert_found({"src/core/a.cpp": f"// {code}\n"}, "code in a comment")
        for sentence in ("return from main, quick_exit; then the rest.", "The order: records, fence, marker;",
                         "calls f(), then g();  both are cheap."):
            self.assert_clean({"src/core/a.cpp": f"// {sentence}\n"})

    def test_rejects_disabled_code(self):
        self.assert_found({"src/core/a.cpp": "#if 0\nint x;\n#endif\n"}, "#if 0")

    def test_rejects_headers_without_a_guard_or_with_using_namespace(self):
        self.assert_found({"src/core/a.hpp": "int x;\n"}, "#pragma once")
        self.assert_found({"include/stillpoint/a.h": "int x;\n"}, "without a guard")
        self.assert_found({"src/core/a.hpp": "#pragma once\nusing namespace std;\n"}, "using namespace")

    def test_rejects_test_names_that_say_nothing(self):
        self.assert_found({"src/core/a_test.cpp": "TEST(Pool, Test1) {}\n"}, "Pool.Test1")
        self.assert_clean({"src/core/a_test.cpp": "TEST(Pool, KeepsTheOtherCopyWhenOneIsTorn) {}\n"})

    def test_rejects_the_environment_of_strangers_in_the_library(self):
        self.assert_found({"src/core/a.cpp": 'const char* a() { return getenv("A"); }\n'}, "getenv in the library")
        self.assert_clean({"tools/a.cpp": 'const char* a() { return getenv("A"); }\n'})

    def test_rejects_catch_all_folders(self):
        self.assert_found({"src/utils/a.cpp": "int x;\n"}, "'utils' says nothing")

    def test_rejects_a_script_that_nothing_names(self):
        self.assert_found({"scripts/lonely.py": "X = 1\n"}, "no other file names this script")

    def test_rejects_a_document_without_exactly_one_title(self):
        self.assert_clean({"docs/a.md": "# A\n\n```sh\n# a comment in a fence\n```\n"})
        self.assert_found({"docs/a.md": "text\n"}, "exactly one title")
        self.assert_found({"docs/a.md": "# A\n\n# B\n"}, "docs/a.md:3: error: a document has exactly one title")

    def test_rejects_links_and_anchors_that_lead_nowhere(self):
        files = {"docs/a.md": "# A\n\n[b](b.md#how-it-works) [web](https://example.org/x)\n",
                 "docs/b.md": "# B\n\n## How it works\n"}
        self.assert_clean(files)
        self.assert_found({**files, "docs/b.md": "# B\n"}, "no heading for #how-it-works")
        self.assert_found({"docs/a.md": "# A\n\n[b](b.md)\n"}, "leads nowhere")

    def test_rejects_paths_that_documents_and_comments_name_and_that_do_not_exist(self):
        self.assert_found({"docs/a.md": "# A\n\nSee `src/core/gone.hpp`.\n"}, "names src/core/gone.hpp")
        self.assert_found({"src/core/a.cpp": "// See docs/gone.md.\n"}, "names docs/gone.md")
        self.assert_clean({"docs/a.md": "# A\n\nsrc/core/a.cpp, src/core/a, src/*/b.hpp, src/<layer>/x.cpp\n",
                           "src/core/a.cpp": 'const char* text = "docs/gone.md";\n'})


if __name__ == "__main__":
    unittest.main()
