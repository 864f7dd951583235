"""The pool of the process, and its named containers."""

import os
from typing import Any, Dict, Iterator, Optional, Sequence, Union

from ._containers import Container, DurableArray, DurableDeque, DurableDict, DurableList, _new, durable, handle, new_array
from ._sections import StillpointError, check, fail, operation
from ._store import ffi, lib

_STARTS = ("volatile", "fresh", "clean", "crashed")


class Pool:
    """Named containers of the pool. Made by open() or pool()."""

    def __init__(self) -> None:
        if not lib.sp_sections_are_atomic():
            raise StillpointError(18, "this package keeps what it stores in sections, and this pool's engine wants to be told of each store: "
                                      "make the pool with another engine, such as pmthreads")
        names = ffi.new("sppy_dict**")
        with operation:
            code = lib.sppy_open(names)
            if code != 0:
                fail(code)
            self._names: DurableDict = handle(int(ffi.cast("uintptr_t", names[0])))  # type: ignore[assignment]

    @property
    def start(self) -> str:
        """How this process has found its memory: "fresh", "clean", "crashed", or "volatile": no pool, nothing will survive."""
        return _STARTS[lib.sp_start_kind()]

    def dict(self, name: str, initial: Optional[Dict[Any, Any]] = None) -> DurableDict:
        """The dict of that name; made of `initial` where there is none."""
        return self._named(name, DurableDict, initial or {})

    def list(self, name: str, initial: Sequence[Any] = ()) -> DurableList:
        """The list of that name."""
        return self._named(name, DurableList, initial)

    def deque(self, name: str, initial: Sequence[Any] = ()) -> DurableDeque:
        """The deque of that name."""
        return self._named(name, DurableDeque, initial)

    def array(self, name: str, shape: Union[int, Sequence[int]], dtype: Any = "<f8") -> Any:
        """The numbers of that name as a numpy array, or, without numpy, a DurableArray; zeroes where there are none."""
        wanted = (shape,) if isinstance(shape, int) else tuple(shape)
        with operation:
            found = self._names.get(name)
            if found is None:
                found = self._names[name] = new_array(wanted, dtype)
        if not isinstance(found, DurableArray):
            raise TypeError(f"{name!r} is a {type(found).__name__}, not a DurableArray")
        if found.shape != wanted:
            raise ValueError(f"{name!r} has shape {found.shape}, not {wanted}")
        try:
            import numpy
        except ImportError:
            return found
        if numpy.dtype(dtype).str != found.dtype:
            raise ValueError(f"{name!r} has numbers of type {found.dtype}, not {numpy.dtype(dtype).str}")
        return numpy.asarray(found)

    def _named(self, name: str, cls: type, initial: Any) -> Any:
        if not isinstance(name, str):
            raise TypeError("the name of a container is a str")
        with operation:
            found = self._names.get(name)
            if found is None:
                found = _new(cls)
                (found.update if cls is DurableDict else found.extend)(initial)
                self._names[name] = found
        if type(found) is not cls:
            raise TypeError(f"{name!r} is a {type(found).__name__}, not a {cls.__name__}")
        return found

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(list(self._names))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def delete(self, name: str) -> None:
        """Forgets a name; what it named goes when the program has no handle of it any more. KeyError: there is none."""
        del self._names[name]

    def wait_durable(self, timeout: Optional[float] = None, level: Optional[str] = None) -> None:
        """Waits until what this thread has done is durable: on this machine (level="local"), in the pool's replica too, so that it
        survives the loss of the machine ("remote"), or where the option replicate says (None). `timeout` in seconds. Not inside a section.
        StillpointError: also where "remote" is asked of a pool in a file that has no replica."""
        timeout_ms = -1 if timeout is None else int(timeout * 1000)
        if level is None:
            check(lib.sp_wait_durable(lib.sp_epoch(), timeout_ms))
        elif level in _LEVELS:
            check(lib.sp_wait_durable_at(lib.sp_epoch(), _LEVELS[level], timeout_ms))
        else:
            raise ValueError(f"a level is 'local' or 'remote', not {level!r}")

    def checkpoint(self) -> None:
        """Makes durable now what was done so far. Not inside a section."""
        check(lib.sp_checkpoint())

    def copy(self, path: Union[str, "os.PathLike[str]"], since: Union[str, "os.PathLike[str]", None] = None) -> None:
        """Copies the pool to a new file while the program goes on: all of it, or what has changed since the copy or increment `since`,
        as an increment for `stillpoint restore`."""
        check(lib.sp_copy(os.fsencode(path)) if since is None else lib.sp_copy_since(os.fsencode(path), os.fsencode(since)))

    def statistic(self, name: str) -> int:
        """A figure of `stillpoint stats`."""
        value = ffi.new("uint64_t*")
        check(lib.sp_statistic(name.encode(), value))
        return value[0]


_LEVELS = {"local": lib.SP_LEVEL_LOCAL, "remote": lib.SP_LEVEL_REMOTE}
_pool: Optional[Pool] = None


def pool() -> Pool:
    """The pool of `stillpoint run`; without one, ordinary memory: the program runs, and nothing survives."""
    global _pool
    if _pool is None:
        _pool = Pool()
    return _pool


def open(path: Union[str, "os.PathLike[str]"], **options: Union[str, int]) -> Pool:  # noqa: A001  (as gzip.open)
    """Opens or makes the pool at `path`: once in a process, before threads are started. `options` are those of `stillpoint run`:
    engine="nvthreads", interval_ms=20. The interpreter must have been started with the library in LD_PRELOAD; under
    `stillpoint run`, use pool()."""
    if "libstillpoint" not in os.environ.get("LD_PRELOAD", ""):
        raise StillpointError(18, "libstillpoint.so was loaded after the C library: start the program with `stillpoint run --pool FILE -- "
                                  "python3 ...` and use pool(), or start python3 with LD_PRELOAD=libstillpoint.so.1")
    text = " ".join(f"{name}={value}" for name, value in options.items())
    check(lib.sp_open(os.fsencode(path), text.encode() or ffi.NULL))
    return pool()


__all__ = ["Container", "Pool", "durable", "open", "pool"]
