"""Sections, errors, and the lock of the containers."""

import threading
from typing import NoReturn

from ._store import ffi, lib
from ._values import DamagedError

# One thread at a time changes containers. A section begins before the lock is taken, so no thread waits for a checkpoint with it.
_lock = threading.RLock()


class StillpointError(RuntimeError):
    """A call of the library has failed. `code` is its number in stillpoint/error.h."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


def last_error() -> str:
    return ffi.string(lib.sp_last_error()).decode("utf-8", "replace")


def check(code: int) -> None:
    """For the result of a function of stillpoint.h."""
    if code != 0:
        raise StillpointError(code, last_error())


def fail(code: int) -> NoReturn:
    """For the result of a function of store.h."""
    if code == lib.SPPY_NO_MEMORY:
        raise MemoryError(last_error() or "the container is full")
    raise DamagedError("the pool holds a container that cannot be read: `stillpoint check` says whether its file is damaged")


class section:
    """All changes that the thread makes inside survive a crash, or none.

        with stillpoint.section():
            accounts["one"] -= 5
            accounts["two"] += 5

    Sections nest; the outermost counts. Other threads see each change at once: use a threading.Lock, taken outside the section, to keep
    them apart. An exception ends the section as usual, and rolls nothing back. Leave it on the thread that entered it: no `await`, no
    `yield` inside. Checkpoints wait for its end, so do not wait for anything inside."""

    def __enter__(self) -> None:
        lib.sp_fase_begin()

    def __exit__(self, *_: object) -> None:
        lib.sp_fase_end()


class Operation:
    """A section in which the thread is alone with the containers."""

    def __enter__(self) -> None:
        lib.sp_fase_begin()
        _lock.acquire()

    def __exit__(self, *_: object) -> None:
        _lock.release()
        lib.sp_fase_end()


operation = Operation()
