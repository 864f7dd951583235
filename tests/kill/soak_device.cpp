#include "soak_device.hpp"

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <liburing.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "stillpoint/nvhooks.h"
#include "stillpoint/stillpoint.h"

namespace soak {

namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t file_pages = 256;
constexpr std::uint64_t block_pages = 32;

int device = -1;
bool rings_wanted = false;

/// Every word of a page says which page it is.
void fill(std::uint64_t (&words)[page_bytes / 8], std::uint64_t page)
{
    for (std::uint64_t i = 0; i < page_bytes / 8; ++i) {
        words[i] = page * 0x9e3779b97f4a7c15U + i;
    }
}

bool make_file(const std::string& path)
{
    const std::string part = path + ".part";
    const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool made = file >= 0;
    for (std::uint64_t page = 0; made && page < file_pages; ++page) {
        std::uint64_t words[page_bytes / 8];
        fill(words, page);
        made = pwrite(file, words, sizeof words, static_cast<off_t>(page * page_bytes)) == sizeof words;
    }
    made = made && fdatasync(file) == 0 && rename(part.c_str(), path.c_str()) == 0;
    if (file >= 0) {
        close(file);
    }
    return made;
}

/// The ring of one thread.
struct Ring {
    io_uring ring{};
    bool there = io_uring_queue_init(8, &ring, 0) == 0;
    ~Ring()
    {
        if (there) {
            io_uring_queue_exit(&ring);
        }
    }
    bool read(void* buffer, std::uint64_t size, std::uint64_t offset, bool fixed)
    {
        const iovec part{buffer, size};
        if (fixed && io_uring_register_buffers(&ring, &part, 1) != 0) {
            return false;
        }
        io_uring_sqe* const entry = io_uring_get_sqe(&ring);
        if (fixed) {
            io_uring_prep_read_fixed(entry, device, buffer, static_cast<unsigned>(size), offset, 0);
        } else {
            io_uring_prep_read(entry, device, buffer, static_cast<unsigned>(size), offset);
        }
        io_uring_cqe* done = nullptr;
        const bool whole = io_uring_submit(&ring) == 1 && io_uring_wait_cqe(&ring, &done) == 0 && done->res == static_cast<int>(size);
        if (done != nullptr) {
            io_uring_cqe_seen(&ring, done);
        }
        if (fixed) {
            io_uring_unregister_buffers(&ring);
        }
        return whole;
    }
};

}  // namespace

bool open_device(const char* notes, bool rings)
{
    rings_wanted = rings;
    const std::string path = std::string(notes) + ".device";
    struct stat facts{};
    if ((stat(path.c_str(), &facts) != 0 || facts.st_size != file_pages * page_bytes) && !make_file(path)) {
        return false;
    }
    device = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    return device >= 0;
}

bool read_device(DeviceBlock& block, std::uint64_t random, std::atomic<std::uint64_t>& made)
{
    if (block.bytes == nullptr) {
        block.bytes = static_cast<unsigned char*>(sp_aligned_alloc(page_bytes, block_pages * page_bytes));
        if (block.bytes == nullptr) {
            ++block.reads;
            sp_mark_written(&block, sizeof block);
            return true;  // The pool is at its maximum.
        }
    }
    const std::uint64_t first = random % (file_pages - block_pages);
    const std::uint64_t size = block_pages * page_bytes;
    static thread_local Ring ring;
    const auto way = rings_wanted && ring.there ? random / file_pages % 3 : 0;
    const bool whole = way != 0 ? ring.read(block.bytes, size, first * page_bytes, way == 2)
                                : pread(device, block.bytes, size, static_cast<off_t>(first * page_bytes)) == static_cast<ssize_t>(size);
    made.fetch_add(whole ? 1 : 0);
    block.first = 1 + first;
    ++block.reads;
    sp_mark_written(&block, sizeof block);
    return whole;
}

bool verify_device(const DeviceBlock& block)
{
    for (std::uint64_t page = 0; block.first != 0 && page < block_pages; ++page) {
        std::uint64_t words[page_bytes / 8];
        fill(words, block.first - 1 + page);
        if (std::memcmp(words, block.bytes + page * page_bytes, page_bytes) != 0) {
            return false;
        }
    }
    return true;
}

}  // namespace soak
