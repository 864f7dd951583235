"""Kyoto Cabinet's own test programs end with the durable library as they do with the stock one: without a pool; with one and a
nameless database, which stays in ordinary memory; with one and a database that has a name, which lies in the pool."""

import unittest

from programs import FOLDER, PoolTest, skip_without

CACHE = ["order -th 2 -rnd 4000", "order -th 2 -tran -tc 1500", "order -th 2 -etc -bnum 5000 3000",
         "order -th 2 -rnd -bnum 5000 -capcnt 3000 5000", "queue -th 2 -it 3 -rnd 3000", "wicked -th 3 -it 3 3000", "tran -th 2 -it 3 1500"]
PROTO = ["order -th 2 -rnd 4000", "order -th 2 -tran -etc 1500", "order -tree -th 2 -etc 3000", "queue -th 2 -it 3 -rnd 3000",
         "queue -tree -th 2 -it 3 3000", "wicked -th 3 -it 3 3000", "wicked -tree -th 3 -it 3 3000", "tran -th 2 -it 3 1500",
         "tran -tree -th 2 -it 3 1500"]
CASES = [(program, words.split()) for program, all_words in (("kccachetest", CACHE), ("kcprototest", PROTO)) for words in all_words
         if (FOLDER / "stock" / program).is_file()]


class OwnPrograms(PoolTest):
    def each(self, suffix, run):
        for program, words in CASES:
            with self.subTest(program=program, words=words):
                wanted = self.plain(FOLDER / "stock" / program, *words).returncode
                self.pool.unlink(missing_ok=True)
                self.assert_ended(run(FOLDER / "durable" / (program + suffix), *words), wanted)

    def test_without_a_pool_they_end_as_with_the_stock_library(self):
        self.each("", self.plain)

    def test_with_a_pool_and_a_nameless_database_they_end_as_with_the_stock_library(self):
        # The second database of "tran" is named "para": with a pool it survives from one iteration to the next, as a file would.
        cases = [case for case in CASES if case[1][0] != "tran"]
        self.assertLess(len(cases), len(CASES))
        for program, words in cases:
            with self.subTest(program=program, words=words):
                wanted = self.plain(FOLDER / "stock" / program, *words).returncode
                self.assert_ended(self.durable(FOLDER / "durable" / program, *words), wanted)

    def test_with_their_databases_in_the_pool_they_end_as_with_the_stock_library(self):
        self.each("-named", self.durable)


if __name__ == "__main__":
    skip_without(FOLDER / "stock/kccachetest", FOLDER / "durable/kccachetest-named")
    unittest.main()
