"""Stillpoint for gdb: `source stillpoint-gdb.py`, in a program that runs, in its core file, or by `stillpoint debug POOL PROGRAM`.

    stillpoint roots          lists the handles of the pools that are mapped
    $sp_root("NAME")          the object of a handle: a pointer, with the type of that name if one has the object's size
    $sp_root("NAME", "TYPE")  the same, as a pointer to TYPE

Logged variables of respct and the durable containers are printed as what they hold. Every byte that is read may be damaged.
"""

import re
import struct
import sys

import gdb
import gdb.printing

MAGIC = b"\x93STIMAGE"
WINDOWS = (0x48 << 40, 0x58 << 40)  # of durable addresses; the second one under the thread sanitizer
WINDOW_BYTES = 1 << 40
# docs/internals/format/pool.md has the bytes.
HEADER = struct.Struct("<8sII8xQQQQQQQII")
RECORD = struct.Struct("<QQQ80s24x")
# The record in front of a durable object of pronto (docs/internals/format/pronto.md): size, where the object begins, class.
OBJECT = struct.Struct("<8s16xQ8x4xI64s")
OBJECT_MAGIC = b"STOPOBJ1"
RECORDS_AT_ONCE = 512
ENTRIES_MAX = 1 << 24


def read(address, size):
    """The bytes there; None where they cannot be read."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except (gdb.error, OverflowError, ValueError, MemoryError):
        return None


def mapped_bases():
    """Where pools may begin: told by `stillpoint debug`, else the mappings of the process."""
    bases = list(globals().get("stillpoint_bases", []))
    pid = gdb.selected_inferior().pid
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
            starts = [int(line.split("-")[0], 16) for line in maps]
    except (OSError, ValueError):
        starts = []
    bases += [start for start in starts if any(0 <= start - window < WINDOW_BYTES for window in WINDOWS)]
    return list(dict.fromkeys(bases or WINDOWS))


def object_at(address, size):
    """(address, size, class) of what a handle names; the class is empty where the pool does not know it."""
    head = read(address, OBJECT.size) if size > OBJECT.size else None
    if head is None or not head.startswith(OBJECT_MAGIC):
        return address, size, ""
    _, own_size, offset, name = OBJECT.unpack(head)
    if offset >= size or own_size > size - offset:
        return address, size, ""
    return address + offset, own_size, name.split(b"\0")[0].decode("utf-8", "replace")


def handles_of(base):
    """[(name, address, size, class)] of the pool that begins at `base`; none if no pool does."""
    head = read(base, HEADER.size)
    if head is None or not head.startswith(MAGIC):
        return []
    _, _, _, _, _, directory, capacity, _, _, _, entry_bytes, _ = HEADER.unpack(head)
    found = []
    if entry_bytes != RECORD.size or capacity > ENTRIES_MAX:
        return found
    for first in range(0, capacity, RECORDS_AT_ONCE):
        count = min(RECORDS_AT_ONCE, capacity - first)
        table = read(base + directory + first * RECORD.size, count * RECORD.size)
        if table is None:
            break
        for hashed, address, size, name in RECORD.iter_unpack(table):
            if hashed != 0:
                found.append((name.split(b"\0")[0].decode("utf-8", "replace"), *object_at(address, size)))
    return found


def all_handles():
    return sorted(handle for base in mapped_bases() for handle in handles_of(base))


def type_named(name):
    """The program's type of that name, in C and in C++; None."""
    for candidate in (name, f"struct {name}", f"union {name}"):
        try:
            return gdb.lookup_type(candidate)
        except gdb.error:
            continue
    return None


STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
WORDS = {"string": STRING, "i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short",
         "i32": "int", "u32": "unsigned int", "i64": "long", "u64": "unsigned long", "f32": "float", "f64": "double"}


def class_named(name):
    """The class that the pool calls `name`: "durable::map<string,i32>" has other arguments in the program."""
    head, _, rest = name.partition("<")
    if not rest:
        return type_named(name) or type_named(f"stillpoint::{name}")
    arguments = [WORDS.get(word, word) for word in rest.rstrip(">").split(",")]
    more = {"durable::unordered_map": f"stillpoint::durable::hash<{arguments[0]}{' ' if arguments[0].endswith('>') else ''}>",
            "durable::priority_queue": "std::less<void>"}.get(head)
    listed = ", ".join([*arguments, more] if more and len(arguments) < 3 else arguments)
    return type_named(f"stillpoint::{head}<{listed}{' ' if listed.endswith('>') else ''}>")


def type_of_handle(name, size, class_name):
    found = class_named(class_name) if class_name else type_named(name) if re.fullmatch(r"[A-Za-z_][\w:]*", name) else None
    return found if found is not None and found.sizeof == size else None


class Root(gdb.Function):
    """$sp_root("NAME"[, "TYPE"]): a pointer to the object that the handle names."""

    def __init__(self):
        super().__init__("sp_root")

    def invoke(self, name, type_name=None):
        wanted = name.string()
        for handle, address, size, class_name in all_handles():
            if handle == wanted:
                kind = self.wanted_type(type_name, handle, size, class_name)
                return gdb.Value(address).cast((kind or gdb.lookup_type("void")).pointer())
        known = ", ".join(handle[0] for handle in all_handles()[:20])
        raise gdb.GdbError(f'no pool has a handle "{wanted}"; there are: {known or "none"}')

    @staticmethod
    def wanted_type(type_name, handle, size, class_name):
        if type_name is None:
            return type_of_handle(handle, size, class_name)
        text = type_name.string()
        found = type_named(text.rstrip("* "))
        if found is None:
            raise gdb.GdbError(f'the program has no type "{text}"')
        for _ in range(text.count("*")):
            found = found.pointer()
        return found


class Stillpoint(gdb.Command):
    """Commands of Stillpoint: durable memory that survives a crash."""

    def __init__(self):
        super().__init__("stillpoint", gdb.COMMAND_DATA, prefix=True)


class Roots(gdb.Command):
    """List the handles of the pools that are mapped: name, address, size, and the type of that name if it fits."""

    def __init__(self):
        super().__init__("stillpoint roots", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        handles = all_handles()
        if not handles:
            raise gdb.GdbError("no pool is mapped, or it has no handles")
        for name, address, size, class_name in handles:
            kind = type_of_handle(name, size, class_name) or class_name
            print(f"{name}  {address:#x}  {size} bytes{f'  {kind}' if kind else ''}")


def children_of(value):
    """The children that the printer of a standard container shows; else the value alone."""
    printer = gdb.default_visualizer(value)
    if printer is None or not hasattr(printer, "children"):
        return iter([("values", value)])
    return printer.children()


def text_of(value):
    printer = gdb.default_visualizer(value)
    return printer.to_string() if printer is not None and hasattr(printer, "to_string") else None


class LoggedPrinter:
    """A logged variable of respct: its value. The backups and the epoch are the library's."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        value = self.value["slots_"][0]["value"]
        return str(value) if value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR else value


class ContainerPrinter:
    """A durable container: the standard container in it, with the container's own name."""

    def __init__(self, value):
        self.value = value
        self.inner = value["values_"]

    def to_string(self):
        inner = text_of(self.inner)
        name = re.sub(r"<.*", "", self.value.type.strip_typedefs().name or "durable container", flags=re.DOTALL)
        return f"{name}: {inner}" if inner is not None else name

    def children(self):
        return children_of(self.inner)

    def display_hint(self):
        printer = gdb.default_visualizer(self.inner)
        return printer.display_hint() if printer is not None and hasattr(printer, "display_hint") else None


class ShardsPrinter:
    """durable::string_map: the keys and values of all its shards."""

    def __init__(self, value):
        shards = value["shards_"]["_M_elems"]
        first, last = shards.type.strip_typedefs().range()
        self.shards = [shards[at]["values"] for at in range(first, last + 1)]

    def to_string(self):
        count = sum(int(shard["_M_h"]["_M_element_count"]) for shard in self.shards)
        return f"stillpoint::durable::string_map with {count} element{'' if count == 1 else 's'}"

    def children(self):
        at = 0
        for shard in self.shards:
            for _, child in children_of(shard):
                yield f"[{at}]", child
                at += 1

    def display_hint(self):
        return "map"


def register_printers():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("stillpoint")
    printers.add_printer("logged", r"^stillpoint::respct::(\w+::)?logged<.*>$", LoggedPrinter)
    printers.add_printer("container", r"^stillpoint::durable::(vector|map|unordered_map|priority_queue)<.*>$", ContainerPrinter)
    printers.add_printer("string_map", r"^stillpoint::durable::string_map$", ShardsPrinter)
    gdb.printing.register_pretty_printer(None, printers, replace=True)


def register_printers_of_libstdcxx():
    """A pool at rest has no shared libraries, by which gdb would find them."""
    if "stillpoint_bases" not in globals():
        return
    sys.path.insert(0, "/usr/share/gcc/python")
    try:
        from libstdcxx.v6.printers import register_libstdcxx_printers  # pylint: disable=import-outside-toplevel
        register_libstdcxx_printers(None)
    except Exception:  # pylint: disable=broad-except
        pass  # Not installed, or registered already: containers show their members.


Root()
Stillpoint()
Roots()
register_printers()
register_printers_of_libstdcxx()
if "stillpoint_bases" in globals() and sys.stdin.isatty():
    print('`stillpoint roots` lists the handles of the pool; print *$sp_root("NAME") shows an object.')
