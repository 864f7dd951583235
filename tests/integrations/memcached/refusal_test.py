"""A pool that this memcached cannot continue is refused with a message and an exit code, and is left as it is.

Invariants: the message names the pool and says what to do; the pool opens afterwards with the options that it was made with, and has
its items.
"""

import shutil
import struct
import subprocess

import durable_case
import pymemcache_library
from durable_case import SERVER, DurableCase

BASE = ("-m", "64", "-t", "2")
END_S_MAX = 30

# Another layout: each item would lie elsewhere, or be found elsewhere.
LAYOUTS = {
    "growth factor": ("-f", "1.5"),
    "smallest chunk": ("-n", "96"),
    "largest item": ("-I", "4m"),
    "largest chunk": ("-o", "slab_chunk_max=256"),
    "slab sizes": ("-o", "slab_sizes=100-200-400-1000"),
    "no CAS": ("-C",),
    "hash algorithm": ("-o", "hash_algorithm=jenkins"),
    "LRU without segments": ("-o", "no_lru_maintainer"),
}
# Options that cannot be durable together with a pool.
EXCLUDED = {
    "memory file": ("-e", "{folder}/memory"),
    "large pages": ("-L",),
    "locked memory": ("-k",),
    "external storage": ("-o", "ext_path={folder}/external:64m"),
}


class Refusals(DurableCase):
    options = BASE

    def refused(self, *options, pool=None):
        """Starts it, which must end by itself. Returns (exit code, message)."""
        from server import HOST, free_port
        words = [str(SERVER), "-l", HOST, "-p", str(free_port()), "-u", "root", *options, "-o", f"pool={pool or self.pool}",
                 "-o", "pool_options=interval_ms=20 durability=process"]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=END_S_MAX)
        except subprocess.TimeoutExpired:
            self.fail(f"it was not refused: {' '.join(options)}")
        self.assertGreater(done.returncode, 0, f"{options}: ended by a signal, or as if nothing had happened: {done.stderr}")
        self.assertTrue(done.stderr.strip(), f"{options}: refused without a word")
        return done.returncode, done.stderr

    def made(self, *options):
        """A pool with an item, and not in use."""
        client, raw = self.start(*(options or BASE))
        client.set("kept", b"1")
        raw.wait_durable()
        self.server.kill()

    def assert_intact(self, *options):
        client, _ = self.start(*(options or BASE))
        self.assertEqual(client.get("kept"), b"1")
        self.server.kill()

    def test_another_layout(self):
        self.made()
        for name, options in LAYOUTS.items():
            with self.subTest(name):
                _, message = self.refused(*BASE, *options)
                self.assertIn(str(self.pool), message)
                self.assertIn("same options", message)
        self.assert_intact()

    def test_the_layout_of_the_pool_from_the_other_side(self):
        self.made(*BASE, "-C")
        self.refused(*BASE)
        self.assert_intact(*BASE, "-C")

    def test_what_a_pool_excludes(self):
        self.made()
        for name, options in EXCLUDED.items():
            with self.subTest(name):
                self.refused(*BASE, *(word.format(folder=self.folder.name) for word in options))
        self.assert_intact()

    def test_options_that_would_leave_the_cache_without_a_pool(self):
        messages = {"pool": "pool argument", "pool_options": "pool_options argument", "pool_options=quiet": "needs -o pool"}
        for option, missing in messages.items():
            with self.subTest(option):
                done = subprocess.run([str(SERVER), "-u", "root", "-o", option], capture_output=True, text=True, timeout=10, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(missing, done.stderr)

    def test_a_pool_that_another_server_uses(self):
        client, raw = self.start()
        client.set("kept", b"1")
        _, message = self.refused(*BASE)
        self.assertIn(str(self.pool), message)
        client, raw = self.crash(raw)
        self.assertEqual(client.get("kept"), b"1")

    def test_another_version_of_memcached(self):
        """The server's version is the first word of what the pool keeps of its making; another one is put there."""
        self.made()
        version = subprocess.run([str(SERVER), "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
        self.replace_in_program(version)
        self.assert_intact()

    def replace_in_program(self, version):
        """A copy of the server in which the version is another: every place of it, of the same length."""
        other = version[:-1] + chr((ord(version[-1]) - ord("0") + 1) % 10 + ord("0"))
        copy = SERVER.with_name(f"memcached-other-version-{self.folder.name.rpartition('-')[2]}")
        self.addCleanup(copy.unlink, missing_ok=True)
        shutil.copy2(SERVER, copy)
        text = copy.read_bytes()
        self.assertIn(version.encode() + b" with ", text)
        copy.write_bytes(text.replace(version.encode() + b" with ", other.encode() + b" with "))
        from server import HOST, free_port
        done = subprocess.run([str(copy), "-l", HOST, "-p", str(free_port()), "-u", "root", *BASE, "-o", f"pool={self.pool}"],
                              capture_output=True, text=True, check=False, timeout=END_S_MAX)
        self.assertGreater(done.returncode, 0)
        self.assertIn(version, done.stderr)

    def test_files_that_are_no_pools(self):
        files = {"text": b"not a pool\n" * 1000, "zeroes": bytes(1 << 20), "numbers": struct.pack("<1000Q", *range(1000))}
        for name, content in files.items():
            with self.subTest(name):
                path = self.pool.with_name(name)
                path.write_bytes(content)
                _, message = self.refused(*BASE, pool=path)
                self.assertIn(str(path), message)
                self.assertEqual(path.read_bytes(), content)

    def test_a_folder_that_is_not_there(self):
        _, message = self.refused(*BASE, pool="/nonexistent/folder/cache.pool")
        self.assertIn("/nonexistent/folder", message)

    def test_a_damaged_pool(self):
        """A pool whose head is overwritten: refused, or, where a copy of it is whole, continued with every item."""
        self.made()
        with open(self.pool, "r+b") as file:
            file.write(bytes(1 << 16))
        _, message = self.refused(*BASE)
        self.assertIn(str(self.pool), message)

    def test_options_of_the_runtime_that_it_does_not_have(self):
        from server import HOST, free_port
        words = [str(SERVER), "-l", HOST, "-p", str(free_port()), "-u", "root", "-o", f"pool={self.pool}",
                 "-o", "pool_options=no_such_option=1"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=END_S_MAX)
        self.assertGreater(done.returncode, 0)
        self.assertIn("no_such_option", done.stderr)


if __name__ == "__main__":
    pymemcache_library.find_or_exit()
    durable_case.main()
