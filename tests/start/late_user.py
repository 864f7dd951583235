"""Uses durable memory through ctypes, late: the interpreter itself knows nothing of the library."""

import ctypes
import os
import signal
import sys

if sys.argv[1] == "holding":
    everything = ctypes.CDLL(None)
    lock = ctypes.create_string_buffer(64)
    everything.pthread_mutex_lock(lock)
if sys.argv[1] == "blocking":
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
library = ctypes.CDLL("libstillpoint.so.1")
library.sp_root.restype = ctypes.POINTER(ctypes.c_int)
if sys.argv[1] == "holding":
    library.sp_root(b"runs", ctypes.c_size_t(4))
    inside = library.sp_checkpoint()
    everything.pthread_mutex_unlock(lock)
    sys.exit(print(f"inside {inside}, then {library.sp_checkpoint()}"))
if sys.argv[1] in ("blocking", "inherited"):
    number = library.sp_root(b"runs", ctypes.c_size_t(4))
    for _ in range(3):
        library.sp_checkpoint()
        number[0] += 1  # a page that a checkpoint may have protected
    sys.exit(print(f"number {number[0]}"))
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
