"""Roots of stillpoint.hpp: another type, size or maker is refused and named; a constructor that throws leaves none; a class that was
renamed keeps its type_name; an exception that leaves a section rolls nothing back, and one that ends the program inside it rolls back all
of it."""

import signal
import unittest

from command_line import BUILD, SMALL, CommandLineTest

ROOTS = BUILD / "bin/cxx_roots"
FIRST = """1 5
aligned 1
another type: error 1 root "one" holds a (anonymous namespace)::First of 8 bytes, and the program asks for
another size: error 1 root "one" holds a (anonymous namespace)::First of 8 bytes, and the program asks for
of sp_root: error 1 root "plain" was not made by stillpoint::root()
a long name: error 1
a constructor that throws: thrown
none is left 1
the next one: done
1 0
deleted: done
thrown in a section: thrown
"""


class Roots(CommandLineTest):
    def life(self, name):
        return self.stillpoint("run", "--quiet", "--pool", self.pool, *SMALL, "--", ROOTS, name)

    def test_lives(self):
        first = self.life("first")
        self.assertEqual(first.returncode, 0, first.stderr)
        for found, expected in zip(first.stdout.splitlines(), FIRST.splitlines(), strict=True):
            self.assertTrue(found.startswith(expected), f"{found!r} does not begin with {expected!r}")
        second = self.life("second")
        self.assertEqual((second.returncode, second.stdout), (0, "12 5\naligned a\n"), second.stderr)
        terminated = self.life("terminated")
        self.assertEqual(terminated.returncode, -signal.SIGABRT, terminated.stdout + terminated.stderr)
        self.assertEqual(self.life("second").stdout, "12 5\naligned a\n")


if __name__ == "__main__":
    unittest.main()
