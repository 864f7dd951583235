"""Servers that are killed under load, whose pool lies elsewhere at every other start."""

import random
import threading
import time

from pool_address import address_of


class MortalClient(threading.Thread):
    """Changes what is its own until the server dies. A subclass connects, and changes; a wrong answer is an AssertionError, which
    `failure` keeps."""

    def __init__(self, seed):
        super().__init__(daemon=True)
        self.random, self.failure, self.server = random.Random(seed), None, None

    def connect(self, server):
        raise NotImplementedError

    def change(self, connection):
        raise NotImplementedError

    def follow(self, server):
        self.server = server
        threading.Thread.__init__(self, daemon=True)
        self.start()

    def run(self):
        try:
            connection = self.connect(self.server)
            while True:
                self.change(connection)
        except OSError:
            return
        except AssertionError as failure:
            self.failure = failure


def killed_and_started(case, server, clients, start, kills, pick, before_kill=lambda server: None):
    """Yields the server after each kill and restart. `start(taken)` starts it; `taken`: an address where its pool cannot lie, or None.
    `case` checks the pool."""
    for kill in range(kills):
        for client in clients:
            client.follow(server)
        time.sleep(pick.uniform(0.05, 0.6))
        before_kill(server)
        place = address_of(server.process.pid)
        server.kill()
        for client in clients:
            client.join()
            case.assertIsNone(client.failure)
        case.check()
        server = start(place if kill % 2 == 0 else None)
        case.assertEqual(address_of(server.process.pid) == place, kill % 2 != 0)
        yield server
