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
FILL_KEYS = 20000  # a dump of them fills every buffer; and the hash table of 2^13 grows once


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
        """Every key, in the old table or the new, is there; and it grows on."""
        _, raw = self.start()
        self.fill(raw)
        power, lives = int(raw.stats()["hash_power_level"]), 0
        give_up = time.monotonic() + 10
        while power < 14 and time.monotonic() < give_up:
            stats = raw.stats()
            if stats["hash_is_expanding"] == "1" or lives == 0:
                client, raw = self.crash(raw)
                lives += 1
                self.assertEqual(len(client.get_many([f"fill-{number}" for number in range(FILL_KEYS)])), FILL_KEYS)
            power = int(raw.stats()["hash_power_level"])
        self.assertGreaterEqual(power, 14, "it did not grow on after the crash")
        client, raw = self.crash(raw)
        self.assertEqual(len(client.get_many([f"fill-{number}" for number in range(FILL_KEYS)])), FILL_KEYS)
        self.assertEqual(int(raw.stats()["curr_items"]), FILL_KEYS)

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
