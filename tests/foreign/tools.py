"""Tools of others round a durable program of ours: debuggers, tracers, allocators, wrappers."""

from table import Program

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
BANK = "$BANK --accounts 50 --threads 2 --transfers 5000"
# Nothing is lost at a normal end; the second run audits what the first one left, and continues with it.
AFTERWARDS = "./run $BANK --transfers 6000\n"
HOLDS = (r"at the start: sum 50000 of 50000, 5000 transfers, .* 0 bad statements, .*: holds",
         r"at the end: sum 50000 of 50000, 6000 transfers, seen by accounts 12000, 0 bad statements, .*: holds")
# A kill damages nothing either: the bank compares with what it has acknowledged.
KILLED = "./run $BANK --transfers 1 --acknowledge ledger\n"
RESUMED = (r"resumed after a crash; [1-9]\d* transfers done, [1-9]\d* acknowledged", r"at the end: .* 0 bad statements, .*: holds")
BACKGROUND = "./run $BANK --accounts 50 --threads 2 --transfers 100000000 --acknowledge ledger >/dev/null & pid=$!\n" \
    "i=0; until [ -s ledger ]; do i=$((i+1)); [ $i -lt 200 ] || exit 1; sleep 0.05; done\n"


def tool(name, packages, needs, script, expect=HOLDS, **more):
    return Program(name, packages, needs, script + (AFTERWARDS if expect is HOLDS else KILLED), expect=expect, durable=True, **more)


def allocator(name, package, file):
    return tool(name, package, (f"{LIBRARIES}/{file}",), f"LD_PRELOAD={LIBRARIES}/{file} ./run {BANK} >/dev/null\n")


TOOLS = [
    tool("kill", "coreutils", ("sleep",), BACKGROUND + "sleep 0.3\nkill -9 $pid\nwait $pid || true\n", RESUMED, quick=True),
    tool("gdb attach", "gdb", ("gdb",), BACKGROUND + "for i in 1 2 3; do gdb -nx -batch -p $pid -ex 'handle SIGSEGV nostop noprint pass' -ex 'thread apply all bt 1' "
         "-ex detach >gdb.log 2>&1; sleep 0.1; done\ngrep -c sp-checkpoint gdb.log\nkill -9 $pid\nwait $pid || true\n", RESUMED),
    tool("strace -f", "strace", ("strace",), f"strace -f -o log ./run {BANK} >/dev/null\n"),
    tool("strace attach", "strace", ("strace",), BACKGROUND + "timeout -s INT 1 strace -f -q -o log -p $pid || true\nsleep 0.2\nkill -9 $pid\nwait $pid || true\n", RESUMED),
    tool("ltrace", "ltrace", ("ltrace",), f"./run ltrace -f -o log -e sp_malloc $BANK --accounts 50 --threads 2 --transfers 5000 >/dev/null\n", limit_s=240),
    tool("perf", "linux-perf", ("perf",), f"perf stat -o log ./run {BANK} >/dev/null\n"),
    allocator("jemalloc", "libjemalloc2", "libjemalloc.so.2"),
    allocator("mimalloc", "libmimalloc2.0", "libmimalloc.so.2"),
    allocator("tcmalloc", "libtcmalloc-minimal4", "libtcmalloc_minimal.so.4"),
    tool("faketime", "faketime", ("faketime",), f"./run faketime '2001-01-01 00:00:00' {BANK} >/dev/null\n"),
    tool("faketime x50", "faketime", ("faketime",), f"./run faketime -f '@2001-01-01 00:00:00 x50' {BANK} >/dev/null\n"),
    tool("faketime stopped", "faketime", ("faketime",), f"./run faketime -f '2001-01-01 00:00:00' {BANK} >/dev/null\n"),
    tool("stdbuf", "coreutils", ("stdbuf",), f"stdbuf -oL ./run {BANK} >/dev/null\n./run stdbuf -oL $BANK --transfers 5000 >/dev/null\n"),
    tool("fakeroot", "fakeroot", ("fakeroot",), f"fakeroot ./run {BANK} >/dev/null\n"),
    tool("wrappers", "util-linux", ("setsid", "taskset"), "./run env A=1 nice -n 1 timeout 100 setsid -w taskset -c 0-1 "
         f"sh -c 'exec \"$@\"' sh {BANK} >/dev/null\n", quick=True),
    tool("stripped, renamed", "binutils", ("strip",), f"cp $BANK other-1.0\n./run ./other-1.0 --accounts 50 --threads 2 --transfers 2000 >/dev/null\n"
         "mv other-1.0 other-1.1\nstrip other-1.1\n./run ./other-1.1 --transfers 5000 >/dev/null\n", quick=True),
    tool("valgrind", "valgrind", ("valgrind",), "./run valgrind -q --error-exitcode=9 "
         "$BANK --accounts 50 --threads 2 --transfers 5000 >/dev/null 2>log\n", limit_s=240, variants=("mprotect",)),
    tool("helgrind", "valgrind", ("valgrind",), "./run valgrind -q --tool=helgrind "
         "$BANK --accounts 50 --threads 2 --transfers 5000 >/dev/null 2>log\n", limit_s=240, variants=("mprotect",)),
]
