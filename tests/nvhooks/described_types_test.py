"""NVM_AUTO_TYPE: what the compiler says of structures, what it refuses, and pools that are converted for a program with other ones."""

import unittest

from compiler_case import CC, CLANG, CXX, ROOT, CompilerCase, needs_clang, needs_plugin

PRINTER = """
int main(void)
{
    for (size_t i = 0; i < nvm_type_of_Node.field_count; ++i) {
        const nvm_field* f = &nvm_type_of_Node.fields[i];
        printf("%s %u %lu %lu %s %u %x %u@%lu=%lx\\n", f->name, f->kind, (unsigned long)f->offset_bytes, (unsigned long)f->count,
               *f->other ? f->other : "-", f->element_bytes, f->encoding, f->tag_bytes, (unsigned long)f->tag_offset_bytes,
               (unsigned long)f->tag_value);
    }
    return NVM_TYPE_ID(Node) != 0 ? 0 : 1;
}
"""
HEAD = "#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n#include <stillpoint/breeze.h>\n"
EVERYTHING = HEAD + """
typedef struct Pos { int x; short y; } Pos;
enum color { red, green };
typedef NVM_STRUCT Node {
    NVM_PTR(struct Node) next;
    nvm_weak back;
    unsigned flags : 3;
    int small : 7;
    Pos pos;
    Pos path[3];
    struct { struct Node* child; int kind; union { struct Node* leaf; double value; }; } slots[2];
    union { double d; long l; };
    char name[8];
    int grid[2][3];
    void (*call)(void);
    _Bool is_set;
    enum color color;
    float ratio;
    const char* text;
    struct Node* kids[2][2];
    uint8_t tail[];
} Node;
NVM_AUTO_TYPE(Node, NVM_IS_VOLATILE(Node, call), NVM_IS_VOLATILE(Node, text), NVM_RENAMED(Node, ratio, share),
              NVM_TAGGED(Node, slots[0].leaf, slots[0].kind, 1), NVM_TAGGED(Node, slots[0].value, slots[0].kind, 2));
""" + PRINTER
# name, kind, offset, count, other, bytes of an element, encoding, tag
EXPECTED = """
Node.path 8 0 8 - 144 0 0@0=3145505954564e53
complete 7 0 0 - 0 0 0@0=0
x 6 0 1 - 4 1 0@0=0
y 6 4 1 - 2 1 0@0=0
Node.slots 8 0 24 - 144 0 0@0=3145505954564e53
complete 7 0 0 - 0 0 0@0=0
child 1 0 1 - 0 0 0@0=0
kind 6 8 1 - 4 1 0@0=0
leaf 1 16 1 - 0 0 4@8=1
value 6 16 1 - 8 3 4@8=2
Node 8 0 216 - 144 0 0@0=3145505954564e53
complete 7 0 0 - 0 0 0@0=0
next 1 0 1 - 0 0 0@0=0
back 2 8 1 - 0 0 0@0=0
flags 6 24 1 - 1 30009 0@0=0
small 6 24 1 - 2 70308 0@0=0
pos.x 6 28 1 - 4 1 0@0=0
pos.y 6 32 1 - 2 1 0@0=0
path 3 36 3 Node.path 0 0 0@0=0
slots 3 64 2 Node.slots 0 0 0@0=0
d 6 112 1 - 8 0 0@0=0
name 6 120 8 - 1 4 0@0=0
grid 6 128 6 - 4 1 0@0=0
call 6 152 1 - 8 a 0@0=0
is_set 6 160 1 - 1 5 0@0=0
color 6 164 1 - 4 7 0@0=0
ratio 6 168 1 - 4 3 0@0=0
text 6 176 1 - 8 a 0@0=0
kids 1 184 4 - 0 0 0@0=0
tail 4 216 0 - 1 2 0@0=0
ratio 9 168 0 share 0 0 0@0=0
"""
# members of Node, what follows its name in NVM_AUTO_TYPE, the error
REFUSED = (
    ("union { struct Node* a; long b; } u; int tag;", "", r"field u\.a is a pointer in a union.*NVM_TAGGED\(Node, u\.a"),
    ("union { struct Node* a; long b; }; int tag;", ", NVM_TAGGED(Node, a, tag, 1)", r"some members have a tag"),
    ("void (*call)(void);", "", r"field call is a pointer to code.*NVM_IS_VOLATILE"),
    ("char c; struct Node* next;", "", r"field next is a pointer that does not lie at a multiple of 8"),
    ("long n; struct { struct Node* next; } tail[];", "", r"field tail is an array of structures without a size.*tail\.next"),
    ("int tag; struct { union { struct Node* a; long b; }; } s[2];",
     ", NVM_TAGGED(Node, s[0].a, tag, 1), NVM_TAGGED(Node, s[0].b, tag, 2)", r"field s\.a.*tag lies outside of the element"),
    ("long " + 48 * "n" + ";", "", r"more than 47 bytes"),
    ("struct Node* next;", ", NVM_HAS_DATA(Node, next)", r"NVM_AUTO_TYPE finds next itself"),
)


@needs_plugin
@needs_clang
class Descriptions(CompilerCase):
    def compile(self, text, *options, compiler=CC, name="program"):
        source = self.write(f"{name}.c" if compiler == CC else f"{name}.cpp", text)
        return self.run_in_folder(compiler, "--runtime=breeze", "-Wall", *options, source, "-o", name)

    def test_describes_every_kind_of_field_at_each_level_of_optimisation(self):
        expected = EXPECTED.strip()
        for options in (("-O0",), ("-O2",), ("-O2", "-g")):
            with self.subTest(options=options):
                done = self.compile(EVERYTHING, *options)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(self.output_of("./program").strip(), expected)
                sections = self.output_of("readelf", "-SW", "program")
                self.assertIn("stillpoint_types", sections)
                self.assertNotIn("stillpoint_shapes", sections)

    def test_describes_structures_of_cpp(self):
        text = HEAD + "struct Base { long id; };\nstruct Node : Base { Node* next; bool done; enum class Kind : short { a } kind; };\n"
        done = self.compile(text + '#pragma GCC diagnostic ignored "-Winvalid-offsetof"\nNVM_AUTO_TYPE(Node);\n' + PRINTER, compiler=CXX)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = self.output_of("./program").splitlines()
        self.assertEqual(lines[2:], [
            "id 6 0 1 - 8 1 0@0=0", "next 1 8 1 - 0 0 0@0=0", "done 6 16 1 - 1 5 0@0=0", "kind 6 18 1 - 2 6 0@0=0"])

    def test_keeps_no_debug_information_that_was_not_asked_for(self):
        self.write("unit.c", HEAD + "typedef struct Node { long n; } Node;\nNVM_AUTO_TYPE(Node);\n")
        for options, is_kept in (((), False), (("-g",), True)):
            self.output_of(CC, "--runtime=breeze", *options, "-c", "unit.c")
            self.assertEqual(".debug_info" in self.output_of("readelf", "-SW", "unit.o"), is_kept)

    def test_refuses_what_cannot_be_described_and_names_the_field(self):
        for members, rest, error in REFUSED:
            with self.subTest(members=members):
                packed = "__attribute__((packed))" if members.startswith("char c") else ""
                text = HEAD + f"typedef struct {packed} Node {{ {members} }} Node;\nNVM_AUTO_TYPE(Node{rest});\n" + PRINTER
                done = self.compile(text)
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, "type Node: .*" + error)
        text = HEAD + "typedef struct Node { long n; } Node;\nNVM_AUTO_TYPE(Node);\n" + PRINTER
        self.assertIn("needs debug information", self.compile(text, "-g1").stderr)
        for compiler in ("cc", CLANG):
            done = self.run_in_folder(compiler, "-I", ROOT / "include", "-c", self.write("plain.c", text))
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("needs `stillpoint cc --runtime=breeze`", done.stderr)

    def test_agrees_with_what_is_written_by_hand(self):
        fields = ("struct Node* next; char c; char s[5]; int8_t i1; uint8_t u1; int16_t i2; uint16_t u2; int i4[3]; unsigned u4; long i8;"
                  " unsigned long u8; float f; double d[2]; _Bool b; struct { int a, b; } pair;")
        names = ("c", "s", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f", "d", "b", "pair.a", "pair.b")
        own = ", ".join(f"NVM_HAS_DATA(Node, {name})" for name in names)
        text = HEAD + f"typedef struct Node {{ {fields} }} Node;\n"
        unit = "int other(void);\nint other(void) { return NVM_TYPE_ID(Node) != 0 ? 0 : 1; }\n"
        self.write("other.c", text + f"NVM_TYPE(Node, NVM_HAS_PTR(Node, next), {own}, NVM_IS_COMPLETE);\n" + unit)
        self.write("unit.c", text + "NVM_AUTO_TYPE(Node);\nint other(void);\n"
                   'int main(void) { puts(sp_last_error()); return NVM_TYPE_ID(Node) == 0 || other(); }\n')
        self.output_of(CC, "--runtime=breeze", "unit.c", "other.c", "-o", "program")
        self.output_of("./program")
        self.write("other.cpp", (self.folder / "other.c").read_text())
        for compiler, source in (("cc", "other.c"), ("c++", "other.cpp")):  # The macros take other ways in C++.
            self.output_of(compiler, "-I", ROOT / "include", "-c", source)


if __name__ == "__main__":
    unittest.main()
