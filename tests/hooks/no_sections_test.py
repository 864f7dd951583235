"""A program that writes durable memory and delimits nothing is told so, once; one that does what its engine asks for is not."""

import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from command_line import BUILD, SMALL, CommandLineTest  # noqa: E402

PROGRAM = BUILD / "bin/no_sections"
RUSTC = shutil.which("rustc")
RUST = """use std::sync::{Arc, Mutex};
use std::thread;
extern "C" { fn sp_root(name: *const u8, size: usize) -> *mut u64; fn sp_epoch() -> u64; }
struct Pair(*mut u64);
unsafe impl Send for Pair {}
fn main() {
    let pair = Arc::new(Mutex::new(Pair(unsafe { sp_root(b"pair\\0".as_ptr(), 16) })));
    let last = unsafe { sp_epoch() } + 30;
    let threads: Vec<_> = (0..2).map(|_| { let pair = pair.clone(); thread::spawn(move || while unsafe { sp_epoch() } < last {
        for _ in 0..100 {
            let mut held = pair.lock().unwrap();
            unsafe { *held.0 += 1; *held.0.add(1) += 1; }
        }
        thread::sleep(std::time::Duration::from_micros(200));
    }) }).collect();
    for thread in threads { thread.join().unwrap(); }
}
"""


class NoSections(CommandLineTest):
    def told(self, *words, options=(), program=PROGRAM):
        """The warnings of a run on a new pool."""
        self.pool.unlink(missing_ok=True)
        done = self.stillpoint("run", "--pool", self.pool, *SMALL, "--interval", "2ms", *options, "--", program, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stderr.splitlines() if "was written in" in line], done.stdout

    def assert_told(self, kind, *options, about="no section was seen"):
        warnings, output = self.told(kind, options=options)
        self.assertEqual(len(warnings), 1, f"{kind} {options}: {warnings} {output}")
        self.assertIn(about, warnings[0])
        self.assertGreaterEqual(int(output.split()[1]), 20)

    def assert_silent(self, kind, *options):
        warnings, output = self.told(kind, options=options)
        self.assertEqual(warnings, [], f"{kind} {options}: {output}")

    def test_locks_that_nobody_sees_and_no_locks_are_told_with_each_tracker(self):
        for tracker in ("uffd", "mprotect", "hooks"):
            for kind in ("spin", "futex", "none"):
                with self.subTest(tracker=tracker, kind=kind):
                    self.assert_told(kind, "--tracker", tracker)

    def test_locks_and_sections_are_enough(self):
        for tracker in ("uffd", "mprotect", "hooks"):
            for kind in ("mutex", "section"):
                with self.subTest(tracker=tracker, kind=kind):
                    self.assert_silent(kind, "--tracker", tracker)

    def test_a_program_that_takes_locks_only_later_is_not_told(self):
        self.assert_silent("late")

    def test_the_blocks_of_a_heap_call_are_no_section_of_the_program(self):
        self.assert_told("heap")

    def test_a_run_that_ends_early_is_told_at_its_end(self):
        warnings, output = self.told("spin", "12")
        self.assertEqual(len(warnings), 1, output)

    def test_with_pronto_locks_are_not_enough(self):
        for kind in ("mutex", "spin"):
            with self.subTest(kind=kind):
                self.assert_told(kind, "--engine", "pronto", about="locks do not")
        self.assert_silent("section", "--engine", "pronto")

    def test_with_respct_a_restart_point_or_a_lock_is_one(self):
        self.assert_told("heap", "--engine", "respct", about="no restart point was passed")
        for kind in ("restart", "mutex"):
            with self.subTest(kind=kind):
                self.assert_silent(kind, "--engine", "respct")

    @unittest.skipUnless(RUSTC, "rustc is not installed")
    def test_mutexes_of_rust_are_futexes(self):
        source = self.folder / "pair.rs"
        source.write_text(RUST)
        subprocess.run([RUSTC, "-O", "-L", BUILD / "lib", "-l", "stillpoint", "-C", f"link-arg=-Wl,-rpath,{BUILD}/lib", source,
                        "-o", self.folder / "pair"], check=True, capture_output=True)
        warnings, _ = self.told(program=self.folder / "pair")
        self.assertEqual(len(warnings), 1)


if __name__ == "__main__":
    unittest.main()
