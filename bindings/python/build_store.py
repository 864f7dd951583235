"""Makes stillpoint._store of store.c by cffi. The library is found by STILLPOINT_PREFIX (a folder with include/ and lib/), else by
pkg-config."""

import os
import re
import subprocess
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent
SOURCES = ("store.c", "store_dict.c", "store_sequence.c")
OF_THE_LIBRARY = """
int sp_open(const char* path, const char* options);
int sp_start_kind(void);
const char* sp_last_error(void);
void sp_fase_begin(void);
void sp_fase_end(void);
bool sp_sections_are_atomic(void);
uint64_t sp_epoch(void);
uint64_t sp_durable_epoch(void);
int sp_wait_durable(uint64_t epoch, int64_t timeout_ms);
typedef enum sp_level { SP_LEVEL_LOCAL = 0, SP_LEVEL_REMOTE = 1 } sp_level;
int sp_wait_durable_at(uint64_t epoch, sp_level level, int64_t timeout_ms);
int sp_checkpoint(void);
int sp_copy(const char* new_path);
int sp_copy_since(const char* new_path, const char* base_path);
int sp_statistic(const char* name, uint64_t* value);
const char* sp_version(void);
"""


def places():
    """Options for the compiler, by their names in setuptools."""
    prefix = os.environ.get("STILLPOINT_PREFIX")
    if prefix:
        return {"include_dirs": [f"{prefix}/include"], "library_dirs": [f"{prefix}/lib"], "runtime_library_dirs": [f"{prefix}/lib"]}
    try:
        done = subprocess.run(["pkg-config", "--cflags", "--libs", "stillpoint"], stdout=subprocess.PIPE, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit("libstillpoint is not found: install Stillpoint, and set STILLPOINT_PREFIX to its folder (the PREFIX of "
                         "`make install`) or PKG_CONFIG_PATH") from None
    words = done.stdout.split()
    folders = [word[2:] for word in words if word.startswith("-L")]
    return {"include_dirs": [word[2:] for word in words if word.startswith("-I")], "library_dirs": folders, "runtime_library_dirs": folders}


def declarations():
    """store.h as cffi reads it: without the preprocessor's lines, and with lengths of arrays as numbers."""
    text = (HERE / "stillpoint/store.h").read_text(encoding="utf-8")
    return re.sub(r"^#.*$", "", text, flags=re.MULTILINE)


builder = FFI()
builder.cdef(OF_THE_LIBRARY + declarations())
builder.set_source("stillpoint._store", '#include <stdbool.h>\n#include "stillpoint/stillpoint.h"\n#include "store.h"\n',
                   sources=[f"stillpoint/{name}" for name in SOURCES], libraries=["stillpoint"],
                   **{**(found := places()), "include_dirs": [str(HERE / "stillpoint"), *found["include_dirs"]]})
