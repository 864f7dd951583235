"""rrdcached by the engine breeze: an update that was answered is pending or in its file after SIGKILL, wherever the pool is mapped next.

Needs `python3 integrations/rrdcached/build.py`; exit code 77, a skip, where that was not built.
    breeze_test.py [--kills N] [--seed N]        # more kills than the few of `make test-all`
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from daemon import Connection, Daemon

sys.path.insert(1, str(Path(__file__).resolve().parent.parent))
from killed_server import MortalClient, killed_and_started  # noqa: E402  (it lies beside this folder)
from pool_address import environment_without  # noqa: E402

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parents[3] / "build"))
PROGRAM = BUILD.joinpath("integrations", "rrdcached", "breeze", "rrdcached")
RRDTOOL = BUILD.joinpath("integrations", "rrdcached", "stock", "rrdtool")
TOOL = BUILD / "bin/stillpoint"
CLIENTS, FILES, ROWS = 3, 4, 20_000
START = 1_000_000_000
OPTIONS = argparse.Namespace(kills=6, seed=1)


def stamp_of(value):
    return int(value.split(":")[0])


class File:
    """A file of one client, as the client knows it: `kept` has the values that were acknowledged and not forgotten; `open` is what `kept`
    may be instead, by the change that was under way."""

    def __init__(self, name):
        self.name, self.stamp = name, START
        self.kept, self.open = [], []
        self.flushed = START  # what is in the file for certain
        self.is_torn = False  # killed while it was written: RRDtool's own files are not atomic

    def new_values(self, pick, count):
        values = []
        for _ in range(count):
            self.stamp += pick.choice((1, 1, 1, 5))
            values.append(f"{self.stamp}:{pick.randrange(10 ** pick.randrange(1, 7))}")
        return values


class Client(MortalClient):
    """Has files of its own, and changes one that all clients change."""

    def __init__(self, number, seed):
        super().__init__(seed)
        self.files = [File(f"c{number}-{index}.rrd") for index in range(FILES)]

    def connect(self, server):
        return Connection(server)

    def change(self, connection):
        pick = self.random
        file = pick.choice(self.files)
        kind = pick.choice(["update"] * 14 + ["batch"] * 3 + ["pending", "flush", "forget", "refused", "shared", "shared"])
        if kind == "update":
            values = file.new_values(pick, pick.choice((1, 1, 2, 5)))
            file.open = [file.kept + values]
            assert connection.ask("UPDATE", file.name, *values) == (0, f"errors, enqueued {len(values)} value(s).", [])
            file.kept = file.open[0]
        elif kind == "batch":
            values = file.new_values(pick, pick.randrange(2, 20))
            file.open = [file.kept + values[:count + 1] for count in range(len(values))]
            assert connection.batch([f"UPDATE {file.name} {value}" for value in values]) == 0
            file.kept = file.open[-1]
        elif kind == "pending":
            self.expect_pending(file, connection.pending(file.name))
        elif kind == "flush" and file.kept:
            is_torn, file.is_torn = file.is_torn, True
            status, message, _ = connection.ask("FLUSH", file.name)
            assert status == 0 or "Nothing to flush" in message, message
            file.flushed, file.is_torn = stamp_of(file.kept[-1]), is_torn
        elif kind == "forget":
            file.open = [[value for value in file.kept if stamp_of(value) <= file.flushed]]
            connection.ask("FORGET", file.name)
            file.kept = file.open[0]
        elif kind == "refused":
            assert connection.ask("UPDATE", file.name, f"{START}:1")[0] == -1
        elif kind == "shared":
            connection.ask("UPDATE", "shared.rrd", f"{time.time():.6f}:1")
            connection.ask(pick.choice(("FLUSH", "FLUSH", "FORGET", "SUSPEND", "RESUME")), "shared.rrd")
        file.open = []

    @staticmethod
    def expect_pending(file, pending):
        expected = [value for value in file.kept if stamp_of(value) > file.flushed]
        assert pending == expected, f"{file.name}: pending {pending}, acknowledged {expected}"

    def compare(self, connection):
        """After a restart: every value is in its file or pending, as it was acknowledged, and none is in both."""
        for file in self.files:
            facts = dict(line.split(" ", 1) for line in connection.ask("INFO", file.name)[2])
            last = int(facts["last_update"].split()[-1])
            pending = connection.pending(file.name)
            allowed = [file.kept, *file.open]
            fitting = [kept for kept in allowed if [value for value in kept if stamp_of(value) > last] == pending]
            assert fitting, f"{file.name}: last update {last}, pending {pending}; acknowledged or under way: {allowed}"
            assert last >= file.flushed, f"{file.name}: flushed to {file.flushed}, but its last update is {last}"
            file.kept, file.open, file.flushed = fitting[0], [], last

    def compare_rows(self, connection):
        for file in self.files:
            connection.ask("FLUSH", file.name)
            rows = dict(line.split(": ") for line in connection.ask("FETCH", file.name, "LAST", START, file.stamp)[2]
                        if line.split(": ")[0].isdigit())
            for value in [value for value in file.kept if stamp_of(value) > file.stamp - ROWS]:
                found = float(rows[value.split(":")[0]])
                assert file.is_torn or found == float(value.split(":")[1]), f"{file.name}: {value} was acknowledged, the file has {found}"


class BreezeRrdcached(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="rrdcached-breeze-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else BUILD))
        self.addCleanup(shutil.rmtree, self.folder)
        self.pool, self.medium = self.folder / "updates.pool", "memory" if self.folder.parts[1:3] == ("dev", "shm") else "file"

    def create(self, *names):
        for name in names:
            subprocess.run([RRDTOOL, "create", self.folder / name, "--start", str(START), "--step", "1", "DS:v:GAUGE:1000000:U:U",
                            f"RRA:LAST:0:1:{ROWS}"], check=True)

    def daemon(self, *options, taken=None, pool_mib=32):
        """Started; `taken`: an address, where the pool cannot lie."""
        environment = {"STILLPOINT_MEDIUM": self.medium} | (environment_without(taken, self.folder) if taken else {})
        daemon = Daemon(PROGRAM, self.folder, ["--pool", self.pool, "--pool-mib", pool_mib, "-w", 3600, *options], environment)
        self.addCleanup(daemon.end)
        return daemon

    def check(self):
        done = subprocess.run([TOOL, "check", self.pool], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_was_acknowledged_is_there_after_a_kill(self):
        self.kill_and_compare()

    def test_what_was_acknowledged_is_there_after_a_kill_on_a_file(self):
        self.medium = "file"
        self.kill_and_compare()

    def kill_and_compare(self):
        pick = random.Random(OPTIONS.seed)
        clients = [Client(number, pick.random()) for number in range(CLIENTS)]
        self.create("shared.rrd", *(file.name for client in clients for file in client.files))
        for daemon in killed_and_started(self, self.daemon(), clients, lambda taken: self.daemon(taken=taken), OPTIONS.kills, pick,
                                         Daemon.must_run):
            connection = Connection(daemon)
            for client in clients:
                client.compare(connection)
        for client in clients:
            client.compare_rows(connection)

    def test_the_end_of_a_daemon_keeps_updates_or_writes_them(self):
        self.create("a.rrd", "b.rrd")
        daemon = self.daemon()
        connection = Connection(daemon)
        for name in ("a.rrd", "b.rrd"):
            self.assertEqual(connection.ask("UPDATE", name, f"{START + 1}:1", f"{START + 2}:2")[0], 0)
        self.assertEqual(daemon.close(), 0)
        self.check()
        daemon = self.daemon("-F")  # writes what it finds, as after a journal's replay, and at its end what is left
        self.assertEqual(daemon.close(), 0)
        self.check()
        connection = Connection(self.daemon())
        self.assertEqual(connection.pending("a.rrd"), [])
        self.assertEqual(connection.ask("UPDATE", "a.rrd", f"{START + 2}:2")[0], -1)
        self.assertEqual(connection.ask("UPDATE", "a.rrd", f"{START + 3}:2")[0], 0)

    def test_values_that_had_reached_the_file_before_the_kill_are_dropped(self):
        self.create("a.rrd")
        daemon = self.daemon()
        values = [f"{START + number}:{number}" for number in range(1, 6)]
        self.assertEqual(Connection(daemon).ask("UPDATE", "a.rrd", *values)[0], 0)
        daemon.kill()
        subprocess.run([RRDTOOL, "update", self.folder / "a.rrd", *values[:3]], check=True)
        connection = Connection(self.daemon())
        self.assertEqual(connection.pending("a.rrd"), values[3:])
        self.assertEqual(connection.ask("FLUSH", "a.rrd")[0], 0)
        rows = connection.ask("FETCH", "a.rrd", "LAST", START, START + 5)[2]
        self.assertEqual([float(row.split(": ")[1]) for row in rows[-6:-1]], [1, 2, 3, 4, 5])

    def test_an_update_with_a_refused_value_keeps_the_values_before_it(self):
        self.create("a.rrd")
        daemon = self.daemon()
        connection = Connection(daemon)
        self.assertEqual(connection.ask("UPDATE", "a.rrd", f"{START + 1}:1", f"{START + 1}:2", f"{START + 3}:3")[0], -1)
        daemon.kill()
        self.check()
        self.assertEqual(Connection(self.daemon()).pending("a.rrd"), [f"{START + 1}:1"])

    def test_a_full_pool_refuses_updates_until_some_are_written(self):
        self.create("a.rrd", "b.rrd")
        daemon = self.daemon(pool_mib=4)
        connection = Connection(daemon)
        kept, answer = [], (0, "", [])
        while answer[0] == 0:
            value = f"{START + len(kept) + 1}:{len(kept)}"
            answer = connection.ask("UPDATE", "a.rrd", value)
            kept += [value] if answer[0] == 0 else []
        self.assertIn("no room for an object", answer[1])
        self.assertGreater(len(kept), 5000)
        self.assertEqual(connection.ask("FLUSH", "a.rrd")[0], 0)
        give_up = time.monotonic() + 20  # what was dropped is freed in the background
        while connection.ask("UPDATE", "b.rrd", f"{START + 1}:1")[0] != 0:
            self.assertLess(time.monotonic(), give_up)
        daemon.kill()
        self.check()
        connection = Connection(self.daemon())
        self.assertEqual((connection.pending("a.rrd"), connection.pending("b.rrd")), ([], [f"{START + 1}:1"]))

    def test_many_values_of_one_file_are_forgotten_at_once(self):
        self.create("a.rrd")
        daemon = self.daemon()
        connection = Connection(daemon)
        for first in range(1, 20_001, 1000):
            self.assertEqual(connection.batch([f"UPDATE a.rrd {START + number}:{number}" for number in range(first, first + 1000)]), 0)
        daemon.kill()
        daemon = self.daemon()
        connection = Connection(daemon)
        self.assertEqual(connection.pending("a.rrd"), [f"{START + number}:{number}" for number in range(1, 20_001)])
        self.assertEqual(connection.ask("FORGET", "a.rrd")[1], "Gone!")
        daemon.kill()
        self.check()
        self.assertEqual(Connection(self.daemon()).pending("a.rrd"), [])

    def test_a_pool_excludes_a_journal_and_a_path_without_a_slash(self):
        for words in (["--pool", self.pool, "-j", self.folder], ["--pool", "updates.pool"]):
            done = subprocess.run([PROGRAM, "-g", "-l", f"unix:{self.folder}/socket", *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 6)
            self.assertIn("--pool takes a path that begins with a slash, and excludes -j", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=OPTIONS.kills)
    parser.add_argument("--seed", type=int, default=OPTIONS.seed)
    OPTIONS, rest = parser.parse_known_args()
    if not PROGRAM.exists():
        print(f"{PROGRAM} is not there: python3 integrations/rrdcached/build.py")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])
