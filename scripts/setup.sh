#!/bin/sh
# setup.sh build|test|cluster|guest|memcached|foreign|site: makes sure that the Debian packages for building (or also for testing, for
# a Ceph cluster, for the virtual machine of `make guest`, for memcached, for foreign programs, or for the site) are installed. Does
# nothing, in some milliseconds, where they are. Asks for root only to install.
# On a system without apt it prints what is missing and stops: exit code 69 (EX_UNAVAILABLE).
set -eu

# What makes the documents into a site with search; the test of that site.
site_packages="mkdocs mkdocs-material"
# The compiler, the build system, and the libraries of cmake/Dependencies.cmake.
build_packages="gcc g++ cmake ninja-build pkg-config python3 libfmt-dev libcli11-dev libxxhash-dev
liburing-dev libexpected-dev libdw-dev libevent-dev nlohmann-json3-dev systemtap-sdt-dev libgtest-dev"
# A Ceph cluster of ordinary processes, for `make cluster-test`: no service is started by them without a configuration.
cluster_packages="ceph-mon ceph-osd ceph-mgr ceph-base ceph-common librados2 librados-dev iproute2"
# Packages to fetch and build memcached's source, the client that its tests and its demo speak through, and the second client of
# its benchmark.
memcached_packages="dpkg-dev libsasl2-dev libssl-dev openssl python3-pymemcache libmemcached-tools"
# The virtual machine; its kernel is downloaded by tests/guest and never installed.
guest_packages="qemu-system-x86 qemu-utils busybox-static e2fsprogs cpio"
# The second compiler, and its runtime for the sanitizers; the headers that the compiler plugin is built with, and
# FileCheck; the runtime of the layer pmdk, which is also a peer of `stillpoint bench`; the other peers. Without llvm-19-dev the plugin
# is left out, without a runtime or a peer what needs it. Matplotlib draws the plots of the benchmark's report, and
# Chromium opens it in a test. Foreign programs that are tested with Stillpoint: what fetches and builds the sources of Kyoto Cabinet and
# rrdcached, and Tokyo Cabinet with its own test programs; and valgrind. The checks of packages and of the binary interface; a second
# shell, which reads its completion; gdb, which looks into pools. A reader of figures for Prometheus. Python's package is compiled by
# cffi. A compiler and an emulator for AArch64, for the arch layer there.
test_packages="clang-19 clang-format-19 libclang-rt-19-dev llvm-19-dev libpmemobj-dev liblmdb-dev librocksdb-dev libsqlite3-dev
python3-matplotlib chromium-headless-shell
lintian abigail-tools zsh gdb
python3-cffi python3-setuptools python3-dev
dpkg-dev zlib1g-dev libglib2.0-dev tokyocabinet-bin libtokyocabinet-dev valgrind python3-prometheus-client g++-aarch64-linux-gnu qemu-user
$guest_packages $memcached_packages $site_packages"
# The programs of tests/foreign. Servers are not here: tests/foreign/unpack.py takes them out of their packages, since
# installing would start them. Java, Go and Rust are used where they are, and not installed: they are large.
foreign_packages="pigz pbzip2 lbzip2 pixz plzip lrzip zstd bzip3 xz-utils
sqlite3 tokyocabinet-bin kyotocabinet-utils lmdb-utils rocksdb-tools
libpython3.11-testsuite perl ruby tcl-thread guile-3.0 erlang-base nodejs
git ninja-build ripgrep fd-find silversearcher-ag openssl stress-ng sysbench ffmpeg x264 graphicsmagick
redis-tools libmemcached-tools apache2-bin apache2-utils curl knot-dnsutils libopentracing-c-wrapper0
gdb strace ltrace linux-perf libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4 faketime fakeroot valgrind"

case "${1:-build}" in
build) wanted=$build_packages ;;
test) wanted="$build_packages $test_packages" ;;
cluster) wanted="$build_packages $cluster_packages" ;;
guest) wanted="$build_packages $guest_packages" ;;
memcached) wanted="$build_packages $memcached_packages" ;;
foreign) wanted="$build_packages $foreign_packages" ;;
site) wanted="python3 $site_packages" ;;
*)
    echo "setup: unknown argument '$1'; usage: scripts/setup.sh build|test|cluster|guest|memcached|foreign|site" >&2
    exit 64
    ;;
esac

# Without dpkg, the commands and headers themselves are looked for.
found_without_dpkg() {
    case "$1" in
    libfmt-dev) header=fmt/format.h ;;
    libcli11-dev) header=CLI/CLI.hpp ;;
    libxxhash-dev) header=xxhash.h ;;
    liburing-dev) header=liburing.h ;;
    libexpected-dev) header=tl/expected.hpp ;;
    libdw-dev) header=elfutils/libdwfl.h ;;
    libgtest-dev) header=gtest/gtest.h ;;
    libclang-rt-19-dev) command -v clang-19 >/dev/null 2>&1 && return 0 || return 1 ;;
    llvm-19-dev) command -v llvm-config-19 >/dev/null 2>&1 && return 0 || return 1 ;;
    nlohmann-json3-dev) header=nlohmann/json.hpp ;;
    librados-dev) header=rados/librados.h ;;
    librados2) ldconfig -p 2>/dev/null | grep -q librados.so.2 && return 0 || return 1 ;;
    ceph-base) command -v monmaptool >/dev/null 2>&1 && return 0 || return 1 ;;
    ceph-common) command -v ceph >/dev/null 2>&1 && return 0 || return 1 ;;
    iproute2) command -v ip >/dev/null 2>&1 && return 0 || return 1 ;;
    libevent-dev) header=event2/event.h ;;
    systemtap-sdt-dev) header=sys/sdt.h ;;
    libpmemobj-dev) header=libpmemobj.h ;;
    liblmdb-dev) header=lmdb.h ;;
    librocksdb-dev) header=rocksdb/db.h ;;
    libsqlite3-dev) header=sqlite3.h ;;
    python3-matplotlib) python3 -c "import matplotlib" 2>/dev/null && return 0 || return 1 ;;
    chromium-headless-shell)
        command -v "$1" >/dev/null 2>&1 || command -v chromium >/dev/null 2>&1 && return 0 || return 1 ;;
    dpkg-dev) command -v dpkg-source >/dev/null 2>&1 && return 0 || return 1 ;;
    zlib1g-dev) header=zlib.h ;;
    libglib2.0-dev) header=glib-2.0/glib.h ;;
    libtokyocabinet-dev) header=tcbdb.h ;;
    libsasl2-dev) header=sasl/sasl.h ;;
    libssl-dev) header=openssl/ssl.h ;;
    python3-pymemcache)
        python3 -c "import pymemcache" 2>/dev/null || /usr/bin/python3 -c "import pymemcache" 2>/dev/null && return 0 || return 1 ;;
    python3-prometheus-client) /usr/bin/python3 -c "import prometheus_client" 2>/dev/null && return 0 || return 1 ;;
    mkdocs-material) [ -d /usr/share/mkdocs/themes/material ] || python3 -c "import material" 2>/dev/null && return 0 || return 1 ;;
    libmemcached-tools) command -v memcaslap >/dev/null 2>&1 || command -v memaslap >/dev/null 2>&1 && return 0 || return 1 ;;
    python3-cffi) python3 -c "import cffi" 2>/dev/null && return 0 || return 1 ;;
    python3-setuptools) python3 -c "import setuptools" 2>/dev/null && return 0 || return 1 ;;
    python3-dev) header=python3.11/Python.h ;;
    abigail-tools) command -v abidiff >/dev/null 2>&1 && return 0 || return 1 ;;
    tokyocabinet-bin) command -v tcumttest >/dev/null 2>&1 && return 0 || return 1 ;;
    qemu-system-x86) command -v qemu-system-x86_64 >/dev/null 2>&1 && return 0 || return 1 ;;
    qemu-utils) command -v qemu-img >/dev/null 2>&1 && return 0 || return 1 ;;
    busybox-static) command -v busybox >/dev/null 2>&1 && return 0 || return 1 ;;
    e2fsprogs) [ -x /sbin/mke2fs ] || [ -x /usr/sbin/mke2fs ] && return 0 || return 1 ;;
    ninja-build) command -v ninja >/dev/null 2>&1 && return 0 || return 1 ;;
    *) command -v "$1" >/dev/null 2>&1 && return 0 || return 1 ;;
    esac
    [ -e "/usr/include/$header" ] || [ -e "/usr/local/include/$header" ]
}

missing=""
if command -v dpkg-query >/dev/null 2>&1; then
    # shellcheck disable=SC2086  # a list of words on purpose
    installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
        sed -n 's/^installed //p') || true
    for package in $wanted; do
        printf '%s\n' "$installed" | grep -qx "$package" || missing="$missing $package"
    done
else
    for package in $wanted; do
        found_without_dpkg "$package" || missing="$missing $package"
    done
fi
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: this is not a Debian system, so nothing was installed. Missing (Debian's names):" >&2
    for package in $missing; do echo "  $package" >&2; done
    echo "setup: install these with your system's package manager, then run make again" >&2
    exit 69
fi

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1; then
        as_root="sudo"
        [ -t 0 ] || as_root="sudo -n" # no terminal: no password can be typed
    else
        echo "setup: packages are missing, and this user is not root and has no sudo. As root, run:" >&2
        echo "  apt-get install$missing" >&2
        exit 77
    fi
fi

echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# apt's own output is shown only where it fails.
run_apt() {
    # shellcheck disable=SC2086
    if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" </dev/null >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        return 1
    fi
}
# Package lists may be recent enough: first without an update.
# shellcheck disable=SC2086
if ! run_apt install -y --no-install-recommends $missing 2>/dev/null; then
    echo "setup: updating the lists of packages"
    run_apt update || echo "setup: the update failed (above); trying with the lists as they are" >&2
    if ! run_apt install -y --no-install-recommends $missing; then
        echo "setup: installing failed (apt's last lines are above). Fix that, or as root run:" >&2
        echo "  apt-get install$missing" >&2
        exit 69
    fi
fi
echo "setup: done"
