"""The Rust crates: `cargo test` of them, and the program of their guide. Exit code 77: cargo is not installed."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["STILLPOINT_BUILD"]).resolve()
CRATES = ROOT / "bindings/rust"
SKIPPED = 77
BLOCK = re.compile(r'^```rust title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], text=True, check=False, timeout=250, **more)
    if done.returncode != 0:
        sys.exit(f"{done.stdout or ''}{done.stderr or ''}\nexit code {done.returncode} of {' '.join(map(str, words))}")
    return done.stdout


def guide(folder, environment):
    """As an example of the crate, in a copy of it; each life prints something else."""
    (folder / "crates/stillpoint/examples").mkdir()
    for title, body in BLOCK.findall((ROOT / "docs/guide/rust.md").read_text(encoding="utf-8")):
        (folder / "crates/stillpoint/examples" / title).write_text(body, encoding="utf-8")
        name = title.removesuffix(".rs")
        words = ("cargo", "run", "--offline", "-q", "--example", name)
        first, second = (run(*words, env=environment, stdout=subprocess.PIPE, cwd=folder / "crates/stillpoint") for _ in range(2))
        if first == second:
            sys.exit(f"{title} prints the same in its second life: {first}")


def main():
    if shutil.which("cargo") is None or subprocess.run(["cargo", "--version"], capture_output=True, check=False).returncode != 0:
        print("skipped: cargo is not installed")
        return SKIPPED
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        folder = Path(name)
        shutil.copytree(CRATES, folder / "crates", ignore=shutil.ignore_patterns("target"))
        (folder / "lib").symlink_to(BUILD / "lib")
        environment = {**os.environ, "STILLPOINT_PREFIX": str(folder), "CARGO_TARGET_DIR": str(folder / "target"),
                       "LD_LIBRARY_PATH": str(BUILD / "lib"), "TMPDIR": str(folder)}
        run("cargo", "test", "--offline", "-q", env=environment, cwd=folder / "crates", capture_output=True)
        guide(folder, environment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
