"""The two bandwidths that the scaling model needs: of a copy in memory, and of the medium that the pools lie on."""

import os
import statistics
import tempfile
import time
from pathlib import Path

BYTES = 32 << 20
ROUNDS = 5


def copy_bytes_per_s():
    source, target = bytearray(os.urandom(1 << 16)) * (BYTES >> 16), bytearray(BYTES)
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        target[:] = source
        taken.append(time.perf_counter() - begin)
    return BYTES / statistics.median(taken)


def medium_bytes_per_s(folder):
    """Large writes and a sync, over and over on the same file: what a checkpoint does."""
    data = os.urandom(1 << 16) * (BYTES >> 16)
    taken = []
    with tempfile.TemporaryFile(prefix="stillpoint-probe-", dir=folder) as file:
        for _ in range(ROUNDS + 1):
            begin = time.perf_counter()
            os.pwrite(file.fileno(), data, 0)
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - begin)
    return BYTES / statistics.median(taken[1:])  # the first allocates the file's blocks


def bandwidths(folder=None):
    place = Path(folder or ("/dev/shm" if Path("/dev/shm").is_dir() else "."))
    return {"copy_bytes_per_s": copy_bytes_per_s(), "medium_bytes_per_s": medium_bytes_per_s(place), "medium_folder": str(place)}
