"""As loop.c, with a durable list, or, as "array", with a numpy array."""

import sys
import time

import stillpoint

seconds, per_section, kind = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
pool = stillpoint.pool()
numbers = pool.array("numbers", 1000, "int64") if kind == "array" else pool.list("numbers", [0] * 1000)
begin, done = time.monotonic(), 0
while time.monotonic() - begin < seconds:
    for _ in range(100):
        with stillpoint.section():
            for _ in range(per_section):
                numbers[done % 1000] += 1
                done += 1
print(f"{done / (time.monotonic() - begin):.0f}")
