"""The server's own threads: one that sleeps or waits for a client while it holds a lock must not keep checkpoints away, and what it had
half done at a crash is whole afterwards.
"""

import time

import durable_case
import pymemcache_library
from durable_case import DurableCase

EPOCHS_WANTED = 5
EPOCHS_S_MAX = 4  # at intervals of 20 ms they take 0.1 s; a thread that keeps them away does so for as long as it waits
STALL_BUFFER_BYTES = 2048
FILL_KEYS = 20000
DUMP_KEYS = 40000  # of 230 bytes: more than the buffers of two sockets on one machine hold
GROWING_POWER, GROWING_KEYS = 15, 50000  # more than 1.5 times the buckets, so that the next tick of the clock makes it grow
DUE_STARTS = 12
OFTEN = "interval_ms=2 durability=process"


class CheckpointsGoOn(DurableCase):
    options = ("-m", "128", "-t", "2", "-o", "hashpower=13")

    def fill(self, raw, size_bytes=60, keys=FILL_KEYS, prefix="fill"):
        for start in range(0, keys, 500):
            numbers = range(start, start + 500)
            raw.meta_set_many((f"{prefix}-{number}", b"%d " % number * (size_bytes // 6)) for number in numbers)

    def assert_epochs_go_on(self, raw, what):
        durable, begin = raw.durable_epochs()[1], time.monotonic()
        while raw.durable_epochs()[1] < durable + EPOCHS_WANTED:
            more = raw.durable_epochs()[1] - durable
            self.assertLess(time.monotonic() - begin, EPOCHS_S_MAX, f"{what}: after epoch {durable} only {more} more")
            raw.meta("ms", "tick", value=b"1")
            time.sleep(0.005)

    def stalled_dump(self, raw, walk):
        """A client that has asked for a dump, does not read it, and keeps the crawler waiting."""
        from raw_connection import RawConnection
        stalled = RawConnection(self.server.address, STALL_BUFFER_BYTES)
        self.addCleanup(stalled.close)
        stalled.send(f"lru_crawler metadump {walk}\r\n".encode())
        time.sleep(0.5)
        self.assertEqual(raw.stats()["lru_crawler_running"], "1", "the dump has found room in the buffers: it does not stall")
        return stalled

    def filled_for_a_dump(self):
        """Long keys, so that the dump is larger than what sockets buffer."""
        client, raw = self.start("-m", "128", "-t", "4")
        names = [f"{number}-{'x' * 230}" for number in range(DUMP_KEYS)]
        self.set_all(raw, names, b"1")
        return client, raw, names

    @staticmethod
    def set_all(raw, names, value):
        for start in range(0, len(names), 500):
            raw.meta_set_many((name, value) for name in names[start:start + 500])

    def test_a_dump_to_a_client_that_does_not_read(self):
        client, raw, names = self.filled_for_a_dump()
        for walk in ("all", "hash"):
            stalled = self.stalled_dump(raw, walk)
            self.assert_epochs_go_on(raw, f"metadump {walk}")
            stalled.close()
            time.sleep(0.2)
        client, raw = self.crash(raw)
        self.assertEqual(client.get(names[777]), b"1")

    def test_a_second_crawler_command_while_a_dump_stalls(self):
        from raw_connection import RawConnection
        for command in (b"lru_crawler crawl all\r\n", b"lru_crawler disable\r\n"):
            with self.subTest(command):
                self.end()
                _, raw, _ = self.filled_for_a_dump()
                self.stalled_dump(raw, "all")
                with RawConnection(self.server.address) as second:
                    second.send(command)
                    time.sleep(0.2)
                    self.assert_epochs_go_on(raw, "a command that waits for the crawler")

    def test_writers_of_every_bucket_while_a_dump_of_the_hash_table_stalls(self):
        from raw_connection import RawConnection
        _, raw, names = self.filled_for_a_dump()
        self.stalled_dump(raw, "hash")
        with RawConnection(self.server.address, timeout_s=2) as writer:
            try:
                self.set_all(writer, names, b"2")
            except TimeoutError:
                pass  # it waits for the bucket that the dump holds, as it does without a pool
            self.assert_epochs_go_on(raw, "a writer of the bucket that the dump is at")

    def test_a_client_that_does_not_read_its_values(self):
        from raw_connection import RawConnection
        client, raw = self.start()
        client.set("large", bytes(900_000))
        with RawConnection(self.server.address, STALL_BUFFER_BYTES) as stalled:
            stalled.send(b"get large large large large large large large large\r\n" * 4)
            time.sleep(0.2)
            self.assert_epochs_go_on(raw, "a client that does not read")

    def test_a_client_that_sends_half_a_value(self):
        from raw_connection import RawConnection
        client, raw = self.start()
        with RawConnection(self.server.address) as slow:
            slow.send(b"set half 0 0 600000\r\n" + bytes(300_000))
            time.sleep(0.1)
            self.assert_epochs_go_on(raw, "a client that sends half a value")
            client, raw = self.crash(raw)
        self.assertIsNone(client.get("half"))
        client.set("half", bytes(600_000))
        self.assertEqual(client.get("half"), bytes(600_000))

    def test_a_crawl_that_sleeps_and_a_watcher(self):
        from raw_connection import RawConnection
        _, raw = self.start()
        self.fill(raw)
        raw.admin("lru_crawler sleep 10000")
        raw.admin("lru_crawler crawl all")
        with RawConnection(self.server.address, STALL_BUFFER_BYTES) as watcher:
            watcher.send(b"watch fetchers mutations\r\n")
            self.assert_epochs_go_on(raw, "a crawl that sleeps at each item")
            client, raw = self.crash(raw)
        self.assertEqual(len(client.get_many([f"fill-{number}" for number in range(1000)])), 1000)
        raw.admin("lru_crawler crawl all")
        self.assert_epochs_go_on(raw, "a crawl after the crash of a crawl")

    def test_a_hash_table_that_is_killed_while_it_grows(self):
        """Every key is there, in the old table or in the new; and it grows on."""
        options = ("-m", "128", "-t", "2", "-o", f"hashpower={GROWING_POWER}")
        client, raw = self.start(*options, pool_options=OFTEN)
        self.fill(raw, 12, GROWING_KEYS)
        names = [f"fill-{number}" for number in range(0, GROWING_KEYS, 7)]
        half_grown, give_up = 0, time.monotonic() + 12
        for late_s in (0.002, 0.004, 0.006, 0.008, 0.003, 0.005):
            raw.wait_durable()
            while raw.stats()["hash_is_expanding"] == "0" and self.power(raw) == GROWING_POWER and time.monotonic() < give_up:
                pass
            time.sleep(late_s)
            self.server.kill()
            client, raw = self.start(*options, pool_options=OFTEN)
            half_grown += raw.stats()["hash_is_expanding"] == "1"
            self.assertEqual(len(client.get_many(names)), len(names))
            if self.power(raw) > GROWING_POWER and raw.stats()["hash_is_expanding"] == "0":
                break
        while self.power(raw) == GROWING_POWER or raw.stats()["hash_is_expanding"] == "1":
            self.assertLess(time.monotonic(), give_up + EPOCHS_S_MAX, "it did not grow on after the crash")
        client, raw = self.crash(raw, *options)
        self.assertEqual((self.power(raw), len(client.get_many(names))), (GROWING_POWER + 1, len(names)))
        self.assertEqual(int(raw.stats()["curr_items"]), GROWING_KEYS)
        print(f"killed while it grew, and found half grown: {half_grown}")

    def test_a_hash_table_that_is_due_to_grow_at_the_start(self):
        """The crash came before the tick that makes it grow; so each next start grows it, while its threads are just beginning."""
        _, raw = self.start()
        self.fill(raw)
        raw.wait_durable()
        self.server.kill()
        names = [f"fill-{number}" for number in range(0, FILL_KEYS, 11)]
        for _ in range(DUE_STARTS):
            client, raw = self.start("-m", "128", "-t", "4", "-o", "hashpower=13", pool_options="interval_ms=60000 durability=process")
            self.assertEqual(len(client.get_many(names)), len(names))
            self.server.kill()

    @staticmethod
    def power(raw):
        return int(raw.stats()["hash_power_level"])

    def test_pages_that_are_killed_while_they_move(self):
        """A page is moved from a class of which most items were deleted; killed at once, with the move half done or not begun."""
        client, raw = self.start()
        self.fill(raw, 6000, 1500, "page")
        for number in range(1500):
            if number % 3:
                client.delete(f"page-{number}")
        kept = {f"page-{number}": b"%d " % number * 1000 for number in range(0, 1500, 3)}
        for _ in range(4):
            slabs = raw.stats("slabs")
            pages = {name.split(":")[0]: int(value) for name, value in slabs.items() if name.endswith(":total_pages")}
            source = max(pages, key=pages.get)
            raw.admin(f"slabs reassign {source} 1")
            self.assert_epochs_go_on(raw, "a page that moves")
            self.server.kill()
            client, raw = self.start()
            self.assertEqual(client.get_many(kept), kept)
        self.fill(raw, 6000, 1500, "again")
        self.assertEqual(client.get_many(kept), kept)
        self.assertEqual(raw.stats()["evictions"], "0")


if __name__ == "__main__":
    pymemcache_library.find_or_exit()
    durable_case.main()
