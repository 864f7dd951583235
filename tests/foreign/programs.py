"""Compressors, databases, interpreters, language runtimes, media and build tools of Debian."""

from table import NUMBERS, Program


def compressor(name, package, pack, unpack, **more):
    """`pack` writes "packed" from $INPUTS/text, `unpack` writes "unpacked"."""
    script = f"./run {pack}\ncksum < packed\n./run {unpack}\ncmp unpacked $INPUTS/text && echo same\n"
    return Program(name, package, (pack.split()[0],), script, **more)


COMPRESSORS = [
    compressor("pigz", "pigz", "pigz -p 4 -b 128 -c -n $INPUTS/text > packed", "pigz -d -c packed > unpacked", quick=True),
    compressor("pbzip2", "pbzip2", "pbzip2 -p4 -b1 -c $INPUTS/text > packed", "pbzip2 -p4 -d -c packed > unpacked"),
    compressor("lbzip2", "lbzip2", "lbzip2 -n 4 -c $INPUTS/text > packed", "lbzip2 -n 4 -d -c packed > unpacked"),
    compressor("pixz", "pixz", "pixz -p 4 -1 $INPUTS/text packed", "pixz -d -p 4 packed unpacked"),
    compressor("plzip", "plzip", "plzip -n 4 -1 -B 256Ki -c $INPUTS/text > packed", "plzip -n 4 -d -c packed > unpacked"),
    compressor("xz", "xz-utils", "xz -1 -T4 --block-size=262144 -c $INPUTS/text > packed", "xz -T4 -d -c packed > unpacked", quick=True),
    compressor("zstd", "zstd", "zstd -q -T4 -B262144 -c $INPUTS/text > packed", "zstd -q -d -c packed > unpacked"),
    compressor("bzip3", "bzip3", "bzip3 -e -b 1 -j 4 -c $INPUTS/text > packed", "bzip3 -d -b 1 -j 4 -c packed > unpacked"),
    Program("lrzip", "lrzip", ("lrzip",), "./run lrzip -q -p 4 -o packed $INPUTS/text\n./run lrzip -q -d -o unpacked packed\n"
            "cmp unpacked $INPUTS/text && echo same\n", drop="time|Speed"),
]

DATABASES = [
    Program("sqlite3", "sqlite3", ("sqlite3",), "./run sqlite3 a.db < $FILES/sqlite3.sql\n./run sqlite3 a.db 'SELECT count(*) FROM t'\n", quick=True),
    Program("tokyocabinet", "tokyocabinet-bin", ("tcumttest",), "./run tcumttest combo -rnd 3 3000\n./run tcmttest 2>/dev/null || true\n"
            "./run tchmttest write a.tch 3 3000\n./run tchmttest read a.tch 3\n./run tcbmttest write a.tcb 3 2000\n./run tcbmttest read a.tcb 3\n",
            drop=r"^\s*(time|iterator|seed)|^\.*$|\(\d+\)$", replace=NUMBERS, quick=True),
    Program("kyotocabinet", "kyotocabinet-utils", ("kchashtest",), "./run kcutiltest mutex -th 4 2000\n"
            "./run kchashtest order -th 3 a.kch 3000\n./run kcprototest wicked -th 3 2000\n",
            drop=r"^\s*(time|seed)|pid|^\.*\s*\(|%", replace=NUMBERS),
    Program("lmdb", "lmdb-utils", ("mdb_load",), "mkdir a b\nawk '{ print NR; print $0 }' $INPUTS/lines | ./run mdb_load -T a\n"
            "./run mdb_copy -c a b\n./run mdb_dump a | cksum\n./run mdb_dump b | cksum\n./run mdb_stat b\n"),
    Program("rocksdb", "rocksdb-tools", ("db_bench",), "./run db_bench --db=$PWD/db --num=4000 "
            "--benchmarks=fillrandom,readwhilewriting,compact,levelstats --threads=3 --seed=1 --max_background_jobs=3 --compression_type=none 2>/dev/null | grep -c 'micros/op'\n"),
]

PYTHON_DROP = r"^(==|\d+:\d+:\d+|Using random seed|Total duration|Total tests|Result|Raised RLIMIT|\d+ test|Run |Tests result)"
LANGUAGES = [
    Program("python-threads", "libpython3.11-testsuite", ("/usr/bin/python3.11", "/usr/lib/python3.11/test/test_queue.py"),
            "./run /usr/bin/python3.11 -m test -q test_thread test_threading_local test_queue test_threadsignals test_contextlib\n",
            drop=PYTHON_DROP, limit_s=240),
    Program("python-threading", "libpython3.11-testsuite", ("/usr/bin/python3.11", "/usr/lib/python3.11/test/test_queue.py"),
            "./run /usr/bin/python3.11 -m test -q test_threading -m LockTests -m CRLockTests -m PyRLockTests -m EventTests "
            "-m ConditionTests -m SemaphoreTests -m BoundedSemaphoreTests -m BarrierTests -m TimerTests\n", drop=PYTHON_DROP, limit_s=240),
    Program("perl", "perl", ("perl",), "./run perl $FILES/perl.pl\n", quick=True),
    Program("ruby", "ruby", ("ruby",), "./run ruby -W0 $FILES/ruby.rb\n"),
    Program("tcl", "tcl-thread", ("tclsh",), "./run tclsh $FILES/tcl.tcl\n"),
    Program("guile", "guile-3.0", ("guile",), "./run guile --no-auto-compile $FILES/guile.scm\n"),
    Program("erlang", "erlang-base", ("erl",), "./run erl -noshell +S 4:4 -eval \"$(cat $FILES/erlang.txt)\"\n"),
    Program("node", "nodejs", ("node",), "./run node $FILES/node.js\n"),
    Program("java", "default-jdk-headless", ("java", "javac"),
            "javac -d . $FILES/Main.java\n./run java -Xmx128m -XX:+UseParallelGC -cp . Main\n",
            drop="no quiescent state for a last checkpoint", keeps=False),  # The program's threads may hold a lock forever at its end.
    Program("go", "golang-go gcc", ("go", "gcc"), "export GOCACHE=$CACHE/go GOPATH=$CACHE/gopath GOFLAGS=-mod=mod CGO_ENABLED=1\n"
            "go build -o main $FILES/main.go\n./run ./main\n", keeps=False),  # Go ends past libc, which is as a kill.
    Program("rust", "rustc", ("rustc",), "rustc -O -o main $FILES/main.rs\n./run ./main\n"),
]

TOOLS = [
    Program("sort", "coreutils", ("sort",), "./run sort --parallel=4 -S 64M -k2,2n -k1,1 $INPUTS/many | cksum\n", quick=True),
    Program("git", "git", ("git",), "git init -q -b main . && cp $INPUTS/lines a && split -l 100 a part- && git add . && "
            "GIT_AUTHOR_DATE='1 Jan 2020 0:0 +0' GIT_COMMITTER_DATE='1 Jan 2020 0:0 +0' git -c user.name=a -c user.email=b commit -qm x\n"
            "./run git -c pack.threads=4 repack -adfq --threads=4\n"
            "./run git index-pack --threads=4 -o i.idx .git/objects/pack/*.pack >/dev/null\n./run git -c grep.threads=4 grep -c a1 | cksum\n./run git fsck --no-progress\n"),
    Program("make", "make", ("make",), "./run make -s -j4 -f $FILES/Makefile\ncat f* | cksum\n"),
    Program("ninja", "ninja-build", ("ninja",), "cp $FILES/build.ninja .\n./run ninja -j4 --quiet\ncat f* | cksum\n"),
    Program("ripgrep", "ripgrep", ("rg",), "cd $INPUTS\n$OLDPWD/run rg -j4 -c 'a[0-9]' .\n", sorted_lines=True),
    Program("fd", "fd-find", ("fdfind",), "./run fdfind -j4 . $INPUTS -x cksum\n", sorted_lines=True),
    Program("ag", "silversearcher-ag", ("ag",), "./run ag --workers 4 -c 'a[0-9]' $INPUTS\n", sorted_lines=True),
    Program("openssl", "openssl", ("openssl",), "./run openssl speed -multi 2 -seconds 1 -bytes 1024 sha256 2>/dev/null | grep -c sha256\n"),
    Program("stress-ng", "stress-ng", ("stress-ng",), "./run stress-ng --quiet --timeout 2 --pthread 1 --mutex 1 --futex 1 --sem 1 "
            "--sigsegv 1 --fork 1\necho ended $?\n"),
    Program("sysbench", "sysbench", ("sysbench",), "./run sysbench threads --threads=4 --events=400 --time=0 run\n"
            "./run sysbench mutex --threads=4 --mutex-locks=2000 run\n",
            drop=r"\d", replace=NUMBERS),
]

MEDIA = [
    Program("ffmpeg", "ffmpeg", ("ffmpeg",), "./run ffmpeg -v error -f lavfi -i testsrc=size=320x240:rate=25:duration=2 "
            "-threads 4 -filter_threads 4 -c:v mpeg2video -flags +bitexact -f framemd5 -\n"),
    Program("x264", "x264", ("x264", "ffmpeg"), "ffmpeg -v error -f lavfi -i testsrc=size=320x240:rate=25:duration=1 -pix_fmt yuv420p a.y4m\n"
            "./run x264 --quiet --threads 4 --preset fast -o a.264 a.y4m 2>/dev/null\ncksum < a.264\n"),
    Program("graphicsmagick", "graphicsmagick", ("gm",), "export OMP_NUM_THREADS=4\n./run gm convert -size 400x400 gradient:red-blue "
            "-blur 5x2 -rotate 30 -resize 250x a.ppm\ncksum < a.ppm\n"),
]

PROGRAMS = COMPRESSORS + DATABASES + LANGUAGES + TOOLS + MEDIA
