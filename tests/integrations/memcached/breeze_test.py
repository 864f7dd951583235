"""memcached by the engine breeze: what a client got a reply for is there after SIGKILL, wherever the pool is mapped next.

Needs `python3 integrations/memcached/build.py --variants breeze`; exit code 77, a skip, where that was not built.
    breeze_test.py [--kills N] [--seed N]        # more kills than the few of `make test`
"""

import argparse
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import weakref
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parent.parent))
from killed_server import MortalClient, killed_and_started  # noqa: E402  (it lies beside this folder)
from pool_address import address_of, environment_without  # noqa: E402
from server import Server  # noqa: E402

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parents[3] / "build"))
PROGRAM = BUILD.joinpath("integrations", "memcached", "breeze", "memcached-durable")
TOOL = BUILD / "bin/stillpoint"
CLIENTS, KEYS = 3, 150
OPTIONS = argparse.Namespace(kills=4, seed=1)


class Connection:
    def __init__(self, server):
        self.socket = socket.create_connection(server.address, 20)
        weakref.finalize(self, self.socket.close)
        self.rest = b""

    def line(self):
        while b"\r\n" not in self.rest:
            more = self.socket.recv(65536)
            if not more:
                raise OSError("the server closed the connection")
            self.rest += more
        found, self.rest = self.rest.split(b"\r\n", 1)
        return found

    def ask(self, *words, value=None):
        text = " ".join(map(str, words)).encode() + b"\r\n"
        self.socket.sendall(text if value is None else text + value + b"\r\n")
        return self.line()

    def get(self, key):
        """(value, flags, CAS), or None."""
        head = self.ask("gets", key).split()
        if head == [b"END"]:
            return None
        size = int(head[3])
        while len(self.rest) < size + 7:
            self.rest += self.socket.recv(65536)
        value, self.rest = self.rest[:size], self.rest[size + 7:]
        return value, int(head[2]), int(head[4])

    def stats(self):
        found, line = {}, self.ask("stats").decode()
        while line != "END":
            _, name, value = line.split(" ", 2)
            found[name], line = value, self.line().decode()
        return found


class Client(MortalClient):
    """Has keys of its own. `known` has what was acknowledged: value, flags, time of expiry or 0. The change that was under way lies in
    `open`: (key, what the key has if it took place)."""

    def __init__(self, number, seed):
        super().__init__(seed)
        self.number, self.known, self.open, self.cas = number, {}, None, 0

    def connect(self, server):
        return Connection(server)

    def change(self, connection):
        pick = self.random
        key = f"c{self.number}-{pick.randrange(KEYS)}"
        before = self.known.get(key)
        kind = pick.choice(["set"] * 5 + ["delete", "append", "incr", "touch", "gets"])
        flags, expiry = pick.choice((0, 77)), pick.choice((0, int(time.time()) + 5000))
        if kind == "gets":
            found = connection.get(key)
            assert (found and found[:2]) == (before and before[:2]), (key, found, before)
            self.cas = max(self.cas, found[2] if found else 0)
            return
        if kind == "set" or before is None:
            value = b"%d" % pick.randrange(10**12) if pick.random() < 0.3 else bytes([pick.randrange(97, 122)]) * pick.randrange(1, 3000)
            self.expect(key, (value, flags, expiry))
            reply = connection.ask("set", key, flags, expiry, len(value), value=value)
            assert reply == b"STORED", reply
        elif kind == "delete":
            self.expect(key, None)
            assert connection.ask("delete", key) == b"DELETED"
        elif kind == "touch":
            self.expect(key, (*before[:2], expiry))
            assert connection.ask("touch", key, expiry) == b"TOUCHED"
        elif kind == "incr" and before[0].strip().isdigit() and len(before[0]) < 15:
            value = b"%d" % (int(before[0]) + 1)
            self.expect(key, (value.ljust(len(before[0])), *before[1:]))
            assert connection.ask("incr", key, 1) == value
        else:
            self.expect(key, (before[0] + b"++", *before[1:]))
            assert connection.ask("append", key, 0, 0, 2, value=b"++") == b"STORED"
        self.known[key] = self.open[1]
        self.open = None

    def expect(self, key, state):
        self.open = (key, state)

    def compare(self, connection):
        """After a restart. Returns the highest CAS number."""
        highest = 0
        for number in range(KEYS):
            key = f"c{self.number}-{number}"
            found = connection.get(key)
            reply = connection.ask("mg", key, "t").split()
            expiry = None if reply == [b"EN"] else int(reply[1][1:])
            allowed = [self.known.get(key)] + ([self.open[1]] if self.open and self.open[0] == key else [])
            fitting = [one for one in allowed if (one and one[:2]) == (found and found[:2]) and self.expires(one, expiry)]
            assert fitting, f"{key}: found {found}, expiry {expiry}; acknowledged or under way: {allowed}"
            self.known[key] = fitting[0]
            highest = max(highest, found[2] if found else 0)
        self.open = None
        return highest

    @staticmethod
    def expires(state, left):
        if state is None or left is None:
            return state is left
        return left == -1 if state[2] == 0 else abs(state[2] - time.time() - left) < 5


class BreezeMemcached(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="memcached-breeze-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else BUILD))
        self.addCleanup(shutil.rmtree, self.folder)
        self.pool = self.folder / "cache.pool"

    def server(self, *options, taken=None):
        """Started; `taken`: an address, where the pool cannot lie."""
        environment = environment_without(taken, self.folder) if taken else {}
        server = Server(PROGRAM, ["-m", "64", "-t", "2", *options], self.pool, None, environment=environment)
        self.addCleanup(server.__exit__)
        return server.__enter__()

    def check(self):
        done = subprocess.run([TOOL, "check", self.pool], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_was_acknowledged_is_there_after_a_kill(self):
        pick = random.Random(OPTIONS.seed)
        clients = [Client(number, pick.random()) for number in range(CLIENTS)]
        for server in killed_and_started(self, self.server(), clients, lambda taken: self.server(taken=taken), OPTIONS.kills, pick):
            connection = Connection(server)
            highest = max(client.compare(connection) for client in clients)
            self.assertLess(max(client.cas for client in clients), 1 << 62)
            self.assertEqual(connection.ask("set", "fresh", 0, 0, 1, value=b"x"), b"STORED")
            self.assertGreater(connection.get("fresh")[2], max(highest, *(client.cas for client in clients)))
            kept = sum(state is not None for client in clients for state in client.known.values())
            self.assertEqual(int(connection.stats()["curr_items"]), kept + 1)

    def test_a_server_ends_cleanly_under_load(self):
        server = self.server()
        clients = [Client(number, number) for number in range(CLIENTS)]
        for client in clients:
            client.follow(server)
        time.sleep(0.3)
        self.assertEqual(server.close(), 0)
        for client in clients:
            client.join()
            self.assertIsNone(client.failure)
        self.check()
        connection = Connection(self.server())
        for client in clients:
            client.compare(connection)

    def test_a_table_that_was_growing_is_whole(self):
        server = self.server("-o", "hashpower=14")
        connection = Connection(server)
        count = 30_000  # the table of 2^14 grows at 24,577
        connection.socket.sendall(b"".join(b"set k%d 0 0 5 noreply\r\n%05d\r\n" % (number, number) for number in range(count)))
        while int(connection.stats()["curr_items"]) < 25_000:
            pass
        place = address_of(server.process.pid)
        server.kill()
        self.check()
        connection = Connection(self.server("-o", "hashpower=14", taken=place))
        kept = int(connection.stats()["curr_items"])
        self.assertGreaterEqual(kept, 25_000)
        for number in range(kept):
            self.assertEqual(connection.get(f"k{number}")[0], b"%05d" % number)
        self.assertIsNone(connection.get(f"k{kept}"))

    def test_flush_and_expiry_hold_across_a_kill(self):
        server = self.server()
        connection = Connection(server)
        for key, expiry in (("flushed", 0), ("short", 0), ("late", 0)):
            self.assertEqual(connection.ask("set", key, 0, expiry, 1, value=b"x"), b"STORED")
        time.sleep(1.1)  # flush_all is exact to a second
        self.assertEqual(connection.ask("flush_all"), b"OK")
        self.assertEqual(connection.ask("set", "short", 0, 2, 1, value=b"x"), b"STORED")
        self.assertEqual(connection.ask("set", "late", 0, 100, 1, value=b"x"), b"STORED")
        self.assertEqual(connection.ask("ms", "meta", 1, value=b"m"), b"HD")
        self.assertEqual(connection.ask("md", "meta", "I", "T50"), b"HD")
        server.kill()
        time.sleep(2.1)
        connection = Connection(self.server())
        self.assertIsNone(connection.get("flushed"))
        self.assertIsNone(connection.get("short"))
        self.assertEqual(connection.get("late")[0], b"x")
        self.assertIn(b"X", connection.ask("mg", "meta", "s").split())

    def test_a_full_pool_evicts_and_a_reader_keeps_what_it_reads(self):
        server = self.server()
        reader, writer = Connection(server), Connection(server)
        self.assertEqual(writer.ask("set", "big", 0, 0, 900_000, value=b"a" * 900_000), b"STORED")
        reader.socket.sendall(b"get big\r\n" * 8)  # more than the socket takes: the server holds the item
        time.sleep(0.2)
        self.assertEqual(writer.ask("set", "big", 0, 0, 900_000, value=b"b" * 900_000), b"STORED")
        for number in range(7000):
            size = 20_000 if number % 2 else 500
            self.assertEqual(writer.ask("set", f"k{number}", 0, 0, size, value=b"c" * size), b"STORED", number)
        values = []
        for _ in range(8):
            head, value = reader.line(), reader.line()
            self.assertEqual((head, len(value), len(set(value))), (b"VALUE big 0 900000", 900_000, 1))
            self.assertEqual(reader.line(), b"END")
            values.append(value[:1])
        self.assertEqual((values[0], values), (b"a", sorted(values)))
        self.assertGreater(int(writer.stats()["evictions"]), 0)
        kept = int(writer.stats()["curr_items"])
        server.kill()
        self.check()
        self.assertAlmostEqual(int(Connection(self.server()).stats()["curr_items"]), kept, delta=20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=OPTIONS.kills)
    parser.add_argument("--seed", type=int, default=OPTIONS.seed)
    OPTIONS, rest = parser.parse_known_args()
    if not PROGRAM.exists():
        print(f"{PROGRAM} is not there: python3 integrations/memcached/build.py --variants breeze")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])
