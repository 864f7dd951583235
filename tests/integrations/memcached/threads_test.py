"""The server's own threads: one that sleeps or waits for a client while it holds a lock must not keep checkpoints away, and what it had
half done at a crash is whole afterwards.
"""

import time

import durable_case
import pymemcache_library
from durable_case import DurableCase

EPOCHS_WANTED = 5
EPOCHS_S_MAX = 10  # at intervals of 20 ms they take 0.1 s; a thread that keeps them away does so for as long as it waits
STALL_BUFFER_BYTES = 2048
FILL_KEYS = 20000  # a dump of them fills every buffer
GROWING_POWER, GROWING_KEYS = 15, 50000  # more than 1.5 times the buckets, so that the next tick of the clock makes it grow
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

    def test_a_dump_to_a_client_that_does_not_read(self):
        from raw_connection import RawConnection
        _, raw = self.start()
        self.fill(raw)
        for walk in (b"all", b"hash"):
            with RawConnection(self.server.address, STALL_BUFFER_BYTES) as stalled:
                stalled.send(b"lru_crawler metadump %s\r\n" % walk)
                time.sleep(0.3)
                self.assert_epochs_go_on(raw, f"metadump {walk.decode()}")
            time.sleep(0.1)
        client, raw = self.crash(raw)
        self.assertEqual(client.get("fill-777"), b"777 " * 10)

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
