// Slots in durable memory that system calls fill: whatever way the kernel or a device stores them, they must be there.

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "program.h"

enum { page_bytes = 4096, slot_count = 4 };

struct slots {
    struct head head;
    char* memory; // slot_count times parameter pages
    struct {
        uint64_t at;       // first byte in the slot
        uint64_t length;   // 0: never filled
        uint64_t offset;   // in the source file
        uint64_t checksum; // of random bytes, which come from no file; else 0
    } slot[slot_count];
};

struct range {
    char* to;
    size_t length;
    uint64_t offset;
};

static size_t slot_bytes(const struct part* part) { return (size_t)part->parameter * page_bytes; }

static size_t slots_bytes(const struct part* part)
{
    (void)part;
    return sizeof(struct slots);
}

static void slots_make(struct part* part)
{
    struct slots* const slots = (struct slots*)part->head;
    slots->memory = must_have(sp_aligned_alloc(page_bytes, slot_count * slot_bytes(part)), "sp_aligned_alloc");
}

static unsigned char source_byte(uint64_t offset) { return (unsigned char)(source_word(offset & ~(uint64_t)7) >> (8 * (offset & 7))); }

static uint64_t checksum_of(const char* bytes, size_t length)
{
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < length; ++i) {
        sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211u;
    }
    return sum | 1;
}

static void verify_bytes(const char* what, const char* bytes, size_t length, uint64_t offset)
{
    size_t i = 0;
    while (i < length) {
        if ((offset + i) % 8 == 0 && i + 8 <= length) {
            uint64_t word;
            memcpy(&word, bytes + i, 8);
            if (word == source_word(offset + i)) {
                i += 8;
                continue;
            }
        }
        if ((unsigned char)bytes[i] != source_byte(offset + i)) {
            fprintf(stderr, "program: %s: byte %zu of %zu, at %p\n", what, i, length, (const void*)(bytes + i));
            end_program(END_BROKEN, what, source_byte(offset + i), (unsigned char)bytes[i]);
        }
        ++i;
    }
}

static uint64_t slots_verify(const struct part* part)
{
    const struct slots* const slots = (const struct slots*)part->head;
    for (unsigned i = 0; i < slot_count; ++i) {
        const char* const bytes = slots->memory + i * slot_bytes(part) + slots->slot[i].at;
        if (slots->slot[i].checksum != 0) {
            expect_equal("the checksum of random bytes", slots->slot[i].checksum, checksum_of(bytes, slots->slot[i].length));
        } else {
            verify_bytes("a slot does not hold what was read into it", bytes, slots->slot[i].length, slots->slot[i].offset);
        }
    }
    return 1;
}

const struct part_kind slots_kind = {slots_bytes, slots_make, slots_verify, NULL};

// -- The ways ---------------------------------------------------------------------------------

static int source_file(bool direct)
{
    static _Thread_local int files[2] = {-1, -1};
    if (files[direct] < 0) {
        files[direct] = open(source_path(), O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
        if (files[direct] < 0 && direct && errno == EINVAL) {
            files[direct] = open(source_path(), O_RDONLY | O_CLOEXEC); // A file system without it.
        }
        if (files[direct] < 0) {
            end_by_call("open of the source file", errno);
        }
    }
    return files[direct];
}

/// A regular file is never short before its end, whatever the memory.
static void must_read(ssize_t got, size_t wanted, const char* call)
{
    if (got < 0) {
        end_by_call(call, errno);
    }
    if ((size_t)got != wanted) {
        fprintf(stderr, "program: %s is short\n", call);
        end_program(END_CALL_FAILED, "bytes of a read", wanted, (uint64_t)got);
    }
}

static unsigned split(const struct range* range, struct iovec* pieces, size_t unit)
{
    const size_t first = random_below(range->length / unit) * unit;
    pieces[0] = (struct iovec){range->to, first};
    pieces[1] = (struct iovec){range->to + first, range->length - first};
    return 2;
}

static void fill_by_stream(const struct range* range)
{
    FILE* const stream = fopen(source_path(), "re");
    if (stream == NULL || fseek(stream, (long)range->offset, SEEK_SET) != 0) {
        end_by_call("fopen", errno);
    }
    must_read((ssize_t)fread(range->to, 1, range->length, stream), range->length, "fread");
    fclose(stream);
}

/// Through a socket or a pipe, in pieces that its buffer takes without a reader.
static void fill_by_channel(const struct range* range, enum fill_way way)
{
    int ends[2];
    char piece[4096];
    if ((way == FILL_PIPE ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) != 0) {
        end_by_call("socketpair", errno);
    }
    for (size_t done = 0; done < range->length;) {
        const size_t length = range->length - done < sizeof piece ? range->length - done : sizeof piece;
        char* const to = range->to + done;
        must_read(pread(source_file(false), piece, length, (off_t)(range->offset + done)), length, "pread");
        must_read(write(ends[1], piece, length), length, "write");
        const struct range part = {to, length, 0};
        struct iovec pieces[2];
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = split(&part, pieces, 1)};
        must_read(way == FILL_PIPE   ? read(ends[0], to, length)
                  : way == FILL_RECV ? recv(ends[0], to, length, MSG_WAITALL)
                                     : recvmsg(ends[0], &message, MSG_WAITALL),
                  length, "a read of a socket or a pipe");
        done += length;
    }
    close(ends[0]);
    close(ends[1]);
}

uint64_t uring_read(int file, void* to, size_t size_bytes, uint64_t offset, bool is_fixed)
{
    struct io_uring ring;
    struct io_uring_cqe* completion;
    must(-io_uring_queue_init(4, &ring, 0), "io_uring_queue_init");
    const struct iovec registered = {to, size_bytes};
    if (is_fixed) {
        must(-io_uring_register_buffers(&ring, &registered, 1), "io_uring_register_buffers");
    }
    struct io_uring_sqe* const entry = io_uring_get_sqe(&ring);
    if (is_fixed) {
        io_uring_prep_read_fixed(entry, file, to, (unsigned)size_bytes, offset, 0);
    } else {
        io_uring_prep_read(entry, file, to, (unsigned)size_bytes, offset);
    }
    if (io_uring_submit(&ring) != 1) {
        end_by_call("io_uring_submit", errno);
    }
    int error = -EINTR;
    while (error == -EINTR) {
        error = io_uring_wait_cqe(&ring, &completion);
    }
    must(-error, "io_uring_wait_cqe");
    must(completion->res < 0 ? -completion->res : 0, "a read by io_uring");
    const uint64_t got = (uint64_t)completion->res;
    io_uring_cqe_seen(&ring, completion);
    io_uring_queue_exit(&ring);
    return got;
}

static void fill_by_process_vm(const struct range* range)
{
    char* const copy = must_have(malloc(range->length), "malloc");
    must_read(pread(source_file(false), copy, range->length, (off_t)range->offset), range->length, "pread");
    const struct iovec local = {copy, range->length}, remote = {range->to, range->length};
    must_read(process_vm_writev(getpid(), &local, 1, &remote, 1, 0), range->length, "process_vm_writev");
    free(copy);
}

static void fill_random(const struct range* range)
{
    for (size_t done = 0; done < range->length;) {
        const ssize_t got = getrandom(range->to + done, range->length - done, 0);
        if (got < 0 && errno != EINTR) {
            end_by_call("getrandom", errno);
        }
        done += got > 0 ? (size_t)got : 0;
    }
}

static void fill_by_cpu(const struct range* range)
{
    for (size_t i = 0; i < range->length; ++i) {
        range->to[i] = (char)source_byte(range->offset + i);
    }
}

static void fill(const struct range* range, enum fill_way way)
{
    const off_t offset = (off_t)range->offset;
    struct iovec pieces[2];
    switch (way) {
    case FILL_CPU: fill_by_cpu(range); return;
    case FILL_READ:
        if (lseek(source_file(false), offset, SEEK_SET) != offset) {
            end_by_call("lseek", errno);
        }
        must_read(read(source_file(false), range->to, range->length), range->length, "read");
        return;
    case FILL_PREAD: must_read(pread(source_file(false), range->to, range->length, offset), range->length, "pread"); return;
    case FILL_READV:
        if (lseek(source_file(false), offset, SEEK_SET) != offset) {
            end_by_call("lseek", errno);
        }
        must_read(readv(source_file(false), pieces, (int)split(range, pieces, 1)), range->length, "readv");
        return;
    case FILL_PREADV: must_read(preadv(source_file(false), pieces, (int)split(range, pieces, 1), offset), range->length, "preadv"); return;
    case FILL_DIRECT: must_read(pread(source_file(true), range->to, range->length, offset), range->length, "pread, direct"); return;
    case FILL_DIRECT_READV:
        must_read(preadv(source_file(true), pieces, (int)split(range, pieces, page_bytes), offset), range->length, "preadv, direct");
        return;
    case FILL_FREAD: fill_by_stream(range); return;
    case FILL_RECV:
    case FILL_RECVMSG:
    case FILL_PIPE: fill_by_channel(range, way); return;
    case FILL_RANDOM: fill_random(range); return;
    case FILL_URING:
    case FILL_URING_DIRECT:
    case FILL_URING_FIXED:
        must_read((ssize_t)uring_read(source_file(way != FILL_URING), range->to, range->length, range->offset, way == FILL_URING_FIXED),
                  range->length, "a read by io_uring");
        return;
    case FILL_VM_WRITE: fill_by_process_vm(range); return;
    }
}

static bool is_by_pages(enum fill_way way)
{
    return way == FILL_DIRECT || way == FILL_DIRECT_READV || way == FILL_URING_DIRECT || way == FILL_URING_FIXED;
}

void slots_fill(struct part* part, struct worker* worker, enum fill_way way, size_t size_bytes)
{
    struct slots* const slots = (struct slots*)part->head;
    const uint64_t number = random_below(slot_count);
    const size_t unit = is_by_pages(way) ? page_bytes : 1;
    size_t length = size_bytes < slot_bytes(part) ? size_bytes : slot_bytes(part);
    length = length / unit * unit;
    const uint64_t at = random_below((slot_bytes(part) - length) / unit + 1) * unit;
    const uint64_t offset = random_below((source_bytes - length) / unit + 1) * unit;
    part_touch(part, worker);
    const struct range range = {slots->memory + number * slot_bytes(part) + at, length, offset};
    fill(&range, way);
    if (way != FILL_RANDOM && random_below(4) == 0) {
        verify_bytes("a read has not stored what the file holds", range.to, length, offset);
    }
    slots->slot[number].at = at;
    slots->slot[number].length = length;
    slots->slot[number].offset = offset;
    slots->slot[number].checksum = way == FILL_RANDOM ? checksum_of(range.to, length) : 0;
}
