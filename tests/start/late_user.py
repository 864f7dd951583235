"""Uses durable memory through ctypes, late: the interpreter itself knows nothing of the library."""

import ctypes
import os
import signal
import sys

library = ctypes.CDLL("libstillpoint.so.1")
library.sp_root.restype = ctypes.POINTER(ctypes.c_int)
kind = library.sp_start_kind()
library.sp_fase_begin()
runs = library.sp_root(b"runs", ctypes.c_size_t(4))
runs[0] += 1
now = runs[0]
library.sp_fase_end()
if kind != 0:
    library.sp_checkpoint()
print(f"start {kind} run {now}", flush=True)
if sys.argv[1] == "crash":
    os.kill(os.getpid(), signal.SIGKILL)
