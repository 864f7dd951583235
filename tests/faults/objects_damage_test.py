"""Damage to the log of a durable object: every byte of an acknowledged operation that a later acknowledged one follows counts. The
error names the object, the operation, its number and what is kept; nothing is changed, and the operator may go on without the rest."""

import random
import unittest

from faulty_runs import BUILD, CRASHED, FaultyRun

OPERATIONS = 6
HEADER = 32       # of an entry
LENGTH = 8        # of its only argument, with the gap after
BALLAST = 800
CUT = {"--damaged-log": "cut"}


def ballast_of(number):
    return (0x5CA1AB1E00000000 + number).to_bytes(8, "little") * 100


class DamagedLog(FaultyRun):
    program = BUILD / "bin/faults_objects"

    def crashed_pool(self, medium):
        """A pool whose log has six operations; its bytes, and where the entries begin."""
        self.pool.unlink(missing_ok=True)
        self.options = {"--engine": "pronto", "--medium": medium}
        done = self.run_program("crash", str(OPERATIONS), options=self.options)
        self.assertEqual(done.returncode, -9, done.stderr)
        whole = self.pool.read_bytes()
        for number in range(1, OPERATIONS + 1):
            self.assertEqual(whole.count(ballast_of(number)), 1)
        return whole, [whole.index(ballast_of(number)) - HEADER - LENGTH for number in range(1, OPERATIONS + 1)]

    def look(self, whole, place, flipped, **options):
        damaged = bytearray(whole)
        damaged[place] ^= flipped
        self.pool.write_bytes(damaged)
        return self.run_program(options={**self.options, **options})

    def assert_found(self, done, count):
        self.assertEqual((done.returncode, done.stdout), (0, f"start {CRASHED} count {count}\n"), done.stderr)

    def test_is_told_and_nothing_is_changed(self):
        chosen = random.Random(7)
        for medium in ("file", "memory"):
            whole, begins = self.crashed_pool(medium)
            self.assert_found(self.look(whole, 0, 0), OPERATIONS)
            places = [*range(HEADER + LENGTH), *chosen.sample(range(HEADER + LENGTH, HEADER + LENGTH + BALLAST), 8)]
            for place in chosen.sample(places, 16):
                number = chosen.randrange(1, OPERATIONS)
                with self.subTest(medium=medium, place=place, number=number):
                    done = self.look(whole, begins[number - 1] + place, 1 << chosen.randrange(8))
                    self.assertEqual(done.returncode, 3, done.stdout)
                    self.assertRegex(done.stderr, rf'faults_objects: .*"counts".*operation {number} \(\w.*up to {number - 1} are kept')

    def test_can_be_cut_off(self):
        for medium in ("file", "memory"):
            with self.subTest(medium=medium):
                whole, begins = self.crashed_pool(medium)
                self.assert_found(self.look(whole, begins[3] + 100, 4, **CUT), 3)
                self.assert_starts(2, 3, options=self.options)

    def test_of_the_newest_operation_is_a_crash_that_tore_it(self):
        for medium in ("file", "memory"):
            with self.subTest(medium=medium):
                whole, begins = self.crashed_pool(medium)
                self.assert_found(self.look(whole, begins[-1] + 100, 4), OPERATIONS - 1)


if __name__ == "__main__":
    unittest.main()
