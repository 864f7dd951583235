"""Each feature of memcached, before a crash and after it.

Invariants: what was durable before SIGKILL is there after it, with its flags, CAS number, lifetime and marks, and every command
continues with it as if nothing had happened.
"""

import subprocess
import time
from pathlib import Path

import durable_case
import pymemcache_library
from durable_case import DurableCase

SHORT_S, DOWN_S = 2, 3.2  # a lifetime that ends while the server is down
LARGE_BYTES = 3 << 20  # of many chunks


class FeaturesSurviveACrash(DurableCase):
    def test_values_flags_and_deletes(self):
        client, raw = self.start()
        client.set_many({"one": b"1", "two": b"2", "three": b""})
        client.set("flagged", b"f", flags=77)
        client.delete("two")
        client, raw = self.crash(raw)
        self.assertEqual(client.get_many(["one", "two", "three", "flagged"]), {"one": b"1", "three": b"", "flagged": b"f"})
        self.assertEqual(raw.meta("mg", "flagged", "f")[1]["f"], "77")
        self.assertEqual(raw.stats()["stillpoint_start"], "crashed")

    def test_a_clean_close_keeps_what_no_epoch_has_had_time_for(self):
        client, _ = self.start(pool_options="interval_ms=60000 durability=process")
        client.set("late", b"1")
        self.assertEqual(self.server.close(), 0)
        client, raw = self.start()
        self.assertEqual(client.get("late"), b"1")
        self.assertEqual(raw.stats()["stillpoint_start"], "clean")

    def test_cas_numbers_stay_and_are_not_given_out_again(self):
        client, raw = self.start()
        client.set("a", b"1")
        kept = client.gets("a")
        raw.wait_durable()
        lost = []
        for number in range(50):
            client.set("b", b"%d" % number)
            lost.append(int(client.gets("b")[1]))
        self.server.kill()
        client, raw = self.start()
        self.assertEqual(client.gets("a"), kept)
        client.set("c", b"3")
        self.assertGreater(int(client.gets("c")[1]), max(lost))
        self.assertTrue(client.cas("a", b"2", kept[1]))
        self.assertFalse(client.cas("a", b"3", kept[1]))

    def test_cas_numbers_of_a_life_of_which_nothing_became_durable(self):
        """Three lives are killed at once: what their clients have seen is lost, and no number stands for something else later."""
        seen = set()
        for life in range(4):
            client, raw = self.start(pool_options="interval_ms=60000 durability=process")
            for number in range(5):
                seen.add(int(raw.meta("ms", f"key-{number}", "c", value=b"%d" % life)[1]["c"]))
            self.server.kill()
        self.assertEqual(len(seen), 20, sorted(seen))

    def test_counters_and_strings_go_on_growing(self):
        client, raw = self.start()
        client.set_many({"counter": b"99", "text": b"middle"})
        self.assertEqual(client.incr("counter", 1), 100)
        client.append("text", b"-end")
        client, raw = self.crash(raw)
        self.assertEqual((client.incr("counter", 5), client.decr("counter", 100)), (105, 5))
        client.prepend("text", b"begin-")
        client, raw = self.crash(raw)
        self.assertEqual((client.get("counter").strip(), client.get("text")), (b"5", b"begin-middle-end"))

    def test_lifetimes_go_on_while_the_server_is_down(self):
        client, raw = self.start()
        client.set("short", b"1", expire=SHORT_S)
        client.set("long", b"2", expire=600)
        client.set("touched", b"3", expire=SHORT_S)
        client.touch("touched", 600)
        client.set("absolute", b"4", expire=int(time.time()) + SHORT_S)
        raw.wait_durable()
        self.server.kill()
        time.sleep(DOWN_S)
        client, raw = self.start()
        self.assertEqual(client.get_many(["short", "long", "touched", "absolute"]), {"long": b"2", "touched": b"3"})
        left_s = int(raw.meta("mg", "long", "t")[1]["t"])
        self.assertTrue(590 <= left_s <= 600 - DOWN_S + 2, f"{left_s} s are left")
        client.set("new", b"5", expire=1)
        time.sleep(2.5)
        self.assertIsNone(client.get("new"))

    def test_flush_all_stays_and_what_follows_it_too(self):
        client, raw = self.start()
        client.set_many({f"before-{number}": b"1" for number in range(100)})
        client.flush_all()
        client.set("behind", b"2")
        client, raw = self.crash(raw)
        self.assertEqual(client.get_many([f"before-{number}" for number in range(100)] + ["behind"]), {"behind": b"2"})

    def test_flush_all_with_a_delay_comes_after_the_restart(self):
        client, raw = self.start()
        client.set("a", b"1")
        client.flush_all(delay=5)  # Seconds: a busy machine takes more than one to start the server again.
        client, raw = self.crash(raw)
        self.assertEqual(client.get("a"), b"1")
        time.sleep(6.2)
        self.assertIsNone(client.get("a"))

    def test_the_meta_protocol_and_its_marks(self):
        client, raw = self.start()
        raw.meta("ms", "stale", "T100", value=b"1")
        raw.meta("md", "stale", "I", "T30")
        self.assertEqual(raw.meta("ma", "counted", "N0", "J7", "v")[2], b"7")
        raw.meta("ms", "Zm9v", "b", value=b"binary")
        raw.meta("ms", "joined", value=b"b")
        raw.meta("ms", "joined", "MA", value=b"c")
        client, raw = self.crash(raw)
        code, flags, value = raw.meta("mg", "stale", "v", "t")
        self.assertEqual((code, value, "X" in flags, "W" in flags), ("VA", b"1", True, True))
        self.assertIn("Z", raw.meta("mg", "stale", "v")[1])
        self.assertEqual(raw.meta("ma", "counted", "D3", "v")[2], b"10")
        self.assertEqual(raw.meta("mg", "Zm9v", "b", "v")[2], b"binary")
        self.assertEqual(client.get("foo"), b"binary")
        raw.meta("ms", "joined", "MP", value=b"a")
        self.assertEqual(raw.meta("mg", "joined", "v", "k", "s", "Oq")[1:], ({"k": "joined", "s": "3", "O": "q"}, b"abc"))

    def test_items_of_many_chunks(self):
        options = ("-m", "128", "-I", "8m")
        client, raw = self.start(*options)
        large = bytes(number * 7 % 251 for number in range(1 << 16)) * (LARGE_BYTES >> 16)
        client.set("large", large)
        client.append("large", b"tail")
        client, raw = self.crash(raw, *options)
        self.assertEqual(client.get("large"), large + b"tail")
        client.prepend("large", b"head")
        client.set("other", large[::-1])
        client, raw = self.crash(raw, *options)
        self.assertEqual(client.get("large"), b"head" + large + b"tail")
        self.assertEqual(client.get("other"), large[::-1])


class TheServerMayChange(DurableCase):
    def test_more_memory_and_other_threads(self):
        client, raw = self.start("-m", "8", "-t", "1")
        client.set("kept", b"1")
        held = {f"key-{number}": bytes(100_000) for number in range(400)}
        for threads in (4, 3):
            client, raw = self.crash(raw, "-m", "128", "-t", threads)
            self.assertEqual((client.get("kept"), raw.stats()["threads"]), (b"1", str(threads)))
        for key, value in held.items():
            client.set(key, value)
        self.assertEqual(raw.stats()["evictions"], "0")
        client, raw = self.crash(raw, "-m", "128", "-t", "2")
        self.assertEqual(len(client.get_many(held)), len(held))

    def test_less_memory(self):
        client, raw = self.start("-m", "64")
        client.set_many({f"key-{number}": bytes(100_000) for number in range(300)})
        client, raw = self.crash(raw, "-m", "16")
        for number in range(200):
            client.set(f"new-{number}", bytes(100_000))
        self.assertEqual(client.get("new-199"), bytes(100_000))
        client, raw = self.crash(raw, "-m", "16")
        self.assertEqual(client.get("new-199"), bytes(100_000))

    def test_encryption_on_and_off(self):
        certificate = self.certificate()
        client, raw = self.start()
        client.set("a", b"1")
        raw.wait_durable()
        self.server.kill()
        client = self.start_with_tls(certificate)
        self.assertEqual(client.get("a"), b"1")
        client.set("b", b"2")
        self.assertEqual(self.server.close(), 0)
        client, _ = self.start()
        self.assertEqual(client.get_many(["a", "b"]), {"a": b"1", "b": b"2"})

    def certificate(self):
        path = Path(self.folder.name) / "certificate.pem"
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                 "-keyout", f"{path}.key", "-out", str(path)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            self.skipTest("openssl is missing")
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def start_with_tls(self, certificate):
        import ssl
        from server import ServerFailed
        context = ssl.create_default_context(cafile=str(certificate))
        context.check_hostname = False
        try:
            client, _ = self.start(*self.options, "-Z", "-o", f"ssl_chain_cert={certificate},ssl_key={certificate}.key", tls=context)
        except ServerFailed as failure:
            if "not built with SSL" in str(failure) or "SSL/TLS is not" in str(failure):
                self.skipTest("the server was built without TLS")
            raise
        return client


if __name__ == "__main__":
    pymemcache_library.find_or_exit()
    durable_case.main()
