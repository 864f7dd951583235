// Pages that system calls fill, names that come and go, and threads that wait for one another.

#include "respct_parts.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

extern "C" {
#include "program_arguments.h"
}

constexpr std::size_t page_bytes = 4096;
constexpr std::uint64_t page_count = 64;
constexpr std::uint64_t chunks_max = 60;
constexpr std::uint64_t chunks_min = 12;  ///< as long as there are no more, none is dropped
constexpr unsigned names_max = 6;

struct alignas(page_bytes) Chunk {
    unsigned char bytes[page_bytes];
    Chunk* older;
    std::uint64_t made_in;  ///< an epoch
    Logged<std::uint64_t> filled;  ///< 1 + its page; 0: nothing was read yet
};

struct Named {
    Logged<std::uint64_t> value;
};

namespace {

std::string path_of_pages() { return std::string(arguments.source) + ".pages"; }

void fill_page(std::uint64_t (&words)[page_bytes / 8], std::uint64_t page)
{
    for (std::uint64_t i = 0; i < page_bytes / 8; ++i) {
        words[i] = (page + 1) * 0x9e3779b97f4a7c15U + i;
    }
}

int pages_file(bool direct)
{
    static thread_local int files[2] = {-1, -1};
    int& file = files[direct ? 1 : 0];
    if (file < 0) {
        file = open(path_of_pages().c_str(), O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
        file = file < 0 && errno == EINVAL ? open(path_of_pages().c_str(), O_RDONLY | O_CLOEXEC) : file;
        must(file < 0 ? errno : 0, "open of the pages");
    }
    return file;
}

ssize_t read_by_socket(int file, void* to, off_t offset)
{
    char bytes[page_bytes];
    int ends[2];
    if (pread(file, bytes, page_bytes, offset) != page_bytes || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return -1;
    }
    const ssize_t got = send(ends[1], bytes, page_bytes, 0) == page_bytes ? recv(ends[0], to, page_bytes, 0) : -1;
    close(ends[0]);
    close(ends[1]);
    return got;
}

ssize_t read_page(respct_fill fill, unsigned char* to, std::uint64_t page)
{
    const auto offset = static_cast<off_t>(page * page_bytes);
    const iovec halves[] = {{to, page_bytes / 2}, {to + page_bytes / 2, page_bytes / 2}};
    switch (fill) {
    case BY_PREAD: return pread(pages_file(false), to, page_bytes, offset);
    case BY_PREADV: return preadv(pages_file(false), halves, 2, offset);
    case BY_PREAD_DIRECT: return pread(pages_file(true), to, page_bytes, offset);
    case BY_SOCKET: return read_by_socket(pages_file(false), to, offset);
    }
    return -1;
}

}  // namespace

void make_pages()
{
    struct stat facts{};
    if (stat(path_of_pages().c_str(), &facts) == 0) {
        return;
    }
    const std::string made = path_of_pages() + std::to_string(getpid());
    const int file = open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (std::uint64_t page = 0; page < page_count; ++page) {
        std::uint64_t words[page_bytes / 8];
        fill_page(words, page);
        must(write(file, words, sizeof words) == sizeof words ? 0 : errno, "write of the pages");
    }
    must(close(file) == 0 && rename(made.c_str(), path_of_pages().c_str()) == 0 ? 0 : errno, "rename of the pages");
}

// -- Pages that system calls fill

/// Into a page whose making is durable, where there is one: until then what make() tells would cover a read that the library forgets.
void chunk_read(unsigned number, respct_worker* worker, respct_fill fill)
{
    Head& head = *parts[number].head;
    Chunk* chunk = head.newest;
    while (chunk != nullptr && (chunk->filled != 0 || chunk->made_in + 1 >= sp_epoch())) {
        chunk = chunk->older;
    }
    if (chunk == nullptr && head.count >= chunks_max) {
        chunk_drop(number, worker);
        return;
    }
    touch(number, *worker);
    if (chunk == nullptr) {
        chunk = respct::make<Chunk>();
        chunk->older = head.newest;
        chunk->made_in = sp_epoch();
        respct::add_modified(&chunk->older, sizeof chunk->older + sizeof chunk->made_in);
        head.newest = chunk;
        ++head.count;
        return;
    }
    const std::uint64_t page = random_below(page_count);
    const ssize_t got = read_page(fill, chunk->bytes, page);
    if (got != page_bytes) {
        must(got < 0 ? errno : EIO, "a read into durable memory");
    }
    chunk->filled = 1 + page;
}

void chunk_drop(unsigned number, respct_worker* worker)
{
    Head& head = *parts[number].head;
    Chunk* const chunk = head.newest;
    if (head.count <= chunks_min) {
        return;
    }
    touch(number, *worker);
    head.newest = chunk->older;
    --head.count;
    respct::destroy(chunk);
}

std::uint64_t verify_chunks(const Part& part)
{
    std::uint64_t count = 0;
    for (const Chunk* chunk = part.head->newest; chunk != nullptr && count <= part.head->count; chunk = chunk->older, ++count) {
        if (chunk->filled != 0) {
            std::uint64_t words[page_bytes / 8];
            fill_page(words, chunk->filled - 1);
            expect_equal("a page that was read", 0, std::memcmp(words, chunk->bytes, page_bytes) == 0 ? 0 : 1);
        }
    }
    expect_equal("the pages that were read", part.head->count, count);
    return count;
}

// -- Names that come and go

namespace {

std::string name_in(const Part& part, std::uint64_t number)
{
    return "name " + std::to_string(number) + " of part " + std::to_string(&part - parts.data());
}

}  // namespace

void name_toggle(unsigned number, respct_worker* worker)
{
    const Part& part = parts[number];
    const std::uint64_t which = random_below(names_max);
    touch(number, *worker);
    if ((part.head->there >> which & 1) != 0) {
        must(sp_root_delete(name_in(part, which).c_str()), "sp_root_delete");
    } else {
        Named* const made = respct::root<Named>(name_in(part, which).c_str());
        expect_equal("the value of a new name", 0, made->value);
        made->value = which + 1;
    }
    part.head->there ^= std::uint64_t{1} << which;
}

std::uint64_t verify_names(const Part& part)
{
    std::uint64_t count = 0;
    for (unsigned which = 0; which < names_max; ++which) {
        const bool there = (part.head->there >> which & 1) != 0;
        const auto* const object = static_cast<const Named*>(sp_root_find(name_in(part, which).c_str(), nullptr));
        expect_equal("a name is there", there ? 1 : 0, object != nullptr ? 1 : 0);
        expect_equal("the value of a name", there ? which + 1 : 0, object != nullptr ? object->value : 0);
        count += there ? 1 : 0;
    }
    return count;
}

// -- Threads that wait for one another

void meeting_enter(unsigned number) { parts[number].meeting->lock.lock(); }

void meeting_wait(unsigned number)
{
    Meeting& meeting = *parts[number].meeting;
    while (meeting.put == meeting.taken) {
        sp_respct_wait(meeting.changed.native_handle(), meeting.lock.native_handle());
    }
}

void meeting_put(unsigned number, respct_worker* worker)
{
    touch(number, *worker);
    ++parts[number].meeting->put;
    parts[number].meeting->changed.notify_one();
}

void meeting_take(unsigned number, respct_worker* worker)
{
    touch(number, *worker);
    ++parts[number].meeting->taken;
}

void meeting_leave(unsigned number) { parts[number].meeting->lock.unlock(); }

/// A thread that has put need not have been met before the crash.
void verify_queue(const Part& part)
{
    const std::uint64_t put = part.meeting->put, taken = part.meeting->taken;
    expect_equal("what was taken had been put", 1, taken <= put ? 1 : 0);
    std::uint64_t touched = 0;
    for (const auto& count : part.head->touched) {
        touched += count;
    }
    expect_equal("what was put and taken", touched, put + taken);
}
