"""The model itself: histories of which the answer is known.

Invariants: whatever a crash at one moment may leave is accepted, and the interval of the moment holds it; what no moment explains
is named for what it is.
"""

import random
import time
import unittest

from model import ALWAYS, NEVER, CasNumbers, History, Violation, Write, intersection
from values import content_of, defect, record


def history(**keys):
    """The writes of each key as (begin, end, value); the model's clock is far behind these moments."""
    made = History()
    for key, writes in keys.items():
        made.writes[key] = [Write(ALWAYS, ALWAYS, None)] + [Write(begin, end, content_of(value)) for begin, end, value in writes]
    return made


def recover(made, **values):
    first = time.monotonic()
    for key, value in values.items():
        made.recovered(key, value, first)
    return made.settle({key: value for key, value in values.items() if value is not None}, 20.0, first)


ONE, TWO = record("a", 1), record("a", 2)


class OneCut(unittest.TestCase):
    def test_the_cut_lies_between_the_begin_of_what_came_back_and_the_end_of_what_did_not(self):
        verdict = recover(history(a=[(1, 2, ONE), (5, 6, TWO)], b=[(3, 4, record("b", 3))]), a=ONE, b=record("b", 3))
        self.assertEqual(verdict.cut, (3, 6))
        self.assertEqual((verdict.kept_writes, verdict.lost_writes, verdict.oldest_lost_s), (2, 1, 14.0))

    def test_a_write_in_flight_at_the_cut_may_be_there_or_not(self):
        for value in (None, ONE):
            recover(history(a=[(5, NEVER, ONE)]), a=value)

    def test_a_key_that_is_newer_than_another_allows(self):
        made = history(a=[(1, 2, ONE)], b=[(3, 4, record("b", 3))])
        with self.assertRaisesRegex(Violation, "no one moment"):
            recover(made, b=record("b", 3), a=None)

    def test_two_states_with_the_same_content_leave_two_intervals(self):
        made = history(a=[(1, 2, ONE), (3, 4, None), (5, 6, ONE)], b=[(4.5, 4.6, record("b", 3))])
        self.assertEqual(recover(made, a=None, b=None).cut, (ALWAYS, 4.6))
        self.assertEqual(intersection([(0, 2), (4, 6)], [(1, 5)]), [(1, 2), (4, 5)])

    def test_an_acknowledged_epoch_that_is_lost(self):
        made = history(a=[(1, 2, ONE), (3, 4, TWO)])
        made.acknowledged(5)
        with self.assertRaises(Violation):
            recover(made, a=ONE)

    def test_an_acknowledgement_that_is_held(self):
        made = history(a=[(1, 2, ONE), (3, 4, TWO)])
        made.acknowledged(2.5)
        recover(made, a=ONE)

    def test_what_a_first_reading_has_seen_binds_the_second(self):
        made = history(a=[(1, 2, ONE)], b=[(0.2, 0.4, record("b", 3))])
        made.recovered("a", ONE, time.monotonic())
        with self.assertRaisesRegex(Violation, "no one moment"):
            made.recovered("b", None, time.monotonic())

    def test_random_histories_cut_anywhere_are_accepted_and_the_cut_is_found(self):
        for seed in range(200):
            dice, cut, number, writes, values = random.Random(seed), 50, 0, {}, {}
            for key in "abcdefgh":
                now, writes[key], values[key] = 0.0, [], None
                while now < 100:
                    begin, effect = now + dice.random() * 9, dice.random() * 5
                    end, number = begin + effect + dice.random() * 5, number + 1
                    value = None if dice.random() < 0.3 else record(key, number)
                    writes[key].append((begin, end, value))
                    values[key] = value if begin + effect <= cut else values[key]
                    now = end
            low, high = recover(history(**writes), **values).cut
            self.assertTrue(low <= cut < high, f"seed {seed}: {low} to {high}")


class WhatIsWrong(unittest.TestCase):
    def assert_found(self, words, made, **values):
        with self.assertRaisesRegex(Violation, words):
            recover(made, **values)

    def test_a_torn_value(self):
        value = record("a", 2, 5000)
        mixed = value[:2500] + record("a", 1, 5000)[2500:]
        self.assert_found("torn", history(a=[(1, 2, record("a", 1, 5000)), (3, 4, value)]), a=mixed)
        self.assertIsNone(defect("a", value + ONE))

    def test_a_value_of_another_key(self):
        self.assert_found("another key, b", history(a=[(1, 2, ONE)]), a=record("b", 1))

    def test_a_deleted_value_that_is_back_in_the_next_life(self):
        made = history(a=[(1, 2, ONE), (3, 4, None)])
        recover(made, a=None)
        self.assert_found("cannot have", made, a=ONE)

    def test_a_value_of_a_lost_epoch_that_is_back_in_the_next_life(self):
        made = history(a=[(1, 2, ONE), (3, 4, TWO)])
        recover(made, a=ONE)
        self.assert_found("cannot have", made, a=TWO)

    def test_a_key_that_has_vanished(self):
        made = history(a=[(1, 2, ONE)])
        recover(made, a=ONE)
        self.assert_found("missing", made, a=None)

    def test_a_running_server_that_answers_with_an_old_value(self):
        made = history(a=[(1, 2, ONE), (3, 4, TWO)])
        with self.assertRaisesRegex(Violation, "only writer"):
            made.read("a", ONE, time.monotonic())


class Lifetimes(unittest.TestCase):
    def expiring(self, lifetime_s):
        made = History()
        made.begin("a", ONE, lifetime_s).end = time.monotonic()
        return made

    def test_a_value_may_be_missing_only_about_its_end(self):
        recover(self.expiring(1), a=None)
        with self.assertRaises(Violation):
            made = self.expiring(60)
            made.acknowledged(time.monotonic())
            recover(made, a=None)

    def test_a_value_is_not_back_after_its_end(self):
        with self.assertRaises(Violation):
            recover(self.expiring(-10), a=ONE)

    def test_a_lifetime_goes_on_in_the_next_life(self):
        made = self.expiring(60)
        recover(made, a=ONE)
        with self.assertRaises(Violation):
            recover(made, a=None)


class Evictions(unittest.TestCase):
    def test_an_evicted_key_may_be_back_after_the_next_crash(self):
        made = history(a=[(1, 2, ONE), (3, 4, TWO)])
        made.evictable = True
        self.assertEqual(recover(made, a=None).missing, 1)
        recover(made, a=TWO)

    def test_but_not_once_it_was_deleted(self):
        made = history(a=[(1, 2, ONE)])
        made.evictable = True
        recover(made, a=None)
        made.begin("a", None).end = time.monotonic()
        made.acknowledged(time.monotonic())
        with self.assertRaises(Violation):
            recover(made, a=ONE)


class Flushes(unittest.TestCase):
    def flushed(self):
        made = History()
        for key in ("a", "b"):
            made.begin(key, record(key, 1)).end = time.monotonic()
        made.acknowledged(time.monotonic())
        made.begin_flush()
        return made

    def test_a_flush_in_flight_takes_all_keys_or_none(self):
        recover(self.flushed(), a=None, b=None)
        recover(self.flushed(), a=ONE, b=record("b", 1))
        with self.assertRaisesRegex(Violation, "flush_all was torn"):
            recover(self.flushed(), a=ONE, b=None)

    def test_a_flush_that_is_durable_stays(self):
        made = self.flushed()
        made.end_flush()
        made.acknowledged(time.monotonic())
        with self.assertRaises(Violation):
            recover(made, a=ONE, b=record("b", 1))


class CasNumbersAreUnique(unittest.TestCase):
    def test_a_number_that_comes_back_for_another_content(self):
        numbers = CasNumbers()
        numbers.note("a", ONE, 7)
        numbers.note("a", ONE, 7)
        with self.assertRaisesRegex(Violation, "CAS 7"):
            numbers.note("a", TWO, 7)

    def test_a_number_of_a_lost_content_is_told(self):
        numbers = CasNumbers()
        numbers.note("a", ONE, 7)
        numbers.note("a", TWO, 8)
        self.assertEqual(numbers.recovered("a", ONE, 7), 8)
        self.assertIsNone(numbers.recovered("a", ONE, 7))


if __name__ == "__main__":
    unittest.main()
