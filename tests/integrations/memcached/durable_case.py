"""The shared part of the tests of the durable memcached: a pool of their own, a server on it, a crash, and a restart."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

import pymemcache_library

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parents[3] / "build"))
SERVER = Path(os.environ.get("MEMCACHED_DURABLE", BUILD / "integrations/memcached/durable/memcached-durable"))


def main():
    """Runs the tests of the calling file; exit code 77, a skip, where the server or pymemcache is missing."""
    pymemcache_library.find_or_exit()
    if not SERVER.exists():
        print(f"skipped: {SERVER} is not there: python3 integrations/memcached/build.py")
        sys.exit(pymemcache_library.EX_SKIP)
    unittest.main()


class DurableCase(unittest.TestCase):
    """A test with a pool; `options` are those of every start, unless a start says others."""

    options = ("-m", "64", "-t", "2")

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="memcached-", dir=BUILD)
        self.addCleanup(self.folder.cleanup)
        self.pool = Path(self.folder.name) / "cache.pool"
        self.server = None
        self.addCleanup(self.end)

    def end(self):
        if self.server and self.server.process and self.server.runs():
            self.server.process.kill()
            self.server.process.wait()

    def start(self, *options, tls=None, pool_options="interval_ms=20 durability=process"):
        """The next life. Returns a client of pymemcache's and a raw connection; the latter None where TLS is on."""
        from pymemcache.client.base import Client
        from raw_connection import RawConnection
        from server import Server
        self.server = Server(SERVER, options or self.options, self.pool, pool_options).start().wait_until_it_listens()
        client = Client(self.server.address, connect_timeout=20, timeout=20, no_delay=True, default_noreply=False, tls_context=tls)
        self.addCleanup(client.close)
        if tls:
            return client, None
        raw = RawConnection(self.server.address)
        self.addCleanup(raw.close)
        return client, raw

    def crash(self, raw, *options, **others):
        """Waits until all is durable, kills, starts again."""
        raw.wait_durable()
        self.server.kill()
        return self.start(*options, **others)
