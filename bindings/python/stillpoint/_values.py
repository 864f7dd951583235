"""Values on their way into the pool and out of it: a letter and bytes, little-endian."""

import struct
from typing import Any, Tuple

_INTEGER, _FLOAT, _COUNT = struct.Struct("<q"), struct.Struct("<d"), struct.Struct("<cI")
_SMALL = 1 << 63
REFERENCE = ord("r")


class DamagedError(RuntimeError):
    """The pool holds bytes that this package has not written."""


def encode(value: Any) -> Tuple[int, bytes]:
    """(letter, bytes). TypeError: not a value that can be kept."""
    kind = type(value)
    if kind is str:
        return ord("s"), value.encode("utf-8", "surrogatepass")
    if kind is int:
        if -_SMALL <= value < _SMALL:
            return ord("i"), _INTEGER.pack(value)
        return ord("I"), value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    if kind is float:
        return ord("d"), _FLOAT.pack(value)
    if value is None:
        return ord("n"), b""
    if kind is bool:
        return ord("t" if value else "f"), b""
    if kind is bytes:
        return ord("b"), value
    if kind is tuple:
        parts = [encode(item) for item in value]
        return ord("T"), b"".join(_COUNT.pack(bytes((letter,)), len(data)) + data for letter, data in parts)
    raise TypeError(f"a durable container cannot hold a {kind.__name__}: it holds int, float, str, bytes, bool, None, tuples of these, and "
                    "durable containers")


def decode(letter: int, data: bytes) -> Any:
    """The value. DamagedError: there is no such."""
    try:
        return _DECODERS[letter](data)
    except (KeyError, struct.error, UnicodeDecodeError, ValueError) as error:
        raise DamagedError(f"the pool holds a value that cannot be read (letter {letter}, {len(data)} bytes): {error}") from None


def _tuple(data: bytes) -> tuple:
    found, place = [], 0
    while place < len(data):
        letter, size = _COUNT.unpack_from(data, place)
        place += _COUNT.size
        if size > len(data) - place:
            raise ValueError("a part of a tuple is cut off")
        found.append(decode(letter[0], data[place:place + size]))
        place += size
    return tuple(found)


def _empty(value: Any):
    def decoded(data: bytes) -> Any:
        if data:
            raise ValueError("bytes where there should be none")
        return value
    return decoded


_DECODERS = {
    ord("s"): lambda data: data.decode("utf-8", "surrogatepass"),
    ord("i"): lambda data: _INTEGER.unpack(data)[0],
    ord("I"): lambda data: int.from_bytes(data, "little", signed=True),
    ord("d"): lambda data: _FLOAT.unpack(data)[0],
    ord("b"): bytes,
    ord("T"): _tuple,
    ord("n"): _empty(None), ord("t"): _empty(True), ord("f"): _empty(False),
}


def encode_key(value: Any) -> Tuple[int, bytes]:
    """As encode(). Numbers that are equal are one key, as in a dict of Python."""
    return encode(_canonical(value))


def _canonical(value: Any) -> Any:
    kind = type(value)
    if kind is bool:
        return int(value)
    if kind is float and value.is_integer():
        return int(value)
    if kind is tuple:
        return tuple(_canonical(item) for item in value)
    return value
