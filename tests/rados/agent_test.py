"""The agent with a peer that is not the library. Invariants: whatever comes over the socket or stands in the shared memory, the agent
refuses it or ends, writes nothing outside of the pool, and gives the pool's lock back."""

import array
import fcntl
import os
import random
import socket
import struct
import subprocess
import sys
import time
import unittest

from rados_cluster import AGENT, CEPH_POOL, RadosTest

MAGIC = 0x41525053
VERSION = 4
CREATE, WRITE, READ_LOCKED, READ, OWNER = range(1, 6)
REPLY_BYTES = 560
STATE_BYTES_OF_SLOT = 8 + 8 + 8 + 8 + 128 * 8 + 520
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2


def memory_bytes():
    state = 16 + 8 + 8 + 520 + 24 + 41 * STATE_BYTES_OF_SLOT
    return -(-state // 4096) * 4096 + 40 * (512 << 10)


class Peer:
    def __init__(self, case, sealed=True, size=None):
        self.socket, far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        memory = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        os.ftruncate(memory, size or memory_bytes())
        os.pwrite(memory, struct.pack("<II", MAGIC, VERSION), 0)
        if sealed:
            fcntl.fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK)
        self.memory = memory
        process = os.pidfd_open(os.getpid())
        numbers = array.array("i", [far_end.fileno(), memory, process])

        def place():
            copies = [fcntl.fcntl(number, fcntl.F_DUPFD, 64) for number in numbers]
            for target, number in enumerate(copies, 3):
                os.dup2(number, target)

        self.agent = subprocess.Popen([str(AGENT)], env=case.environment, preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        far_end.close()
        os.close(process)
        case.addCleanup(self.end)

    def end(self):
        self.socket.close()
        if self.agent.poll() is None:
            self.agent.kill()
        self.agent.wait()
        if self.memory >= 0:
            os.close(self.memory)
            self.memory = -1

    def wait(self):
        return self.agent.wait(30)

    def request(self, name, mode=CREATE, size=20 << 20, lease_ms=5000):
        text = struct.pack("<IIIIIIiIQQ", MAGIC, VERSION, mode, 0, lease_ms, 20000, os.getpid(), 0, size, 0)
        return text + CEPH_POOL.encode().ljust(128, b"\0") + name.encode().ljust(128, b"\0") + bytes(128) + bytes(1024)

    def reply(self):
        self.socket.settimeout(30)
        return self.socket.recv(2 * REPLY_BYTES)

    def code_of(self, reply):
        assert len(reply) == REPLY_BYTES, len(reply)
        return struct.unpack_from("<I", reply, 8)[0]


class Agent(RadosTest):
    def test_memory_that_could_be_taken_away_is_refused(self):
        for arguments in ({"sealed": False}, {"size": 4096}, {"size": memory_bytes() + 4096}):
            self.assertEqual(Peer(self, **arguments).wait(), 64, arguments)

    def test_requests_to_open_that_make_no_sense_are_refused(self):
        chance = random.Random(20)
        sound = Peer(self).request("sense")
        for round in range(40):
            peer = Peer(self)
            text = bytearray(sound)
            if round < 4:
                text = text[: [0, 1, len(sound) - 1, 40][round]] if round != 3 else text + b"x"
            else:
                place = chance.choice([*range(12), 13, 14, 15, *range(28, 32)])  # all but numbers that may be others
                text[place] ^= 1 << chance.randrange(8)
            peer.socket.send(bytes(text) or b"")
            if round == 0:
                peer.socket.close()
            self.assertNotEqual(peer.wait() if round == 0 else self.refused(peer), 0)

    def refused(self, peer):
        """Not 0: the agent said no, or ended without a word."""
        try:
            reply = peer.reply()
        except OSError:
            reply = b""
        if reply:
            code = peer.code_of(reply)
            if code == 0:
                return 0
        peer.socket.close()
        return peer.wait() or 1

    def test_slots_that_make_no_sense_end_the_agent_and_free_the_lock(self):
        chance = random.Random(21)
        messages = [b"", b"x", struct.pack("<II", MAGIC, 41), struct.pack("<II", MAGIC ^ 1, 0), struct.pack("<II", MAGIC, 0xFFFFFFFF),
                    struct.pack("<II", MAGIC, 0), struct.pack("<III", MAGIC, 0, 0)]
        messages += [chance.randbytes(8) for _ in range(4)]
        for message in messages:
            peer = Peer(self)
            peer.socket.send(peer.request("slots"))
            reply = peer.reply()
            self.assertEqual(peer.code_of(reply), 0, reply[16:200])
            peer.socket.send(message) if message else peer.socket.close()
            self.assertEqual(peer.wait(), 0)
        # The pool was never published: nothing of it is left.
        self.assertEqual(self.stillpoint("info", f"rados://{CEPH_POOL}/slots").returncode, 66)

    def test_creations_that_are_cut_off_leave_nothing_to_a_smaller_one(self):
        """The second is killed while it removes what the first has left."""
        first, middle = "stillpoint.leftover.00000000", "stillpoint.leftover.00000002"
        large = Peer(self)
        large.socket.send(large.request("leftover", size=8 << 30))
        self.assertEqual(large.code_of(large.reply()), 0)
        self.rados("put", middle, __file__)
        head = self.rados("getxattr", first, "stillpoint")
        self.kill(large)
        small = Peer(self)
        small.socket.send(small.request("leftover", size=4 << 20))
        deadline = time.monotonic() + 30
        while self.rados("getxattr", first, "stillpoint") == head and time.monotonic() < deadline:
            pass
        self.kill(small)
        self.assertIn(middle, self.rados("ls"), "it was too late to cut it off")
        last = Peer(self)
        last.socket.send(last.request("leftover", size=4 << 20))
        self.assertEqual(last.code_of(last.reply()), 0)
        self.assertNotIn(middle, self.rados("ls"))
        self.assertIn(f"size_bytes={4 << 20}\n", self.rados("getxattr", first, "stillpoint"))

    def rados(self, *words):
        return subprocess.run(["rados", "-p", CEPH_POOL, *words], env=self.cluster.environment(), capture_output=True, text=True,
                              check=True, timeout=60).stdout

    def kill(self, peer):
        peer.agent.kill()
        peer.agent.wait()

    def test_the_size_of_the_layout_is_the_librarys(self):
        self.assertEqual(sys.byteorder, "little")
        peer = Peer(self)
        peer.socket.send(peer.request("layout", mode=READ))
        self.assertEqual(peer.code_of(peer.reply()), 4)  # pool_missing


if __name__ == "__main__":
    unittest.main()
