"""Where the pool of a running server lies, and servers whose pool cannot lie where it lay last."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("taken_address.c")


def address_of(process_id, pool):
    """Where the image of the pool lies; the pool's head is mapped besides."""
    maps = [line.split() for line in Path(f"/proc/{process_id}/maps").read_text().splitlines()]
    inode = str(pool.stat().st_ino)  # a new pool has no name when it is mapped
    place, = {line[0].split("-")[0] for line in maps if line[4] == inode and int(line[2], 16) != 0}
    return int(place, 16)


def environment_without(address, folder):
    """Environment of a process in which the address is taken. A library is made in `folder`."""
    library = folder / "taken_address.so"
    if not library.exists():
        subprocess.run(["cc", "-shared", "-fPIC", SOURCE, "-o", library], check=True)
    return {"LD_PRELOAD": str(library), "TAKEN_ADDRESS": str(address)}
