"""Stillpoint for gdb: `source stillpoint-gdb.py`, in a program that runs, in its core file, or by `stillpoint debug POOL PROGRAM`.

    stillpoint roots          lists the handles of the pools that are mapped
    $sp_root("NAME")          the object of a handle: a pointer, with the type of that name if one has the object's size
    $sp_root("NAME", "TYPE")  the same, as a pointer to TYPE
    $sp_object(NUMBER)        the object that `stillpoint dump` and `stillpoint check` name by that number, in a pool of breeze

In a pool of breeze the root has the handle "root".

Logged variables of respct and the durable containers are printed as what they hold. Every byte that is read may be damaged.
"""

import re
import struct
import sys
from typing import NamedTuple

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
# A pool of breeze (docs/internals/format/breeze.md): bytes of its types, and its root; a type: number, count of fields, size; the header in
# front of an object: state, type, size.
TYPED_MAGIC = b"\x93STBREEZ"
TYPED_HEADER = struct.Struct("<8s32xQ56xQ16xQ")
TYPE_RECORD = struct.Struct("<8xIIQ48s")
FIELD_RECORD_BYTES = 96
TYPES_AT = 4096
TYPES_BYTES_MAX = 128 << 10
OBJECT_HEADER = struct.Struct("<Q8xQ8xQ8x")
ALLOCATED = 2
RECORDS_AT_ONCE = 512
RECORDS_OF_A_PAGE = 32
ENTRIES_MAX = 1 << 24


class Object(NamedTuple):
    """An object that a handle names. The class is empty where the pool does not know it; `class_bytes` is the size of one, of which an
    object may be an array."""
    name: str
    address: int
    size: int
    class_name: str
    class_bytes: int


def read(address, size):
    """The bytes there; None where they cannot be read."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except (gdb.error, OverflowError, ValueError, MemoryError):
        return None


def text_in(field):
    return field.split(b"\0")[0].decode("utf-8", "replace")


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
    return address + offset, own_size, text_in(name)


def types_of(base, types_bytes):
    """{number: (name, size)} of the types in the pool of breeze at `base`."""
    records = read(base + TYPES_AT, min(types_bytes, TYPES_BYTES_MAX)) or b""
    found, at = {}, 0
    while at + TYPE_RECORD.size <= len(records):
        number, fields, size, name = TYPE_RECORD.unpack_from(records, at)
        found[number] = (text_in(name), size)
        at += TYPE_RECORD.size + fields * FIELD_RECORD_BYTES
    return found


def typed_object(base, number=None):
    """The object of that number in the pool of breeze at `base`, without one the root; None."""
    head = read(base, TYPED_HEADER.size)
    if head is None or not head.startswith(TYPED_MAGIC):
        return None
    _, image_bytes, types_bytes, root = TYPED_HEADER.unpack(head)
    place = root if number is None else number
    if place <= 0 or place % 64 != 0 or place > image_bytes - OBJECT_HEADER.size:
        return None
    header = read(base + place, OBJECT_HEADER.size)
    if header is None:
        return None
    state, counts, size = OBJECT_HEADER.unpack(header)
    if (state >> 40) % 16 != ALLOCATED or size > image_bytes - place - OBJECT_HEADER.size:
        return None
    name, class_bytes = types_of(base, types_bytes).get(counts >> 32, ("", size))
    return Object("root" if number is None else str(number), base + place + OBJECT_HEADER.size, size, name, class_bytes)


def records_in(begin, end):
    """The records of a directory that lie in [begin, end); None in the place of those that cannot be read."""
    table = read(begin, end - begin)
    if table is not None:
        return list(RECORD.iter_unpack(table))
    if end - begin <= RECORDS_OF_A_PAGE * RECORD.size:
        return [None]
    middle = begin + (end - begin) // RECORD.size // 2 * RECORD.size
    return records_in(begin, middle) + records_in(middle, end)


def handles_of(base):
    """The objects that have handles in the pool that begins at `base`, none if no pool does; and whether these are all that it has: of a
    program that runs, pages that it has not touched may not be in memory yet, and cannot be read from outside."""
    head = read(base, HEADER.size)
    if head is None or not head.startswith(MAGIC):
        root = typed_object(base)
        return ([root] if root is not None else []), True
    _, _, _, _, _, directory, capacity, _, _, _, entry_bytes, _ = HEADER.unpack(head)
    found, are_all = [], True
    if entry_bytes != RECORD.size or capacity > ENTRIES_MAX:
        return found, are_all
    table = base + directory
    for first in range(0, capacity, RECORDS_AT_ONCE):
        for record in records_in(table + first * RECORD.size, table + min(first + RECORDS_AT_ONCE, capacity) * RECORD.size):
            if record is None:
                are_all = False
            elif record[0] != 0:
                _, address, size, name = record
                place, own_size, class_name = object_at(address, size)
                found.append(Object(text_in(name), place, own_size, class_name, own_size))
    return found, are_all


def all_handles():
    """Sorted; and a sentence where there may be more, else empty."""
    pools = [handles_of(base) for base in mapped_bases()]
    note = "" if all(are_all for _, are_all in pools) else \
        "a part of a pool is not in memory yet, and may have more: let the program go on, or start it with --recovery eager"
    return sorted(handle for found, _ in pools for handle in found), note


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


def type_of(found):
    """The program's type of an object, if it has the size that the pool knows."""
    if found.class_name:
        kind = class_named(found.class_name)
    else:
        kind = type_named(found.name) if re.fullmatch(r"[A-Za-z_][\w:]*", found.name) else None
    return kind if kind is not None and kind.sizeof == found.class_bytes else None


def pointer_to(found, type_name):
    """To an object: with its type, or the one that is named."""
    if type_name is None:
        kind = type_of(found)
    else:
        text = type_name.string()
        kind = type_named(text.rstrip("* "))
        if kind is None:
            raise gdb.GdbError(f'the program has no type "{text}"')
        for _ in range(text.count("*")):
            kind = kind.pointer()
    return gdb.Value(found.address).cast((kind or gdb.lookup_type("void")).pointer())


class Root(gdb.Function):
    """$sp_root("NAME"[, "TYPE"]): a pointer to the object that the handle names."""

    def __init__(self):
        super().__init__("sp_root")

    def invoke(self, name, type_name=None):
        wanted = name.string()
        handles, note = all_handles()
        for handle in handles:
            if handle.name == wanted:
                return pointer_to(handle, type_name)
        known = ", ".join(handle.name for handle in handles[:20]) or "none"
        raise gdb.GdbError(f'no pool has a handle "{wanted}"; there are: {known}{"; " if note else ""}{note}')


class NumberedObject(gdb.Function):
    """$sp_object(NUMBER[, "TYPE"]): a pointer to the object that `stillpoint dump` and `stillpoint check` name so."""

    def __init__(self):
        super().__init__("sp_object")

    def invoke(self, number, type_name=None):
        for base in mapped_bases():
            found = typed_object(base, int(number))
            if found is not None:
                return pointer_to(found, type_name)
        raise gdb.GdbError(f"no object has the number {int(number)} in a pool that is mapped; `stillpoint dump` shows them")


class Stillpoint(gdb.Command):
    """Commands of Stillpoint: durable memory that survives a crash."""

    def __init__(self):
        super().__init__("stillpoint", gdb.COMMAND_DATA, prefix=True)


class Roots(gdb.Command):
    """List the handles of the pools that are mapped: name, address, size, and the type of that name if it fits."""

    def __init__(self):
        super().__init__("stillpoint roots", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        handles, note = all_handles()
        if not handles:
            raise gdb.GdbError(note or "no pool is mapped, or it has no handles")
        for handle in handles:
            kind = type_of(handle) or handle.class_name
            print(f"{handle.name}  {handle.address:#x}  {handle.size} bytes{f'  {kind}' if kind else ''}")
        if note:
            print(note)


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
NumberedObject()
Stillpoint()
Roots()
register_printers()
register_printers_of_libstdcxx()
if "stillpoint_bases" in globals() and sys.stdin.isatty():
    print('`stillpoint roots` lists the handles of the pool; print *$sp_root("NAME") shows an object.')
