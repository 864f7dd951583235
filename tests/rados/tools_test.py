"""The command on pools in Ceph. Invariants: what reads a pool takes its name; a copy in either direction is sound and whole or not there;
what needs a file says so; each failure of the cluster has an error that says what to do, within a bounded time."""

import json
import os
import socket
import time
import unittest

from rados_cluster import BANK, CEPH_POOL, TOOL, Bank, RadosTest
from support.rados_pool import RadosPool


class Tools(RadosTest):
    def make_pool(self):
        code, text = self.run_bank(transfers=2000)
        self.assertEqual(code, 0, text)
        code, text = self.run_bank(transfers=4000)
        self.assertEqual(code, 0, text)

    def json_of(self, *words):
        done = self.stillpoint(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refusal(self, code, *words, environment=None):
        done = self.stillpoint(*words, environment=environment)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_a_pool_at_rest_is_shown(self):
        self.make_pool()
        facts = self.json_of("info", "--json", self.pool)
        self.assertEqual((facts["durability"], facts["clean"]), ("power", True))
        self.assertTrue(self.json_of("check", "--json", self.pool)["clean"])
        self.assertIn('handle "bank"', self.stillpoint("dump", self.pool).stdout)
        self.assertIn("no process has the pool open", self.refusal(69, "stats", self.pool))

    def test_an_erasure_coded_pool_is_named_so(self):
        self.cluster.command("osd erasure-code-profile set", name="two_and_one", profile=["k=2", "m=1", "crush-failure-domain=osd"])
        self.cluster.command("osd pool create", pool="coded", pg_num=4, pgp_num=4, pool_type="erasure", erasure_code_profile="two_and_one")
        self.cluster.command("osd pool set", pool="coded", var="allow_ec_overwrites", val="true")
        environment = {name: value for name, value in self.environment.items() if name != "CEPH_ARGS"}  # client.admin
        done = self.stillpoint("run", "--pool", "rados://coded/a", "--", BANK, "--accounts", 10, "--transfers", 10, environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rados, erasure coded in 3 pieces", done.stderr)
        self.cluster.command("osd pool delete", pool="coded", pool2="coded", yes_i_really_really_mean_it=True)

    def test_a_program_at_work_is_seen(self):
        bank = Bank(self, self.pool)
        bank.wait_for_acknowledgements()
        stats = self.json_of("stats", "--json", self.pool)
        self.assertEqual((stats["program"], stats["process"], stats["pool"]), ("bank", bank.process.pid, str(self.pool)))
        self.assertGreater(stats["durable_epoch"], 0)
        self.assertIn(str(bank.process.pid), self.stillpoint("top", "--once", self.pool).stdout)
        self.json_of("info", "--json", self.pool)

    def test_copies_out_in_and_across(self):
        self.make_pool()
        file, again = self.folder / "out.pool", self.folder / "again.pool"
        inside, across = (RadosPool(TOOL, CEPH_POOL, f"{self.pool.name}.{name}", self.environment) for name in ("in", "across"))
        epoch = self.json_of("copy", "--json", self.pool, file)["durable_epoch"]
        self.assertEqual(self.json_of("copy", "--json", file, inside)["durable_epoch"], epoch)
        self.assertEqual(self.json_of("copy", "--json", inside, across)["durable_epoch"], epoch)
        self.assertEqual(self.json_of("copy", "--json", across, again)["durable_epoch"], epoch)
        self.assertEqual(file.read_bytes(), again.read_bytes())
        self.assertIn("exists already", self.refusal(73, "copy", file, inside))
        self.pool = inside
        code, text = self.run_bank(transfers=3000)
        self.assertEqual(code, 0, text)

    def test_a_damaged_pool_is_not_copied(self):
        self.make_pool()
        file = self.folder / "damaged.pool"
        self.json_of("copy", "--json", self.pool, file)
        with file.open("r+b") as damaged:
            damaged.seek(4096 * 40)
            damaged.write(os.urandom(4096 * 400))
        target = RadosPool(TOOL, CEPH_POOL, f"{self.pool.name}.damaged", self.environment)
        self.assertIn("is not copied", self.refusal(65, "copy", file, target))
        self.assertFalse(target.exists())

    def test_a_pool_that_is_in_use_is_not_copied(self):
        bank = Bank(self, self.pool)
        bank.wait_for_acknowledgements()
        self.assertIn("has the pool", self.refusal(75, "copy", self.pool, self.folder / "new.pool"))
        self.assertFalse((self.folder / "new.pool").exists())

    def test_a_missing_object_is_damage(self):
        self.make_pool()
        size = self.json_of("info", "--json", self.pool)["file_bytes"]
        with self.remover() as remove:
            for index in range(1, -(-size // (4 << 20))):
                remove(f"stillpoint.{self.pool.name}.{index:08x}")
        self.assertEqual(self.stillpoint("check", self.pool).returncode, 65)

    def remover(self):
        import contextlib
        import ctypes

        import librados

        @contextlib.contextmanager
        def opened():
            with librados.Rados(self.cluster.configuration) as rados:
                context = ctypes.c_void_p()
                rados.check(rados.library.rados_ioctx_create(rados.handle, CEPH_POOL.encode(), ctypes.byref(context)), CEPH_POOL)
                yield lambda name: rados.library.rados_remove(context, name.encode())
                rados.library.rados_ioctx_destroy(context)

        return opened()

    def test_what_needs_a_file_says_so(self):
        self.make_pool()
        file = self.folder / "copy.pool"
        self.json_of("copy", "--json", self.pool, file)
        new = f"rados://{CEPH_POOL}/new"
        for code, words in ((64, ("trim", self.pool)), (64, ("restore", file, new)), (64, ("restore", self.pool, self.folder / "r.pool")),
                            (64, ("salvage", self.pool, new)), (64, ("crashtest", "--pool", new, "--", "true"))):
            self.assertIn("Ceph" if words[0] != "restore" or words[1] == file else "files", self.refusal(code, *words))

    def test_names_that_are_none_are_refused(self):
        for name in ("rados://", "rados://stillpoint", "rados://stillpoint/a/b", "rados://stillpoint/bank?size=3"):
            self.assertIn("rados://CEPHPOOL/NAME", self.refusal(64, "info", name))
        self.assertIn("ceph osd pool create", self.refusal(64, "info", "rados://no-such-pool/bank"))
        self.assertIn("there is no such pool", self.refusal(66, "info", f"rados://{CEPH_POOL}/no-such-pool"))

    def test_a_cluster_that_does_not_answer_is_an_error_in_bounded_time(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
            configuration = self.folder / "ceph.conf"
            configuration.write_text(f"[global]\nfsid = 7d7d7d7d-7d7d-4d7d-8d7d-7d7d7d7d7d7d\nmon_host = [v2:127.0.0.1:{port}/0]\n"
                                     f"keyring = {self.cluster.folder}/ceph.$name.keyring\n")
            began = time.monotonic()
            text = self.refusal(75, "info", f"rados://{CEPH_POOL}/bank?conf={configuration}&id=stillpoint")
            self.assertLess(time.monotonic() - began, 45)
        self.assertIn("ceph status", text)

    def test_rights_that_are_missing_are_named(self):
        self.make_pool()
        reader = self.cluster.environment("client.reader")
        self.assertEqual(self.stillpoint("info", self.pool, environment=reader).returncode, 0)
        for user in ("client.reader", "client.stranger"):
            code, text = self.run_bank(environment=self.cluster.environment(user))
            self.assertEqual(code, 77, text)
            self.assertIn(user, text)
        nobody = {**self.environment, "CEPH_CONF": str(self.folder / "missing.conf")}
        self.assertIn("CEPH_CONF", self.refusal(77, "info", self.pool, environment=nobody))

    def test_without_the_right_to_shut_an_owner_out_there_is_no_take_over(self):
        unfenced = self.cluster.environment("client.unfenced")
        code, text = self.run_bank(transfers=2000, environment=unfenced)
        self.assertEqual(code, 0, text)
        owner = Bank(self, self.pool)
        owner.wait_for_acknowledgements()
        code, text = self.run_bank("--take-over", environment=unfenced)
        self.assertEqual(code, 77, text)
        self.assertIn("ceph auth caps client.unfenced mon 'profile simple-rados-client-with-blocklist'", text)
        owner.wait_for_acknowledgements()

    def test_acknowledgements_pause_while_too_few_replicas_live_and_go_on_afterwards(self):
        bank = Bank(self, self.pool)
        bank.wait_for_acknowledgements()
        for osd in ("osd.1", "osd.2"):
            self.cluster.pause(osd)
        time.sleep(1)
        lines = len(bank.lines())
        time.sleep(3)  # longer than the lease
        self.assertEqual(len(bank.lines()), lines)
        for osd in ("osd.1", "osd.2"):
            self.cluster.resume(osd)
        bank.wait_for_acknowledgements(seconds=60)
        self.cluster.wait_clean()


if __name__ == "__main__":
    unittest.main()
