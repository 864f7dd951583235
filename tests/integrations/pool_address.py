"""Where the pool of a running server lies, and servers whose pool cannot lie where it lay last."""

import subprocess
from pathlib import Path

WINDOW_SHIFT, WINDOW = 40, 0x48  # of durable addresses: layers/breeze/layer.yaml
SOURCE = Path(__file__).with_name("taken_address.c")


def address_of(process_id):
    """Where the image of the process's only pool lies: in shared memory the file is mapped, on a file it is private memory."""
    maps = [line.split() for line in Path(f"/proc/{process_id}/maps").read_text().splitlines()]
    addresses = [int(line[0].split("-")[0], 16) for line in maps if line[1].startswith("rw")]
    return min(address for address in addresses if address >> WINDOW_SHIFT == WINDOW)


def environment_without(address, folder):
    """Environment of a process in which the address is taken. A library is made in `folder`."""
    library = folder / "taken_address.so"
    if not library.exists():
        subprocess.run(["cc", "-shared", "-fPIC", SOURCE, "-o", library], check=True)
    return {"LD_PRELOAD": str(library), "TAKEN_ADDRESS": str(address)}
