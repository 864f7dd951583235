#!/usr/bin/env python3
"""A real Ceph cluster in a folder: one monitor, one manager and three OSDs as ordinary processes of this user.

    cluster.py start FOLDER            starts it and waits until every placement group is active and clean
    cluster.py status FOLDER           its processes and the cluster's own words about itself
    cluster.py kill FOLDER osd.1       SIGKILL; also mon.a and mgr.x
    cluster.py start FOLDER osd.1      starts one process again
    cluster.py pause FOLDER osd.1      SIGSTOP; resume is SIGCONT
    cluster.py fill FOLDER             writes until the cluster calls itself full; empty takes the bytes away again
    cluster.py stop FOLDER             ends all its processes; the bytes stay, and start brings them back

Programs find it by the environment: CEPH_CONF=FOLDER/ceph.conf, and CEPH_ARGS=--id=NAME for another user than client.admin.
Pools: `stillpoint` (three replicas, writes need two). Users: client.stillpoint may do everything that an owner of a pool needs,
client.reader may only read, client.unfenced may write and lock but not put another client on the block list, client.stranger may
look at the monitor's maps and nothing more.

In a test, `with Cluster(folder) as cluster:` ends each process with the test, also when the test is killed.
"""

import argparse
import base64
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import librados

PROGRAMS = ("ceph-mon", "ceph-osd", "ceph-mgr", "monmaptool")
POOL = "stillpoint"
FILLER = "filler"
OSDS = 3
PR_SET_PDEATHSIG = 1
USERS = {
    "client.admin": {"mon": "allow *", "osd": "allow *", "mgr": "allow *", "mds": "allow *"},
    "client.stillpoint": {"mon": "profile simple-rados-client-with-blocklist", "osd": f"allow rwx pool={POOL}"},
    "client.reader": {"mon": "allow r", "osd": f"allow r pool={POOL}"},
    "client.unfenced": {"mon": "allow r", "osd": f"allow rwx pool={POOL}"},
    "client.stranger": {"mon": "allow r"},
}
CONFIGURATION = """[global]
fsid = {fsid}
mon_host = {monitor}
public_addr = {address}
cluster_addr = {address}
auth_cluster_required = cephx
auth_service_required = cephx
auth_client_required = cephx
auth_allow_insecure_global_id_reclaim = false
keyring = {folder}/ceph.$name.keyring
admin_socket =
run_dir = {folder}
crash_dir = {folder}/crash
log_file = {folder}/$name.log
pid_file =
ms_bind_msgr1 = false
ms_async_op_threads = 2
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 3
osd_pool_default_min_size = 2
osd_pool_default_pg_num = 8
osd_pool_default_pgp_num = 8
osd_pool_default_pg_autoscale_mode = off

[mon]
mon_data = {folder}/mon.a
mon_cluster_log_file = {folder}/cluster.log
mon_allow_pool_delete = true
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = true
mon_data_avail_warn = 2
mon_data_avail_crit = 1
mon_max_pg_per_osd = 1000
mon_osd_down_out_interval = 86400
mon_osd_reporter_subtree_level = osd
paxos_propose_interval = 0.1
paxos_min_wait = 0.02
mon_rocksdb_options = write_buffer_size=8388608,compression=kNoCompression

[mgr]
mgr_data = {folder}/mgr.x
mgr_module_path = {folder}/modules
mgr_stats_period = 1
mgr_tick_period = 1

[osd]
osd_data = {folder}/$name
osd_objectstore = bluestore
bluestore_block_create = true
bluestore_block_size = {osd_bytes}
bluestore_cache_autotune = false
bluestore_cache_size = 67108864
bluestore_rocksdb_options = compression=kNoCompression,max_write_buffer_number=4,min_write_buffer_number_to_merge=1,\
recycle_log_file_num=4,write_buffer_size=16777216,writable_file_max_buffer_size=0,compaction_readahead_size=2097152
osd_memory_target = 939524096
osd_op_num_shards = 2
osd_op_num_threads_per_shard = 1
osd_heartbeat_interval = 1
osd_heartbeat_grace = 6
osd_mon_report_interval = 1
osd_scrub_load_threshold = 0
osd_scrub_begin_hour = 0
osd_max_scrubs = 0
osd_recovery_sleep = 0
osd_recovery_delay_start = 0
"""


class ClusterError(Exception):
    """The cluster did not do what was asked; the message ends with the last lines of the log that tells why."""


def missing_packages():
    """The names of what this machine lacks for a cluster, as apt calls them."""
    missing = ["ceph-base" if program == "monmaptool" else program for program in PROGRAMS if not shutil.which(program)]
    return missing if librados.load() else [*missing, "librados2"]


def new_key():
    """A secret as cephx writes it: type 1 (AES), seconds, nanoseconds, length, 16 bytes."""
    return base64.b64encode(struct.pack("<hIIh", 1, int(time.time()), 0, 16) + os.urandom(16)).decode()


def start_ticks(pid):
    """When the process began, in ticks since the boot: with it a pid names one process forever. None: it is over."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rsplit(")", 1)[1].split()
    return None if fields[0] in "ZX" else int(fields[19])


def wait_until(condition, seconds, what):
    """The first true value of the condition."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise ClusterError(f"{what}: not after {seconds} seconds")
        time.sleep(0.05)


class Cluster:
    """One cluster in one folder. `bound`: its processes end with the thread that started them, whatever ends it."""

    def __init__(self, folder, bound=True, address="127.0.0.1", osd_bytes=4 << 30):
        self.folder = pathlib.Path(folder).resolve()
        self.bound = bound
        self.address = address
        self.osd_bytes = osd_bytes
        self.configuration = self.folder / "ceph.conf"
        self.connection = None
        self.children = {}
        self.up_from = {}  # by OSD: the map's epoch of its last life before the one that was started here

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    # The way to it.

    def environment(self, user="client.admin"):
        """The variables that lead librados, `ceph` and `rados` to this cluster."""
        return {**os.environ, "CEPH_CONF": str(self.configuration), "CEPH_ARGS": f"--id={user.removeprefix('client.')}"}

    def handle(self, seconds=20):
        """A connection of client.admin, kept until stop()."""
        if self.connection is None:
            self.connection = librados.Rados(self.configuration, seconds=seconds)
        return self.connection

    def command(self, prefix, **arguments):
        """A command of the monitor, or of the manager with target="mgr"."""
        return self.handle().command(prefix, **arguments)

    def pools(self):
        return [pool["pool_name"] for pool in self.command("osd dump")["pools"]]

    # Start and stop.

    def start(self, seconds=90):
        """Makes the cluster where the folder has none, starts what is not running, waits until all of it is active and clean."""
        missing = missing_packages()
        if missing:
            raise ClusterError("install first: apt-get install --no-install-recommends " + " ".join(sorted(set(missing))))
        new = not self.configuration.exists()
        for _ in range(5):
            if new:
                self.make_folder()
            self.start_process("mon.a")
            if self.monitor_answers():
                break
            if not new:
                raise ClusterError(f"mon.a does not answer\n{self.tail('mon.a')}")
            self.disconnect()
            self.kill("mon.a")
        else:
            raise ClusterError(f"no port for the monitor in five attempts\n{self.tail('mon.a')}")
        if new:
            self.make_osds()
        self.start_process("mgr.x")
        for osd in range(OSDS):
            self.start_osd(osd)
        if new:
            self.command("health mute", code="MGR_MODULE_ERROR", sticky=True)
            wait_until(lambda: self.osds_up() == OSDS, seconds, f"{OSDS} OSDs are up")
            self.make_pool(POOL)
        self.wait_clean(seconds)

    def make_folder(self):
        """The configuration, the keys and the monitor's first store, on a port that is free now."""
        shutil.rmtree(self.folder / "mon.a", ignore_errors=True)
        (self.folder / "modules").mkdir(parents=True, exist_ok=True)
        with socket.socket() as free:
            free.bind((self.address, 0))
            port = free.getsockname()[1]
        fsid = str(uuid.uuid4())
        monitor = f"[v2:{self.address}:{port}/0]"
        values = {"fsid": fsid, "monitor": monitor, "folder": self.folder, "address": self.address, "osd_bytes": self.osd_bytes}
        text = CONFIGURATION.format(**values)
        seed = self.make_keys()
        monmap = self.folder / "monmap"
        self.run("monmaptool", "--create", "--clobber", "--fsid", fsid, "--enable-all-features", "--addv", "a", monitor, monmap)
        temporary = self.folder / "ceph.conf.new"
        temporary.write_text(text)
        self.run("ceph-mon", "--mkfs", "-i", "a", "-c", temporary, "--monmap", monmap, "--keyring", seed)
        shutil.copy(seed, self.folder / "mon.a" / "keyring")
        temporary.rename(self.configuration)

    def make_keys(self):
        """A keyring for each user and process; the answer is the keyring of all of them, which the monitor starts with."""
        all_of = dict(USERS)
        all_of["mgr.x"] = {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"}
        for osd in range(OSDS):
            all_of[f"osd.{osd}"] = {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"}
        seed = f'[mon.]\n\tkey = {new_key()}\n\tcaps mon = "allow *"\n'
        for name, rights in all_of.items():
            text = f"[{name}]\n\tkey = {new_key()}\n"
            self.write_secret(f"ceph.{name}.keyring", text)
            seed += text + "".join(f'\tcaps {service} = "{right}"\n' for service, right in rights.items())
        return self.write_secret("seed.keyring", seed)

    def write_secret(self, name, text):
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(text)
        return path

    def make_osds(self):
        """Registers the OSDs and formats their stores, all at once."""
        formats = []
        for osd in range(OSDS):
            name = f"osd.{osd}"
            path = self.folder / name
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
            identity = str(uuid.uuid4())
            self.command("osd new", uuid=identity, id=osd)
            words = ["ceph-osd", "--mkfs", "-i", str(osd), "-c", self.configuration, "--osd-uuid", identity]
            formats.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
            (self.folder / "mgr.x").mkdir(exist_ok=True)
        for process in formats:
            _, errors = process.communicate()
            if process.returncode:
                raise ClusterError(f"ceph-osd --mkfs: {errors}")

    def make_pool(self, name, size=3, min_size=2, placement_groups=8):
        """A replicated pool."""
        self.command("osd pool create", pool=name, pg_num=placement_groups, pgp_num=placement_groups, pool_type="replicated")
        self.set_size(name, size, min_size)
        self.command("osd pool application enable", pool=name, app="stillpoint")

    def set_size(self, name, size, min_size):
        """How many replicas the pool keeps, and with how many it still takes writes."""
        sure = {"yes_i_really_mean_it": True} if size == 1 else {}
        self.command("osd pool set", pool=name, var="size", val=str(size), **sure)
        self.command("osd pool set", pool=name, var="min_size", val=str(min_size))

    def stop(self):
        """Ends every process of the folder."""
        self.disconnect()
        for name in self.processes():
            self.kill(name)

    def disconnect(self):
        if self.connection is not None:
            connection, self.connection = self.connection, None
            connection.close()

    # Single processes.

    def pid_file(self, name):
        return self.folder / f"{name}.pid"

    def processes(self):
        """The names of all processes that were started here and are not yet ended, each with its pid."""
        found = {}
        for path in sorted(self.folder.glob("*.pid")):
            pid, ticks = map(int, path.read_text().split())
            if start_ticks(pid) == ticks:
                found[path.stem] = pid
        return found

    def start_process(self, name):
        """Starts one daemon, unless it runs."""
        if name in self.processes():
            return
        kind, identity = name.split(".")
        words = [f"ceph-{kind}", "-f", "-i", identity, "-c", str(self.configuration)]
        parent = os.getpid()
        system = ctypes.CDLL(None)

        def end_with_the_test():
            os.setsid()
            if self.bound:
                system.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)

        environment = {key: value for key, value in os.environ.items() if not key.startswith("CEPH_")}
        with (self.folder / f"{name}.out").open("ab") as out:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment,
                                       preexec_fn=end_with_the_test)
        temporary = self.folder / f"{name}.pid-new"
        temporary.write_text(f"{process.pid} {start_ticks(process.pid) or 0}")
        temporary.rename(self.pid_file(name))
        self.children[name] = process

    def start_osd(self, osd):
        """Starts an OSD; wait_clean() then waits for this life of it."""
        if f"osd.{osd}" not in self.processes():
            self.up_from[osd] = {entry["osd"]: entry["up_from"] for entry in self.command("osd dump")["osds"]}[osd]
            self.start_process(f"osd.{osd}")

    def send(self, name, number):
        pid = self.processes().get(name)
        if pid is None:
            raise ClusterError(f"{name} does not run")
        os.kill(pid, number)

    def kill(self, name):
        """SIGKILL, and waits for the end. Not an error where it does not run."""
        pid = self.processes().get(name)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            child = self.children.pop(name, None)
            if child is not None:
                child.wait()
            wait_until(lambda: name not in self.processes(), 30, f"{name} has ended")
        self.pid_file(name).unlink(missing_ok=True)

    def pause(self, name):
        self.send(name, signal.SIGSTOP)

    def resume(self, name):
        self.send(name, signal.SIGCONT)

    # Questions to it.

    def monitor_answers(self):
        end = time.monotonic() + 15
        while time.monotonic() < end and "mon.a" in self.processes():
            try:
                self.handle(5)
            except OSError:
                time.sleep(0.1)
                continue
            return True
        return False

    def osds_up(self):
        return self.command("osd stat")["num_up_osds"]

    def unclean(self):
        """Why the cluster is not active and clean, in a few words; empty when it is.

        Counts only reports that are younger than the last start of an OSD: the monitor remembers old ones over a restart.
        """
        dump = self.command("osd dump")
        up = [osd for osd in dump["osds"] if osd["up"] and osd["up_from"] > self.up_from.get(osd["osd"], -1)]
        if len(up) != OSDS:
            return f"{len(up)} of {OSDS} OSDs are up"
        newest = max(osd["up_from"] for osd in up)
        try:
            groups = self.command("pg dump", target="mgr", dumpcontents=["pgs"])["pg_stats"]
        except OSError as error:
            return f"the manager does not answer: {error}"
        clean = sum(group["reported_epoch"] >= newest and group["state"] in ("active+clean", "active+clean+scrubbing")
                    for group in groups)
        expected = sum(pool["pg_num"] for pool in dump["pools"])
        return "" if clean == expected else f"{clean} of {expected} placement groups are active and clean"

    def wait_clean(self, seconds=90):
        """Waits until every OSD is up and every placement group is active and clean."""
        reason = "?"
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            reason = self.unclean()
            if not reason:
                return
            time.sleep(0.1)
        raise ClusterError(f"not clean after {seconds} seconds: {reason}\n{self.tail('osd.0')}")

    def tail(self, name, lines=15):
        text = ""
        for suffix in ("out", "log"):
            with contextlib.suppress(OSError):
                text += "\n".join((self.folder / f"{name}.{suffix}").read_text(errors="replace").splitlines()[-lines:]) + "\n"
        return text

    def run(self, *words):
        result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if result.returncode:
            raise ClusterError(f"{words[0]}: {result.stderr or result.stdout}")

    # A full cluster.

    def health_checks(self):
        return set(self.command("health").get("checks", {}))

    def fill(self, seconds=60):
        """Writes real bytes until the cluster refuses writes. The bound is lowered to just above today's use first, so it is quick."""
        used = max(osd["utilization"] for osd in self.command("osd df")["nodes"]) / 100
        self.set_full_ratios(used + 0.02, used + 0.015, used + 0.01)
        if FILLER not in self.pools():
            self.make_pool(FILLER)
        block = os.urandom(1 << 22)
        # The last write may wait for room: so its failure is not an error.
        with contextlib.suppress(librados.RadosError), librados.Rados(self.configuration, seconds=3) as filler:
            for number in range(int(self.osd_bytes * 0.06) // len(block)):
                filler.write(FILLER, f"filler.{number}", block)
                if "OSD_FULL" in self.health_checks():
                    return
        wait_until(lambda: "OSD_FULL" in self.health_checks(), seconds, "the cluster is full")

    def empty(self, seconds=60):
        """Makes room again."""
        self.set_full_ratios(0.95, 0.90, 0.85)
        if FILLER in self.pools():
            self.command("osd pool delete", pool=FILLER, pool2=FILLER, yes_i_really_really_mean_it=True)
        wait_until(lambda: "OSD_FULL" not in self.health_checks(), seconds, "the cluster has room")

    def set_full_ratios(self, full, backfillfull, nearfull):
        order = (("full", full), ("backfillfull", backfillfull), ("nearfull", nearfull))
        for name, ratio in order if full > 0.5 else reversed(order):
            self.command(f"osd set-{name}-ratio", ratio=ratio)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["start", "stop", "status", "kill", "pause", "resume", "fill", "empty"])
    parser.add_argument("folder")
    parser.add_argument("process", nargs="?", help="mon.a, mgr.x, osd.0, osd.1 or osd.2; start without one starts all")
    parser.add_argument("--address", default="127.0.0.1", help="where its processes listen (only for the first start)")
    options = parser.parse_args()
    cluster = Cluster(options.folder, bound=False, address=options.address)
    try:
        if options.command == "start" and not options.process:
            began = time.monotonic()
            cluster.start()
            print(f"active and clean after {time.monotonic() - began:.1f} s: export CEPH_CONF={cluster.configuration}")
        elif options.command == "start":
            cluster.start_process(options.process)
        elif options.command in ("kill", "pause", "resume"):
            getattr(cluster, options.command)(options.process or parser.error("name a process, such as osd.1"))
        elif options.command == "status":
            for name, pid in cluster.processes().items():
                print(f"{name}: pid {pid}")
            print(json.dumps(cluster.command("status"), indent=2))
        else:
            getattr(cluster, options.command)()
    except (ClusterError, librados.RadosError) as error:
        sys.exit(f"cluster.py: {error}")
    finally:
        cluster.disconnect()


if __name__ == "__main__":
    main()
