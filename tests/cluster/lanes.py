"""Several runs of rounds beside each other, for most of a round is waiting: each lane has a cluster, a network and a seed of its own."""

import re
import signal
import subprocess
import sys
import threading

SUMMARY = re.compile(r"seed (\d+), (\d+) rounds on (\d+) pools in (\d+) s, nothing lost")


class Lane:
    def __init__(self, words, share, seed, folder):
        own = ["--lanes", 1, "--rounds", share, "--seed", seed, "--folder", folder]
        self.seed = seed
        self.summary = None
        self.process = subprocess.Popen([sys.executable, "-B", *words, *map(str, own)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, start_new_session=True)
        self.reader = None

    def read(self, stop_all):
        for line in self.process.stdout:
            self.summary = SUMMARY.search(line) or self.summary
            print(f"[seed {self.seed}] {line}", end="", flush=True)
        if self.process.wait():
            stop_all()

    def rounds(self):
        return int(self.summary[2]) if self.summary else 0


def run(options):
    """`options.rounds` in `options.lanes` shares, with the seeds from `options.seed` on. Ends with the first exit code that is not 0."""
    shares = [options.rounds // options.lanes + (lane < options.rounds % options.lanes) for lane in range(options.lanes)]
    lanes = [Lane(sys.argv, share, options.seed + number, options.folder.with_name(f"{options.folder.name}-lane-{number}"))
             for number, share in enumerate(shares) if share]

    def stop(*_):
        for lane in lanes:
            if lane.process.poll() is None:
                lane.process.send_signal(signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    for lane in lanes:
        lane.reader = threading.Thread(target=lane.read, args=(stop,))
        lane.reader.start()
    for lane in lanes:
        lane.reader.join()
    code = next((lane.process.returncode for lane in lanes if lane.process.wait()), 0)
    lost = "nothing lost" if code == 0 else f"exit code {code}"
    print(f"faults: {sum(lane.rounds() for lane in lanes)} of {options.rounds} rounds in {len(lanes)} lanes, {lost}")
    sys.exit(code)
