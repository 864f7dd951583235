"""The rules of scripts/check_includes.py, each on a small tree that breaks it."""

import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import check_includes  # noqa: E402

CMAKE = "stillpoint_layer(core)\nstillpoint_layer(arch)\nstillpoint_layer(os)\n" \
        "stillpoint_layer(engines)\nstillpoint_layer(api)\nstillpoint_layer(interpose)\n"


class CheckIncludes(unittest.TestCase):
    def errors_of(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            (root / "CMakeLists.txt").write_text(CMAKE)
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return check_includes.check_tree(root)[0]

    def assert_rejected(self, files, reason):
        errors = self.errors_of(files)
        self.assertEqual(len(errors), 1, errors)
        self.assertIn(reason, errors[0])

    def test_accepts_an_include_of_a_lower_layer_and_of_a_neighbour(self):
        self.assertEqual(self.errors_of({
            "src/core/a.hpp": "", "src/os/b.hpp": '#include "core/a.hpp"\n#include "c.hpp"\n',
            "src/os/c.hpp": '#include "stillpoint/x.h"\n', "include/stillpoint/x.h": "#include <stddef.h>\n",
        }), [])

    def test_rejects_an_include_of_a_higher_layer_and_names_the_line(self):
        self.assert_rejected({"src/os/a.hpp": "", "src/core/b.hpp": '\n#include "os/a.hpp"\n'},
                             "src/core/b.hpp:2: error: include of os/a.hpp: src/os lies above src/core")

    def test_rejects_an_upward_include_by_a_relative_path(self):
        self.assert_rejected({"src/os/a.hpp": "", "src/core/b.hpp": '#include "../os/a.hpp"\n'}, "lies above")

    def test_rejects_an_engine_that_includes_another_but_not_the_registry(self):
        files = {"src/engines/one/a.hpp": "", "src/api/registry.cpp": '#include "engines/one/a.hpp"\n'}
        self.assertEqual(self.errors_of(files), [])
        files["src/engines/two/b.cpp"] = '#include "engines/one/a.hpp"\n'
        self.assert_rejected(files, "an engine never includes another")

    def test_rejects_the_name_of_an_engine_outside_its_folder(self):
        text = 'const char* engine = "ONE";\n'
        files = {"src/engines/one/a.cpp": text, "src/os/a_test.cpp": text, "tests/a.cpp": text, "layers/one/a.h": text,
                 "include/stillpoint/one.h": text, "bench/engines/one/current.hpp": text, "bench/one_costs.py": "# one\n",
                 "bench/papers/figure.py": "# one\n", "src/os/cited.hpp": "// How [One §4.2, Algorithm 2] does it.\n"}
        self.assertEqual(self.errors_of(files), [])
        for other in ("src/os/a.cpp", "tools/t/a.cpp", "include/stillpoint/other.h", "src/engines/two/a.cpp", "bench/a.py", "scripts/a.sh",
                      "cmake/a.cmake", "integrations/a/build.py", "Makefile"):
            self.assert_rejected({**files, other: text}, f"{other}:1: error: engine one is named here")

    def test_takes_an_include_of_an_interface_that_all_engines_offer_for_no_name(self):
        files = {"src/engines/nvthreads/a.cpp": "", "include/stillpoint/nvthreads.h": "/* NVthreads */\n",
                 "src/api/a.cpp": '#include "stillpoint/nvthreads.h"\n'}
        self.assertEqual(self.errors_of(files), [])
        self.assert_rejected({**files, "src/api/a.cpp": "// for nvthreads\n"}, "engine nvthreads is named here")

    def test_rejects_an_exception_that_is_not_needed(self):
        registry = "src/api/registry.cpp"
        engine = {"src/engines/one/a.cpp": ""}
        self.assertEqual(self.errors_of({**engine, registry: "// one\n"}), [])
        self.assert_rejected({**engine, registry: "\n"}, f"{registry}:1: error: no engine is named here any more")

    def test_lets_only_tests_include_helpers_for_tests(self):
        files = {"tests/support/a.hpp": "", "src/os/a_test.cpp": '#include "support/a.hpp"\n'}
        self.assertEqual(self.errors_of(files), [])
        self.assert_rejected({**files, "src/os/a.cpp": '#include "support/a.hpp"\n'}, "src/ does not depend on tests/")

    def test_rejects_a_public_header_that_includes_the_inside(self):
        self.assert_rejected({"src/core/a.hpp": "", "include/stillpoint/x.h": '#include "core/a.hpp"\n'},
                             "public header")

    def test_rejects_an_example_that_includes_the_inside(self):
        self.assert_rejected({"src/core/a.hpp": "", "examples/e/main.cpp": '#include "core/a.hpp"\n'}, "examples")

    def test_rejects_the_operating_system_in_core_and_the_cpu_outside_arch(self):
        self.assert_rejected({"src/core/a.hpp": "#include <unistd.h>\n"}, "operating system")
        self.assert_rejected({"src/os/a.hpp": "#include <immintrin.h>\n"}, "only src/arch")
        self.assertEqual(self.errors_of({"src/arch/a.hpp": "#include <immintrin.h>\n"}), [])

    def test_rejects_an_abi_of_nvhooks_that_includes_anything(self):
        self.assert_rejected({"src/nvhooks/abi/a.h": "#include <stdint.h>\n"}, "nvhooks/abi includes nothing")

    def test_rejects_a_pass_that_includes_the_runtime(self):
        self.assert_rejected({"src/nvhooks/pass/a.cpp": '#include "core/a.hpp"\n', "src/core/a.hpp": ""},
                             "only nvhooks/abi")

    def test_rejects_src_that_includes_a_test(self):
        self.assert_rejected({"tests/a.hpp": "", "src/os/b.cpp": '#include "../../tests/a.hpp"\n'}, "does not depend")

    def test_rejects_a_folder_of_src_that_is_no_layer(self):
        self.assert_rejected({"src/misc/a.cpp": '#include "core/a.hpp"\n', "src/core/a.hpp": ""}, "not a layer")

    def test_does_not_read_includes_inside_block_comments(self):
        self.assertEqual(self.errors_of({"src/core/b.hpp": '/*\n#include "os/a.hpp"\n*/\n', "src/os/a.hpp": ""}), [])


if __name__ == "__main__":
    unittest.main()
