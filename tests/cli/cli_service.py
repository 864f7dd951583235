"""A service as others write it, in Python: counts in durable memory, each count a section, until a signal ends it. Its words: `own` has a
handler of its own, `ignore` ignores SIGTERM, `default` sets the default action again, `signal` does so by other calls, `hold` stays in a
section, `fork` has a child that SIGTERM ends."""

import ctypes
import os
import signal
import sys
import time

library = ctypes.CDLL(None)
library.sp_root.restype = ctypes.c_void_p
count = ctypes.cast(library.sp_root(b"count", 8), ctypes.POINTER(ctypes.c_long))
print("found", count[0], flush=True)
print("handler", signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, flush=True)


def end(*_):
    print("own handler", flush=True)
    sys.exit(7)


if "own" in sys.argv:
    signal.signal(signal.SIGTERM, end)
if "ignore" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "default" in sys.argv:
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
if "signal" in sys.argv:  # As a C program that is compiled for BSD or System V.
    for name in ("signal", "sysv_signal", "ssignal", "sigset"):
        call = getattr(library, name)
        call.restype, call.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
        print(name, [call(signal.SIGTERM, handler) for handler in (None, 1, None, None)], flush=True)
if "fork" in sys.argv:
    child = os.fork()
    if child == 0:
        time.sleep(60)
    os.kill(child, signal.SIGTERM)
    print("child", os.waitpid(child, 0)[1], flush=True)
library.sp_fase_begin()
count[0] += 1
if "hold" not in sys.argv:
    library.sp_fase_end()
print("counted", count[0], flush=True)
while True:
    time.sleep(0.01)
