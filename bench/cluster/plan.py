#!/usr/bin/env python3
"""A plan for scale: measures what writes cost on a small Ceph cluster of this machine, and computes from it how many owners of pools, and
how many bytes a second, a cluster of N OSDs carries.

    plan.py                                 measures on a cluster in a temporary folder (a minute), prints tables in Markdown
    plan.py --json FILE                     keeps the measured inputs
    plan.py --inputs FILE --osds 12,48      computes again, without a cluster, for other hardware

CPU time and written bytes for each byte of a program carry over to other machines, as far as their CPUs are alike; latencies do not:
measure them where the cluster is, with `stillpoint doctor rados://CEPHPOOL`.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/cluster"))

from cluster import OSDS, POOL, Cluster, missing_packages

KIB, MIB = 1 << 10, 1 << 20
OBJECT_BYTES = 4 * MIB
CODED = "coded"
LEASE_RENEWALS_PER_S = 0.3
HEADROOM = 0.5  # recovery, scrubs and bursts have the other half


def used(cluster):
    """(CPU seconds, bytes given to the disk) of all OSDs so far."""
    cpu_s = written = 0
    for name, pid in cluster.processes().items():
        if name.startswith("osd"):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            cpu_s += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            counters = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
            written += int(counters["write_bytes"])
    return cpu_s, written


def measure(cluster, pool_name, size, depth, seconds, overwrites):
    """Writes of one size by `depth` threads: their latency, and what the OSDs spend on each byte."""
    latencies, errors = [], []
    content = os.urandom(size)
    with cluster.handle().pool(pool_name) as pool:
        objects = [f"plan.{number}" for number in range(16)]
        if overwrites:
            for name in objects:
                pool.write_full(name, os.urandom(OBJECT_BYTES))
        before, begin = used(cluster), time.monotonic()
        end = begin + seconds

        def write(thread):
            turn = thread
            try:
                while (start := time.monotonic()) < end:
                    pool.write_at(objects[turn % len(objects)], content, turn * 7 % (OBJECT_BYTES // size) * size)
                    latencies.append(time.monotonic() - start)
                    turn += depth
            except OSError as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(depth)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - begin
    if errors:
        raise errors[0]
    time.sleep(1)  # what BlueStore writes later belongs to it
    after = used(cluster)
    count = len(latencies)
    return {"pool": pool_name, "bytes": size, "in_flight": depth, "writes": count, "median_ms": 1e3 * statistics.median(latencies),
            "p99_ms": 1e3 * sorted(latencies)[count * 99 // 100], "bytes_per_s": count * size / took,
            "cpu_s_per_write": (after[0] - before[0]) / count, "disk_bytes_per_byte": (after[1] - before[1]) / (count * size)}


def measure_all(seconds):
    measured = []
    with tempfile.TemporaryDirectory(prefix="cluster-plan-", dir="/var/tmp") as folder, Cluster(folder) as cluster:
        cluster.command("osd erasure-code-profile set", name="two_and_one", profile=["k=2", "m=1", "crush-failure-domain=osd"])
        cluster.command("osd pool create", pool=CODED, pg_num=8, pgp_num=8, pool_type="erasure", erasure_code_profile="two_and_one")
        cluster.command("osd pool set", pool=CODED, var="allow_ec_overwrites", val="true")
        cluster.wait_clean()
        for pool in (POOL, CODED):
            for size in (4 * KIB, 512 * KIB, 4 * MIB):
                for depth in (1, 8):
                    measured.append(measure(cluster, pool, size, depth, seconds, overwrites=True))
    return measured


def find(inputs, pool, size, depth):
    return next(entry for entry in inputs if (entry["pool"], entry["bytes"], entry["in_flight"]) == (pool, size, depth))


def carries(inputs, pool, osds, options):
    """(bytes a second, epochs a second, owners, the limit) of a cluster of so many OSDs; one of them is down, and half is kept free."""
    piece, commit = find(inputs, pool, 512 * KIB, 8), find(inputs, pool, 4 * KIB, 8)
    share = (osds - 1) * HEADROOM
    copies = 3 if pool == POOL else 1.5
    pieces = max(1, options.epoch_bytes / piece["bytes"])
    owner_epochs = 1000 / options.interval_ms
    commits = 2 * owner_epochs + LEASE_RENEWALS_PER_S  # a commit record, and its predecessor's mark
    cpu_s = owner_epochs * pieces * piece["cpu_s_per_write"] + commits * commit["cpu_s_per_write"]
    owner_bytes = owner_epochs * options.epoch_bytes
    disk_bytes = owner_bytes * piece["disk_bytes_per_byte"] + commits * commit["bytes"] * commit["disk_bytes_per_byte"]
    limits = {"CPU": share * options.cores_per_osd / cpu_s, "disk": share * options.disk_mb_per_s * 1e6 / disk_bytes,
              "network": share / options.osds_per_host * options.network_gbit_per_s * 125e6 / (owner_bytes * copies)}
    limit = min(limits, key=limits.get)
    owners = limits[limit]
    return owners * owner_bytes, owners * owner_epochs, owners, limit


def print_inputs(inputs):
    print("| pool | write | in flight | median | 99 % | bytes/s | CPU of all OSDs per write | per MiB | bytes to disks per byte |")
    print("|---|---|---|---|---|---|---|---|---|")
    for entry in inputs:
        name = f"{entry['bytes'] // MIB} MiB" if entry["bytes"] >= MIB else f"{entry['bytes'] // KIB} KiB"
        kind = "3 copies" if entry["pool"] == POOL else "2 + 1 erasure coded"
        cpu_ms = 1e3 * entry["cpu_s_per_write"]
        print(f"| {kind} | {name} | {entry['in_flight']} | {entry['median_ms']:.1f} ms | {entry['p99_ms']:.1f} ms | "
              f"{entry['bytes_per_s'] / 1e6:.1f} MB | {cpu_ms:.2f} ms | {cpu_ms * MIB / entry['bytes']:.1f} ms | "
              f"{entry['disk_bytes_per_byte']:.1f} |")


def print_plan(inputs, options):
    print(f"\nOwners with epochs of {options.epoch_bytes / MIB:g} MiB every {options.interval_ms:g} ms; OSDs with {options.cores_per_osd:g} cores "
          f"and disks of {options.disk_mb_per_s:g} MB/s, {options.osds_per_host} a host, {options.network_gbit_per_s:g} Gbit/s a host:\n")
    print("| OSDs | pool | bytes/s of programs | epochs/s | owners | first limit | placement groups |")
    print("|---|---|---|---|---|---|---|")
    for osds in map(int, options.osds.split(",")):
        for pool, kind in ((POOL, "3 copies"), (CODED, "2 + 1 erasure coded")):
            total, epochs, owners, limit = carries(inputs, pool, osds, options)
            groups = 1 << (osds * 100 // 3).bit_length() - 1
            print(f"| {osds} | {kind} | {total / 1e6:.0f} MB | {epochs:.0f} | {owners:.0f} | {limit} | {groups} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=Path, help="measured inputs of an earlier call, instead of measuring")
    parser.add_argument("--json", type=Path, help="file for the measured inputs")
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement (default 4)")
    parser.add_argument("--osds", default="3,6,12,24,48", help="sizes of clusters")
    parser.add_argument("--epoch-bytes", type=int, default=4 * MIB)
    parser.add_argument("--interval-ms", type=float, default=500)
    parser.add_argument("--cores-per-osd", type=float, default=2)
    parser.add_argument("--disk-mb-per-s", type=float, default=500, help="that an OSD's disk writes for long")
    parser.add_argument("--osds-per-host", type=int, default=3)
    parser.add_argument("--network-gbit-per-s", type=float, default=10, help="of a host")
    options = parser.parse_args()
    if options.inputs:
        inputs = json.loads(options.inputs.read_text())["measured"]
    else:
        missing = missing_packages()
        if missing:
            sys.exit(f"plan: {', '.join(missing)} not installed; scripts/setup.sh cluster installs what a cluster needs")
        inputs = measure_all(options.seconds)
    if options.json:
        options.json.write_text(json.dumps({"cpus": os.cpu_count(), "osds": OSDS, "measured": inputs}, indent=1) + "\n")
    print_inputs(inputs)
    print_plan(inputs, options)


if __name__ == "__main__":
    main()
