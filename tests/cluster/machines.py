"""Machines that own a pool: a host name of their own, a network that can be cut, and processes that die and stop together.

Where this user may make namespaces (root, in most containers), each machine has its own of processes, host name and network, with an
Ethernet pair to a bridge that the cluster listens on. Where not, all is one machine, which can be neither lost nor cut off.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

APART = "CLUSTER_TEST_NETWORK"


def run_quietly(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def run(*words):
    done = run_quietly(*words)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr}")


def only_child(pid):
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def is_alive(folder):
    return (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def enter_own_network():
    """Starts this program again in a network of its own, where that is possible: all that it makes there ends with it."""
    if APART not in os.environ and shutil.which("ip") and shutil.which("nsenter"):
        make_cable = ("ip", "link", "add", "name", "veth1", "type", "veth")
        apart = run_quietly("unshare", "--net", "--uts", "--pid", "--fork", "--mount-proc", *make_cable)
        os.environ[APART] = "1" if apart.returncode == 0 else "0"
        if apart.returncode == 0:
            os.execvp("unshare", ["unshare", "--net", sys.executable, "-B", *sys.argv])


class Network:
    """A bridge with the address of the cluster. `is_real`: machines are apart from it, and can be cut off."""

    prefix = "10.77.0"

    def __init__(self):
        self.is_real = os.environ.get(APART) == "1"
        self.address = f"{self.prefix}.1" if self.is_real else "127.0.0.1"
        self.machines = 0
        if self.is_real:
            run("ip", "link", "set", "lo", "up")
            run("ip", "link", "add", "cluster", "type", "bridge")
            run("ip", "address", "add", f"{self.address}/24", "dev", "cluster")
            run("ip", "link", "set", "cluster", "up")

    def join(self, pid):
        """Gives the process's network a cable to the bridge: its name."""
        self.machines += 1
        cable = f"cable{self.machines}"
        inside = ("nsenter", "--target", pid, "--net", "ip")
        run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", pid)
        run("ip", "link", "set", cable, "master", "cluster", "up")
        run(*inside, "address", "add", f"{self.prefix}.{1 + self.machines}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            run(*inside, "link", "set", device, "up")
        return cable


# The first process of a machine: it waits for the end of all that lose their parent.
FIRST_PROCESS = """
import os, socket, sys, time
socket.sethostname(sys.argv[1])
print("up", flush=True)
while True:
    try:
        os.wait()
    except ChildProcessError:
        time.sleep(0.02)
"""


class Machine:
    def __init__(self, network, name):
        self.name = name
        self.cable = self.first = None
        if network.is_real:
            words = ["unshare", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
            words += [sys.executable, "-c", FIRST_PROCESS, name]
            self.first = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent,
                                          start_new_session=True)
            if self.first.stdout.readline() != "up\n":
                raise RuntimeError("no namespaces of processes, host names and networks")
            self.cable = network.join(only_child(self.first.pid))

    def close(self):
        if self.first:
            self.kill()
            self.first.kill()
            self.first.wait()
            self.first.stdout.close()

    def start(self, words, environment, output):
        """A process on it, with standard output and error in the open file. Ends with the exit code of the program."""
        prefix = []
        if self.first:
            # The shell waits outside the machine's space of processes, whatever is done to those in it.
            spaces = ["nsenter", "--target", only_child(self.first.pid), "--uts", "--pid", "--net", "--mount", "--no-fork"]
            prefix = [*spaces, "sh", "-c", '"$@" & wait $!', "sh"]
        command = [str(word) for word in (*prefix, *words)]
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                preexec_fn=None if self.first else end_with_parent, start_new_session=True)

    def program_of(self, process):
        """The pid of the program itself; the process that start() gave may be its parent."""
        return only_child(process.pid) if self.first else process.pid

    def processes(self):
        """All that were started on it, and those that they started, however detached."""
        own = only_child(self.first.pid)
        space = os.readlink(f"/proc/{own}/ns/pid")
        found = []
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and int(folder.name) != own and os.readlink(folder / "ns/pid") == space and is_alive(folder):
                    found.append(int(folder.name))
        return found

    def agents(self):
        """The processes that speak to the cluster for a program."""
        def name(pid): return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
        return [pid for pid in self.processes() if name(pid).endswith(b"stillpoint-rados-agent")]

    def signal_all(self, number):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def pause(self):
        """Every process stands still; twice, for one that was just made."""
        self.signal_all(signal.SIGSTOP)
        self.signal_all(signal.SIGSTOP)

    def resume(self):
        self.signal_all(signal.SIGCONT)

    def kill(self):
        """All at one moment: none sees another end."""
        self.pause()
        end = time.monotonic() + 20
        while self.processes() and time.monotonic() < end:
            self.signal_all(signal.SIGKILL)
            time.sleep(0.01)

    def cut(self):
        """From now on no packet passes; connections are not told."""
        run_quietly("ip", "link", "set", self.cable, "down")

    def join(self):
        run_quietly("ip", "link", "set", self.cable, "up")
