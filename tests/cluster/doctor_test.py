"""`stillpoint doctor rados://…` of a real cluster: what it promises of a sound one, and what it says of each that is not."""

import json
import re
import tempfile
import time
from pathlib import Path

from with_cluster import ClusterTest, main

from cluster import POOL, wait_until
from support import json_schema


class Doctor(ClusterTest):
    def setUp(self):
        self.cluster.start()

    def ask(self, exit_code=0, place=f"rados://{POOL}", **environment):
        """The object that --json prints, validated; its findings by name."""
        done = self.stillpoint("doctor", "--json", place, **environment)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        json_schema.validate(found, "doctor")
        self.assertEqual("error" in found, exit_code != 0)
        findings = {finding["name"]: finding for finding in found.get("verdict", {}).get("findings", [])}
        return found, findings

    def finds(self, name, exit_code=69, place=f"rados://{POOL}"):
        found, findings = self.ask(exit_code, place)
        self.assertIn(name, findings)
        self.assertFalse(found["verdict"]["durable"] and exit_code)
        return found

    def test_a_sound_cluster_is_durable_and_its_writes_are_measured(self):
        found, findings = self.ask()
        self.assertEqual(found["verdict"] | {"conditions": [], "findings": []},
                         {"pool_possible": True, "durable": True, "can_take_over": True, "losses_survived": 1, "losses_writable": 1,
                          "conditions": [], "findings": []})
        self.assertEqual({latency["bytes"] for latency in found["pool"]["write_latencies"]}, {4096, 4 << 20})
        self.assertTrue(all(latency["median_ns"] > 100_000 for latency in found["pool"]["write_latencies"]))
        self.assertIn("one_machine", findings)
        text = self.stillpoint("doctor", f"rados://{POOL}/bank")
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertRegex(text.stdout, r"a write of 4 MiB +\d+\.\d+ ms")

    def test_it_leaves_no_object_and_no_block(self):
        self.ask()
        statistics = self.cluster.command("df")["pools"]
        self.assertEqual([pool["stats"]["objects"] for pool in statistics if pool["name"] == POOL], [0])
        blocked = lambda: [entry for entry in self.cluster.command("osd dump")["blocklist"] if entry.startswith("192.0.2.1")]  # noqa: E731
        wait_until(lambda: not blocked(), 20, "the block has ended")

    def test_copies_that_are_too_few(self):
        try:
            self.cluster.set_size(POOL, 3, 1)
            self.finds("min_size_1")
            self.cluster.set_size(POOL, 1, 1)
            self.finds("size_1")
            self.cluster.set_size(POOL, 2, 2)
            self.assertEqual(self.finds("stops_at_one_loss", exit_code=0)["verdict"]["losses_writable"], 0)
        finally:
            self.cluster.set_size(POOL, 3, 2)

    def test_erasure_coded_pools_need_overwrites_and_a_spare_chunk(self):
        profile = "two_and_one"
        self.cluster.command("osd erasure-code-profile set", name=profile, profile=["k=2", "m=1", "crush-failure-domain=osd"])
        kind = {"pool_type": "erasure", "erasure_code_profile": profile}
        self.cluster.command("osd pool create", pool="coded", pg_num=4, pgp_num=4, **kind)
        self.finds("no_overwrites", place="rados://coded")
        self.cluster.command("osd pool set", pool="coded", var="allow_ec_overwrites", val="true")
        self.cluster.command("osd pool set", pool="coded", var="min_size", val="2")
        self.finds("min_size_1", place="rados://coded")
        self.cluster.command("osd pool set", pool="coded", var="min_size", val="3")
        self.finds("stops_at_one_loss", exit_code=0, place="rados://coded")
        self.cluster.command("osd pool delete", pool="coded", pool2="coded", yes_i_really_really_mean_it=True)

    def test_rights_of_users(self):
        for user, code, name in (("stillpoint", 0, "one_machine"), ("unfenced", 0, "may_not_block"), ("reader", 77, "may_not_write"),
                                 ("stranger", 77, "may_not_write")):
            self.finds(name, code, f"rados://{POOL}?id={user}")
        self.ask(77, f"rados://{POOL}?id=no_such_user")

    def test_places_that_are_none(self):
        self.finds("pool_missing", 66, "rados://no_such_pool")
        self.ask(64, "rados://")
        self.ask(64, "rados://stillpoint?size=3")
        self.ask(77, CEPH_CONF="/nowhere/ceph.conf")
        with tempfile.NamedTemporaryFile(dir=self.folder) as file:
            file.write(b"[global\n")
            file.flush()
            self.ask(64, f"rados://{POOL}?conf={file.name}")

    def test_a_switch_that_drops_writes(self):
        option = "bluestore_debug_omit_kv_commit"
        self.cluster.command("config set", who="osd.2", name=option, value="true")
        try:
            self.finds("acknowledges_unwritten")
        finally:
            self.cluster.command("config rm", who="osd.2", name=option)

    def test_full_and_paused_clusters_take_no_pool(self):
        self.cluster.fill()
        try:
            self.finds("full")
        finally:
            self.cluster.empty()
        self.cluster.command("osd pause")
        try:
            self.finds("paused")
        finally:
            self.cluster.command("osd unpause")

    def test_osds_that_are_down(self):
        self.cluster.kill("osd.1")
        wait_until(lambda: self.cluster.osds_up() == 2, 30, "the monitor has noticed")
        _, findings = self.ask()
        self.assertTrue({"osd_down", "degraded"} & findings.keys(), findings)
        self.cluster.kill("osd.2")
        wait_until(lambda: self.cluster.osds_up() == 1, 30, "the monitor has noticed")
        self.finds("too_few_osds")

    def test_a_monitor_that_does_not_answer_is_given_up_after_ten_seconds(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            configuration = Path(folder) / "ceph.conf"
            text = self.cluster.configuration.read_text()
            configuration.write_text(re.sub(r"(?m)^mon_host = .*$", "mon_host = [v2:127.0.0.1:1/0]", text))
            begin = time.monotonic()
            self.ask(75, f"rados://{POOL}?conf={configuration}")
            self.assertLess(time.monotonic() - begin, 15)


if __name__ == "__main__":
    main()
