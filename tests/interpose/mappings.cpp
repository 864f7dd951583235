// Tries every call that would map over durable memory, take it away, or hide stores from the tracker: each must be refused with EPERM, and
// the memory must be as before. What is harmless must work. After both, stores are followed as before.
//
// First life: each attempt gets pages of its own; after it they are stored to again; then a checkpoint and a kill. Second life: they hold
// what was stored last. Prints the attempts that went otherwise.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <iterator>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "marks_by_hand.h"
#include "stillpoint/stillpoint.h"

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t place_bytes = 4 * page_bytes;
constexpr int both = PROT_READ | PROT_WRITE;

char* elsewhere(std::size_t size = place_bytes)
{
    return static_cast<char*>(mmap(nullptr, size, both, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

bool refused(long result) { return result == -1 && errno == EPERM; }
bool refused(void* result) { return result == MAP_FAILED && errno == EPERM; }

int memory_file() { return static_cast<int>(syscall(SYS_memfd_create, "mappings", MFD_CLOEXEC)); }

int segment_of(std::size_t bytes) { return shmget(IPC_PRIVATE, bytes, 0600); }

bool refuses_shared(char* at)
{
    const int segment = segment_of(place_bytes);
    const bool was = refused(shmat(segment, at, SHM_REMAP)) && refused(syscall(SYS_shmat, segment, at, SHM_REMAP));
    shmctl(segment, IPC_RMID, nullptr);
    return was;
}

bool refuses_process(char* at, int advice)
{
    iovec part{at, place_bytes};
    const int self = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
    return refused(syscall(SYS_process_madvise, self, &part, 1, advice, 0)) && refused(process_madvise(self, &part, 1, advice, 0));
}

bool every_advice(char* at, std::initializer_list<int> list)
{
    return std::all_of(list.begin(), list.end(), [at](int advice) {
        // EINVAL: a kernel built without it.
        return madvise(at, place_bytes, advice) == 0 || errno == EINVAL || std::printf("advice %d: errno %d\n", advice, errno) < 0;
    });
}

/// A connection of this machine to itself: the end that receives what `bytes` are sent.
int connection_with(const char* bytes, std::size_t size)
{
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    return bind(listener, any, length) == 0 && listen(listener, 1) == 0 && getsockname(listener, any, &length) == 0 &&
                   connect(client, any, length) == 0 && send(client, bytes, size, 0) == static_cast<ssize_t>(size)
               ? accept(listener, nullptr, nullptr)
               : -1;
}

/// The mapping of a socket that TCP_ZEROCOPY_RECEIVE needs.
bool refuses_socket(char* at) { return refused(mmap(at, place_bytes, PROT_READ, MAP_SHARED | MAP_FIXED, connection_with("", 0), 0)); }

/// The kernel copies parts that are too small for whole pages, here to durable memory.
bool receives_without_copy(char* at)
{
    static const char sent[] = "received";
    const int end = connection_with(sent, sizeof sent);
    void* const pages = mmap(nullptr, place_bytes, PROT_READ, MAP_SHARED, end, 0);
    tcp_zerocopy_receive wanted{};
    wanted.address = reinterpret_cast<std::uint64_t>(pages);
    wanted.length = place_bytes;
    wanted.copybuf_address = reinterpret_cast<std::uint64_t>(at);
    wanted.copybuf_len = page_bytes;
    socklen_t bytes = sizeof wanted;
    char byte = 0;
    return recv(end, &byte, 1, MSG_PEEK) == 1 && getsockopt(end, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &wanted, &bytes) == 0 &&
           wanted.copybuf_len == sizeof sent && std::memcmp(at, sent, sizeof sent) == 0;
}

/// Pages that are given to a pipe, and moved from there into a file that is then written to.
bool gives_pages(char* at)
{
    int ends[2];
    iovec part{at, page_bytes};
    const int file = memory_file();
    char was[page_bytes];
    char now[page_bytes];
    std::memcpy(was, at, page_bytes);
    std::memset(now, 0x77, page_bytes);
    return pipe(ends) == 0 && vmsplice(ends[1], &part, 1, SPLICE_F_GIFT) == static_cast<ssize_t>(page_bytes) &&
           splice(ends[0], nullptr, file, nullptr, page_bytes, SPLICE_F_MOVE) == static_cast<ssize_t>(page_bytes) &&
           pwrite(file, now, page_bytes, 0) == static_cast<ssize_t>(page_bytes) && std::memcmp(at, was, page_bytes) == 0;
}

/// A child may do what it likes with its copy; one without a copy ends as others do.
bool leaves_children_alone(char* at)
{
    if (madvise(at, page_bytes, MADV_DONTFORK) != 0) {
        return false;
    }
    const pid_t child = fork();
    if (child == 0) {
        const bool may = munmap(at + page_bytes, page_bytes) == 0 && mprotect(at + 2 * page_bytes, page_bytes, PROT_READ) == 0 &&
                         mmap(at, page_bytes, both, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
        _exit(may ? 0 : 1);
    }
    int status = 1;
    return madvise(at, page_bytes, MADV_DOFORK) == 0 && waitpid(child, &status, 0) == child && status == 0;
}

struct Attempt {
    const char* name;
    bool (*try_at)(char* at);
    bool stores = false;  ///< the pages may hold something else afterwards
};

constexpr int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

const Attempt attempts[] = {
    {"mmap", [](char* at) { return refused(mmap(at, page_bytes, both, fixed, -1, 0)); }},
    {"mmap64", [](char* at) { return refused(mmap64(at, page_bytes, both, fixed, -1, 0)); }},
    {"mmap of a file", [](char* at) { return refused(mmap(at, page_bytes, PROT_READ, MAP_SHARED | MAP_FIXED, memory_file(), 0)); }},
    {"mmap of one byte", [](char* at) { return refused(mmap(at, 1, both, fixed, -1, 0)); }},
    {"mmap by number", [](char* at) { return refused(syscall(SYS_mmap, at, page_bytes, both, fixed, -1, 0)); }},
    {"mmap with MAP_FIXED_NOREPLACE",
     [](char* at) { return mmap(at, page_bytes, both, fixed | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST; }},
    {"mmap with a hint",
     [](char* at) {
         void* const other = mmap(at, page_bytes, both, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         return other != MAP_FAILED && other != at && munmap(other, page_bytes) == 0;
     }},
    {"mmap of a socket", refuses_socket},
    {"munmap", [](char* at) { return refused(munmap(at, page_bytes)); }},
    {"munmap by number", [](char* at) { return refused(syscall(SYS_munmap, at, page_bytes)); }},
    {"munmap of much more", [](char*) { return refused(munmap(reinterpret_cast<void*>(0x100000000000), 0x600000000000)); }},
    {"munmap of nothing", [](char* at) { return munmap(at, 0) == -1 && errno == EINVAL; }},
    {"mremap away", [](char* at) { return refused(mremap(at, page_bytes, page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere())); }},
    {"mremap shorter", [](char* at) { return refused(mremap(at, place_bytes, page_bytes, 0)); }},
    {"mremap onto", [](char* at) { return refused(mremap(elsewhere(), page_bytes, page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at)); }},
    {"mremap by number",
     [](char* at) { return refused(syscall(SYS_mremap, elsewhere(), page_bytes, page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at)); }},
    {"remap_file_pages", [](char* at) { return refused(remap_file_pages(at, page_bytes, 0, 0, 0)); }},
    {"mprotect", [](char* at) { return refused(mprotect(at, page_bytes, PROT_NONE)); }},
    {"mprotect to what it is", [](char* at) { return refused(mprotect(at, page_bytes, both)); }},
    {"mprotect by number", [](char* at) { return refused(syscall(SYS_mprotect, at, page_bytes, PROT_READ)); }},
    {"pkey_mprotect", [](char* at) { return refused(pkey_mprotect(at, page_bytes, both, -1)); }},
    {"mseal", [](char* at) { return refused(syscall(462, at, page_bytes, 0)); }},
    {"madvise DONTNEED", [](char* at) { return refused(madvise(at, page_bytes, MADV_DONTNEED)); }},
    {"madvise DONTNEED by number", [](char* at) { return refused(syscall(SYS_madvise, at, page_bytes, MADV_DONTNEED)); }},
    {"madvise FREE", [](char* at) { return refused(madvise(at, page_bytes, MADV_FREE)); }},
    {"madvise REMOVE", [](char* at) { return refused(madvise(at, page_bytes, MADV_REMOVE)); }},
    {"madvise WIPEONFORK", [](char* at) { return refused(madvise(at, page_bytes, MADV_WIPEONFORK)); }},
    {"madvise GUARD_INSTALL", [](char* at) { return refused(madvise(at, page_bytes, 102)); }},
    {"process_madvise", [](char* at) { return refuses_process(at, MADV_DONTNEED); }},
    {"shmat", refuses_shared},
    {"shmat without SHM_REMAP",
     [](char* at) {
         const int segment = segment_of(page_bytes);
         const bool failed = shmat(segment, at, 0) == reinterpret_cast<void*>(-1) && errno == EINVAL;
         shmctl(segment, IPC_RMID, nullptr);
         return failed;
     }},
    {"harmless advice",
     [](char* at) {
         return every_advice(at, {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DODUMP, MADV_DONTDUMP, MADV_COLD,
                                  MADV_PAGEOUT, MADV_POPULATE_READ, MADV_MERGEABLE, MADV_UNMERGEABLE});
     }},
    {"advice of huge pages", [](char* at) { return every_advice(at, {MADV_HUGEPAGE, MADV_NOHUGEPAGE}); }},
    {"posix_madvise", [](char* at) { return posix_madvise(at, page_bytes, POSIX_MADV_DONTNEED) == 0; }},
    {"mlock", [](char* at) { return mlock(at, page_bytes) == 0 && munlock(at, page_bytes) == 0; }},
    {"TCP_ZEROCOPY_RECEIVE", receives_without_copy, true},
    {"vmsplice with SPLICE_F_GIFT", gives_pages},
    {"children", leaves_children_alone},
};

struct State {
    bool filled;
    char* places;
};

char* place_of(const State& state, const Attempt& attempt)
{
    return state.places + static_cast<std::size_t>(&attempt - attempts) * place_bytes;
}

void fill(char* place, std::size_t first)
{
    sp_fase_begin();
    for (std::size_t i = 0; i < place_bytes; ++i) {
        place[i] = static_cast<char>(first + i / 64);
    }
    sp_mark_written(place, place_bytes);
    sp_fase_end();
}

bool holds(const char* place, std::size_t first)
{
    for (std::size_t i = 0; i < place_bytes; ++i) {
        if (place[i] != static_cast<char>(first + i / 64)) {
            return false;
        }
    }
    return true;
}

int first_life(State& state)
{
    sp_fase_begin();
    state.places = static_cast<char*>(sp_aligned_alloc(page_bytes, std::size(attempts) * place_bytes));
    sp_mark_written(&state, sizeof state);
    sp_fase_end();
    for (const Attempt& attempt : attempts) {
        fill(place_of(state, attempt), 1);
    }
    if (sp_checkpoint() != SP_OK) {
        return 1;
    }
    int otherwise = 0;
    for (const Attempt& attempt : attempts) {
        char* const place = place_of(state, attempt);
        errno = 0;
        const bool as_expected = attempt.try_at(place);
        if (!as_expected || !(attempt.stores || holds(place, 1))) {
            std::printf("%s: %s, errno %d\n", attempt.name, as_expected ? "the memory has changed" : "not as expected", errno);
            std::fflush(stdout);
            ++otherwise;
        }
    }
    for (const Attempt& attempt : attempts) {
        fill(place_of(state, attempt), 2);
    }
    sp_fase_begin();
    state.filled = true;
    sp_mark_written(&state, sizeof state);
    sp_fase_end();
    return otherwise == 0 && sp_checkpoint() == SP_OK ? raise(SIGKILL) : 1;
}

int second_life(const State& state)
{
    int lost = 0;
    for (const Attempt& attempt : attempts) {
        if (!holds(place_of(state, attempt), 2)) {
            std::printf("%s: later stores are lost\n", attempt.name);
            ++lost;
        }
    }
    char* const all = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(&state) / page_bytes * page_bytes);
    if (sp_close() != SP_OK || mmap(all, page_bytes, both, fixed, -1, 0) != all || munmap(all, page_bytes) != 0) {
        std::printf("after sp_close: not as expected\n");
        ++lost;
    }
    std::printf("%zu attempts\n", std::size(attempts));
    return lost == 0 ? 0 : 1;
}

}  // namespace

int main()
{
    auto* const state = static_cast<State*>(sp_root("mappings", sizeof(State)));
    if (state == nullptr) {
        std::fprintf(stderr, "mappings: %s\n", sp_last_error());
        return 2;
    }
    return state->filled ? second_life(*state) : first_life(*state);
}
