"""`stillpoint exporter` and `stats --prometheus`: the format, pools that come and go, and clients that behave badly.

- What is printed is read by Prometheus's own parser, with a type and a help text for each name.
- A path with quotes, backslashes, newlines and bytes that are no UTF-8 stays one label.
- Half a request, a long one and a client that takes no answer do not keep others waiting.
"""

import http.client
import importlib.util
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import unittest

from command_line import COUNTER, SMALL, TOOL, CommandLineTest

PACKAGED = "/usr/lib/python3/dist-packages"  # Debian's python3-prometheus-client, where another Python runs this test.


def parser():
    """Prometheus's parser of this format; None where it is not installed."""
    if importlib.util.find_spec("prometheus_client") is None and os.path.isdir(f"{PACKAGED}/prometheus_client"):
        sys.path.append(PACKAGED)
    if importlib.util.find_spec("prometheus_client") is None:
        return None
    from prometheus_client.parser import text_string_to_metric_families
    return text_string_to_metric_families


class Exporter(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.processes = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()

    def start(self, *words):
        process = subprocess.Popen([os.fspath(word) for word in (TOOL, *words)], cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def open_pool(self, pool, *options):
        process = self.start("run", "--quiet", "--pool", pool, *SMALL, *options, "--", COUNTER, "wait")
        self.assertEqual([process.stdout.readline() for _ in range(2)][1], "ready\n")
        return process

    def exporter(self, *pools):
        process = self.start("exporter", "--listen", "127.0.0.1:0", *pools)
        line = process.stdout.readline()
        self.assertRegex(line, r"^http://127\.0\.0\.1:\d+/metrics\n$")
        self.port = int(line.split(":")[2].split("/")[0])
        return process

    def ask(self, path="/metrics", method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8")
        connection.close()
        return answer, text

    def families(self, text):
        """name -> {(sorted labels): value}, by Prometheus's parser."""
        read = parser()
        if read is None:
            self.skipTest("python3-prometheus-client is not installed")
        found = {}
        for family in read(text):
            self.assertIn(family.type, ("gauge", "counter"), family.name)
            self.assertTrue(family.documentation, family.name)
            samples = {tuple(sorted(sample.labels.items())): sample.value for sample in family.samples}
            self.assertEqual(len(samples), len(family.samples), f"{family.name} has a sample twice")
            self.assertNotIn(family.name, found)
            found[family.name] = samples
        return found

    def open_of(self, text):
        return {dict(labels)["pool"]: value for labels, value in self.families(text)["stillpoint_pool_open"].items()}

    def test_tells_the_figures_of_stats_in_base_units(self):
        self.open_pool(self.pool)
        self.exporter(self.pool)
        answer, text = self.ask()
        self.assertEqual((answer.status, answer.getheader("Content-Type")), (200, "text/plain; version=0.0.4; charset=utf-8"))
        printed = self.stillpoint("stats", "--prometheus", self.pool).stdout
        for one in (text, printed):
            found = self.families(one)
            label = (("pool", str(self.pool)),)
            self.assertEqual(found["stillpoint_interval_seconds"][label], 0.1)
            self.assertGreaterEqual(found["stillpoint_checkpoints"][label], 1)
            self.assertEqual(found["stillpoint_program_info"],
                             {(("engine", "pmthreads"), ("pool", str(self.pool)), ("program", "cli_counter")): 1})
            self.assertLess(abs(found["stillpoint_started_timestamp_seconds"][label] - time.time()), 60)
            self.assertLess(abs(found["stillpoint_last_durable_timestamp_seconds"][label] - time.time()), 60)
            self.assertIn("stillpoint_tracker", found)
            self.assertNotIn("stillpoint_objects_now", found)  # another engine's
        head, body = self.ask(method="HEAD")
        self.assertEqual((head.status, body), (200, ""))
        self.assertEqual(self.ask("/healthz")[1], "ok\n")
        self.assertEqual(self.ask("/")[0].status, 404)

    def test_pools_come_and_go(self):
        pattern, late = str(self.folder / "*.pool"), self.folder / "late.pool"
        (self.folder / "text.pool").write_text("no pool")
        first = self.open_pool(self.pool)
        exporter = self.exporter(pattern, self.folder / "named", self.pool)
        named = str(self.folder / "named")
        self.assertEqual(self.open_of(self.ask()[1]), {str(self.pool): 1, named: 0})
        self.open_pool(late, "--engine", "respct")
        self.assertEqual(self.open_of(self.ask()[1]), {str(self.pool): 1, str(late): 1, named: 0})
        first.kill()
        first.wait()
        self.assertEqual(self.open_of(self.ask()[1]), {str(self.pool): 0, str(late): 1, named: 0})
        self.pool.unlink()
        self.assertEqual(self.open_of(self.ask()[1]), {str(late): 1, named: 0, str(self.pool): 0})
        exporter.send_signal(signal.SIGTERM)
        self.assertEqual(exporter.wait(timeout=20), 0)

    def test_odd_names_stay_one_label(self):
        odd = os.fsencode(self.folder) + b'/a"b\\c\nd\xff{x="y"}.pool'
        self.open_pool(odd)
        self.exporter(odd)
        shown = odd.decode("utf-8", "replace")
        self.assertEqual(self.open_of(self.ask()[1]), {shown: 1})

    def test_clients_that_behave_badly_do_not_keep_others_waiting(self):
        self.open_pool(self.pool)
        exporter = self.exporter(self.pool)
        clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(200)]
        for number, client in enumerate(clients):
            client.sendall([b"", b"GET /met", b"GET /metrics HTTP/1.1\r\nHost: x", b"\0\xff\r\n\r\n",
                            b"GET /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                            b"POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
                            b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"][number % 7])
        self.assertEqual(self.ask()[0].status, 200)
        for client in clients:
            client.close()
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.settimeout(20)
            client.sendall(b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n")
            try:
                self.assertNotIn(b" 200 ", client.recv(100))
            except ConnectionResetError:
                pass
        self.assertEqual(self.ask()[0].status, 200)
        self.assertIsNone(exporter.poll())

    def test_without_descriptors_it_waits_and_goes_on(self):
        exporter = self.exporter(self.pool)
        resource.prlimit(exporter.pid, resource.RLIMIT_NOFILE, (20, 20))
        clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(40)]
        ticks = [self.cpu_ticks(exporter), time.sleep(0.5), self.cpu_ticks(exporter)]
        self.assertLess(ticks[2] - ticks[0], 0.2 * os.sysconf("SC_CLK_TCK"))
        for client in clients:
            client.close()
        self.assertEqual(self.ask()[0].status, 200)

    def cpu_ticks(self, process):
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def test_wrong_words_are_refused(self):
        for words in (("--listen", "9742"), ("--listen", "localhost:1"), ("--listen", "::1:9742"), ("--listen", "127.0.0.1:70000"), ()):
            self.assert_refused(self.stillpoint("exporter", *words, *([self.pool] if words else ())), 64)
        self.assert_refused(self.stillpoint("exporter", "--listen", "192.0.2.1:9742", self.pool), 69, "cannot be listened on")
        for other in ("--json", "--watch=1"):
            self.assert_refused(self.stillpoint("stats", "--prometheus", other, self.pool), 64, "exporter")


if __name__ == "__main__":
    unittest.main()
