"""Durable dict, list, deque and array: handles of containers that lie in the pool."""

import collections
from typing import Any, Dict, Iterable, Iterator, List, MutableMapping, MutableSequence, Optional, Sequence, Tuple
from weakref import WeakValueDictionary

from ._sections import fail, operation
from ._store import ffi, lib
from ._values import REFERENCE, DamagedError, decode, encode, encode_key

_handles: "WeakValueDictionary[int, Container]" = WeakValueDictionary()
_counts: Dict[int, int] = {}  # handles by address, also those that are about to go


class Container:
    """A handle. There is one for each container that the program has looked at."""

    __slots__ = ("_address", "_place", "__weakref__")
    _type = ""
    _kind = 0

    def __init__(self, address: int):
        self._address = address
        self._place = ffi.cast(self._type, address)
        _counts[address] = _counts.get(address, 0) + 1
        _handles[address] = self

    def __del__(self) -> None:
        with operation:
            address = self._address
            _counts[address] -= 1
            if _counts[address] == 0:
                del _counts[address]
                release(address)


def release(address: int) -> None:
    """Frees a container that neither a container nor the program refers to, and what it alone referred to."""
    pending = [address]
    while pending:
        address = pending.pop()
        before = ffi.new("uint64_t*")
        if address in _counts or lib.sppy_release(address, before) != 0:
            continue
        newer = lib.sppy_left_over(0)
        while newer not in (0, before[0]):
            pending.append(newer)
            newer = lib.sppy_left_over(newer)


def handle(address: int) -> Container:
    """Inside an operation."""
    found = _handles.get(address)
    if found is not None:
        return found
    kind = ffi.new("uint32_t*")
    code = lib.sppy_kind(address, kind)
    if code != 0:
        fail(code)
    return _CLASSES[kind[0]](address)


def _new(cls: type) -> Any:
    address = ffi.new("uint64_t*")
    code = lib.sppy_make(cls._kind, address)
    if code != 0:
        fail(code)
    return cls(address[0])


def durable(value: Any) -> Any:
    """A plain dict, list or deque as a new durable one; other values as they are."""
    kind = type(value)
    if kind is dict:
        made = _new(DurableDict)
        made.update(value)
    elif kind is list or kind is collections.deque:
        made = _new(DurableList if kind is list else DurableDeque)
        made.extend(value)
    else:
        return value
    return made


class _Passed:
    """A value for the store. It keeps the bytes, and a container that was made for it: keep it until the call has returned, since another
    thread runs meanwhile."""

    __slots__ = ("value", "kept")

    def __init__(self, value: Any, as_key: bool = False):
        if as_key:
            letter, data = encode_key(value)
        else:
            value = durable(value)
            letter, data = (REFERENCE, value._address.to_bytes(8, "little")) if isinstance(value, Container) else encode(value)
        if len(data) > 0x7FFFFFFF:
            raise OverflowError("a value in a durable container has at most 2 GiB")
        buffer = ffi.from_buffer(data)
        self.kept = (value, data, buffer)
        self.value = ffi.new("sppy_value*", (letter, len(data), buffer))


def _received(value: Any) -> Any:
    data = ffi.buffer(value.bytes, value.size_bytes)[:]
    if value.tag == REFERENCE:
        return handle(int.from_bytes(data, "little"))
    return decode(value.tag, data)


def _drop(left_over: Any) -> None:
    if left_over[0] != 0:
        release(left_over[0])


class DurableDict(Container, MutableMapping):
    """A dict in the pool. Keys: int, float, str, bytes, None and tuples of these; numbers that are equal are one key, and True is 1. Keeps
    the order of insertion."""

    __slots__ = ()
    _type, _kind = "sppy_dict*", lib.SPPY_DICT

    def __getitem__(self, key: Any) -> Any:
        value = ffi.new("sppy_value*")
        with operation:
            name = _Passed(key, True)
            code = lib.sppy_dict_get(self._place, name.value, value)
            if code == 0:
                return _received(value)
        if code == lib.SPPY_MISSING:
            raise KeyError(key)
        fail(code)

    def __setitem__(self, key: Any, value: Any) -> None:
        left_over = ffi.new("uint64_t*")
        with operation:
            passed, name = _Passed(value), _Passed(key, True)
            code = lib.sppy_dict_set(self._place, name.value, passed.value, left_over)
            _drop(left_over)
        if code != 0:
            fail(code)

    def __delitem__(self, key: Any) -> None:
        left_over = ffi.new("uint64_t*")
        with operation:
            name = _Passed(key, True)
            code = lib.sppy_dict_delete(self._place, name.value, left_over)
            _drop(left_over)
        if code == lib.SPPY_MISSING:
            raise KeyError(key)
        if code != 0:
            fail(code)

    def __contains__(self, key: Any) -> bool:
        try:
            name = _Passed(key, True)
        except TypeError:
            return False
        with operation:
            code = lib.sppy_dict_get(self._place, name.value, ffi.new("sppy_value*"))
        if code < 0:
            fail(code)
        return code == 0

    def __len__(self) -> int:
        return self._place.count

    def __iter__(self) -> Iterator[Any]:
        position, key, value = ffi.new("uint64_t*"), ffi.new("sppy_value*"), ffi.new("sppy_value*")
        count, used = self._place.count, self._place.used
        while True:
            with operation:
                if (self._place.count, self._place.used) != (count, used):
                    raise RuntimeError("the dict has changed its keys during iteration")
                code = lib.sppy_dict_next(self._place, position, key, value)
                found = _received(key) if code == 0 else None
            if code == lib.SPPY_MISSING:
                return
            if code != 0:
                fail(code)
            yield found

    def update(self, *others: Any, **values: Any) -> None:
        with operation:
            super().update(*others, **values)

    def clear(self) -> None:
        with operation:
            for key in list(self):
                del self[key]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"


class _Sequence(Container, MutableSequence):
    __slots__ = ()
    _type = "sppy_sequence*"

    def _index(self, index: int) -> int:
        count = self._place.count
        index = index + count if index < 0 else index
        if not 0 <= index < count:
            raise IndexError("index out of range")
        return index

    def __len__(self) -> int:
        return self._place.count

    def __getitem__(self, index: Any) -> Any:
        value = ffi.new("sppy_value*")
        with operation:
            if isinstance(index, slice):
                return [self[i] for i in range(*index.indices(len(self)))]
            code = lib.sppy_sequence_get(self._place, self._index(index), value)
            if code != 0:
                fail(code)
            return _received(value)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._set_slice(index, list(value))
            return
        left_over = ffi.new("uint64_t*")
        with operation:
            passed = _Passed(value)
            code = lib.sppy_sequence_set(self._place, self._index(index), passed.value, left_over)
            _drop(left_over)
        if code != 0:
            fail(code)

    def _set_slice(self, index: slice, values: List[Any]) -> None:
        """As that of a list: a slice with a step takes as many values as it has places."""
        with operation:
            places = range(*index.indices(len(self)))
            if places.step != 1 and len(values) != len(places):
                raise ValueError(f"attempt to assign {len(values)} values to a slice of {len(places)} places with a step")
            values = [_Passed(value).kept[0] for value in values]  # One that cannot be kept changes nothing.
            for place, value in zip(places, values):
                self[place] = value
            begin = places.start + min(len(values), len(places))
            for place, value in enumerate(values[len(places):], begin):
                self.insert(place, value)
            for _ in range(len(places) - len(values)):
                del self[begin]

    def __delitem__(self, index: Any) -> None:
        with operation:
            if isinstance(index, slice):
                for i in sorted(range(*index.indices(len(self))), reverse=True):
                    del self[i]
                return
            left_over = ffi.new("uint64_t*")
            code = lib.sppy_sequence_delete(self._place, self._index(index), left_over)
            _drop(left_over)
        if code != 0:
            fail(code)

    def insert(self, index: int, value: Any) -> None:
        with operation:
            count = self._place.count
            place = max(index + count, 0) if index < 0 else min(index, count)
            passed = _Passed(value)
            code = lib.sppy_sequence_insert(self._place, place, passed.value)
        if code != 0:
            fail(code)

    def append(self, value: Any) -> None:
        with operation:
            passed = _Passed(value)
            code = lib.sppy_sequence_insert(self._place, self._place.count, passed.value)
        if code != 0:
            fail(code)

    def extend(self, values: Iterable[Any]) -> None:
        values = list(values)
        with operation:
            for value in values:
                self.append(value)

    def pop(self, index: int = -1) -> Any:
        with operation:
            found = self[index]
            del self[index]
        return found

    def clear(self) -> None:
        with operation:
            while self._place.count:
                del self[-1]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, (list, collections.deque, _Sequence)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"


class DurableList(_Sequence):
    """A list in the pool."""

    __slots__ = ()
    _kind = lib.SPPY_LIST


class DurableDeque(_Sequence):
    """A deque in the pool: both ends are fast."""

    __slots__ = ()
    _kind = lib.SPPY_DEQUE

    def appendleft(self, value: Any) -> None:
        self.insert(0, value)

    def popleft(self) -> Any:
        return self.pop(0)

    def extendleft(self, values: Iterable[Any]) -> None:
        values = list(values)
        with operation:
            for value in values:
                self.appendleft(value)


_ITEM_BYTES = {"b1": 1, "i1": 1, "u1": 1, "i2": 2, "u2": 2, "f2": 2, "i4": 4, "u4": 4, "f4": 4, "i8": 8, "u8": 8, "f8": 8, "c8": 8,
               "c16": 16}


class DurableArray(Container):
    """Numbers in the pool, of a fixed shape: numpy.asarray(array) is a view of them, memoryview(array.buffer) their bytes. Write inside a
    section; written pages are found by themselves."""

    __slots__ = ()
    _type, _kind = "sppy_array*", lib.SPPY_ARRAY

    @property
    def shape(self) -> Tuple[int, ...]:
        return tuple(self._place.shape[0:self._place.dimensions])

    @property
    def dtype(self) -> str:
        """As numpy writes it: "<f8"."""
        return ffi.string(self._place.dtype, lib.SPPY_DTYPE_BYTES).decode("ascii", "replace")

    @property
    def buffer(self) -> Any:
        """The bytes. Keep the array as long as you use them."""
        return ffi.buffer(self._place.data, self._place.size_bytes)

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        if _bytes_of(self.shape, self.dtype) != self._place.size_bytes:
            raise DamagedError(f"the pool holds an array of shape {self.shape} and type {self.dtype} in {self._place.size_bytes} bytes")
        return {"version": 3, "shape": self.shape, "typestr": self.dtype, "data": (int(ffi.cast("uintptr_t", self._place.data)), False)}

    def __repr__(self) -> str:
        return f"DurableArray(shape={self.shape}, dtype={self.dtype!r})"


def _bytes_of(shape: Sequence[int], dtype: str) -> Optional[int]:
    """None: no such type."""
    size = _ITEM_BYTES.get(dtype[1:]) if dtype[:1] in ("<", "|") else None
    for length in shape:
        size = None if size is None else size * length
    return size


def new_array(shape: Sequence[int], dtype: Any) -> DurableArray:
    """Zeroes. Inside an operation."""
    name = _dtype_name(dtype)
    size = _bytes_of(shape, name)
    if size is None or any(length < 0 for length in shape) or len(shape) > lib.SPPY_DIMENSIONS:
        raise TypeError(f"a durable array has numbers of little-endian types such as \"<f8\", \"<i4\", \"|u1\", and at most "
                        f"{lib.SPPY_DIMENSIONS} dimensions; this has shape {tuple(shape)} and type {name}")
    address = ffi.new("uint64_t*")
    code = lib.sppy_make_array(name.encode(), len(shape), list(shape), size, address)
    if code != 0:
        fail(code)
    return DurableArray(address[0])


def _dtype_name(dtype: Any) -> str:
    """As numpy writes it. Without numpy: "<f8" and the like are taken."""
    try:
        import numpy
    except ImportError:
        return str(dtype)
    return numpy.dtype(dtype).str


_CLASSES: Dict[int, type] = {cls._kind: cls for cls in (DurableDict, DurableList, DurableDeque, DurableArray)}
KINDS: List[type] = [DurableDict, DurableList, DurableDeque, DurableArray]
