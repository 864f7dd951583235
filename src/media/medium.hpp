#pragma once
// Medium: where bytes become durable. One interface, two capabilities; an engine asks for the
// capability it needs, never for a kind by name. The crash explorer is one more Medium.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.hpp"
#include "core/units.hpp"

namespace stillpoint {

enum class MediumKind : std::uint8_t { file, dax, memory };
enum class Durability : std::uint8_t {
    process,  ///< survives the death of the process
    power,    ///< survives the death of the machine
};

/// A line, and where it goes.
struct LineWrite {
    std::uint64_t offset;
    const std::byte* data;
};

/// One page-aligned write of a batch. `offset`, `size` and `data` are multiples of page_bytes.
struct BlockWrite {
    std::uint64_t offset;
    const std::byte* data;
    std::size_t size;
};

/// Bytes [begin, end) of the file.
struct FileRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

/// In ascending order; those at the end may be empty.
using TwoFileRanges = std::array<FileRange, 2>;

/// Where the file system keeps what it reserves for a file.
enum class Room : std::uint8_t {
    on_disk,
    in_memory,  ///< tmpfs: bytes that are reserved and hold nothing take as much memory as others
};

/// Figures since the medium was opened; every field only grows.
struct MediumCounters {
    std::uint64_t bytes_written = 0;
    std::uint64_t write_calls = 0;
    std::uint64_t syncs = 0;
    std::uint64_t lines_written_back = 0;
    std::uint64_t fences = 0;
    std::uint64_t persist_points = 0;  ///< see FaultPoint::persist
};

/// One open pool file (or what stands for it), exclusively locked.
///
/// Threads: calls on one Medium are made by one thread at a time, except read(), allocate() and release(), which any
///   number of threads may call, also while another thread writes elsewhere.
/// Memory: no member but the constructor and resize() calls malloc.
/// Errors: every failure names the file and the offset. After a failed write() or sync() the
///   owner must treat the pool as read-only: a later sync() that succeeds proves nothing. The
///   media enforce it: every later write(), sync() and resize() fails with pool_read_only.
class Medium {
public:
    virtual ~Medium() = default;

    [[nodiscard]] virtual std::string_view path() const noexcept = 0;
    [[nodiscard]] virtual Durability durability() const noexcept = 0;
    /// The level is a property of the pool, known once its superblock is read.
    virtual void set_durability(Durability durability) noexcept = 0;
    [[nodiscard]] virtual std::uint64_t size_bytes() const noexcept = 0;
    /// "io_uring, O_DIRECT", "pwritev", "clwb", …: what `doctor`, `info` and the start line print.
    [[nodiscard]] virtual std::string_view mechanism() const noexcept = 0;
    [[nodiscard]] virtual MediumCounters counters() const noexcept = 0;

    /// Grows the file to `size` bytes with all space allocated. Durable on return.
    /// Errors: no_space (nothing changed), io.
    [[nodiscard]] virtual Result<void> resize(std::uint64_t size) = 0;

    /// As resize(), but bytes from `room_end` on get room by allocate(): before it nothing is written there. A medium may give it at once.
    [[nodiscard]] virtual Result<void> resize_with_room(std::uint64_t size, std::uint64_t room_end)
    {
        static_cast<void>(room_end);
        return resize(size);
    }
    [[nodiscard]] virtual Room room() const noexcept { return Room::on_disk; }

    /// Takes room on the disk for bytes that MediumOptions::without_room left out. Nothing where they have it, or where the file system
    /// cannot allocate; what the bytes hold stays. Durable with what is written there. Errors: no_space (nothing changed), io.
    [[nodiscard]] virtual Result<void> allocate(FileRange range)
    {
        static_cast<void>(range);
        return {};
    }

    /// Gives the bytes' room on the disk back: they read as zeroes, after a crash as zeroes or as before, until allocate() takes room
    /// for them again, before which nothing is written there. Nothing where the file system cannot do it. Never fails.
    virtual void release(FileRange range) noexcept { static_cast<void>(range); }

    /// Reads exactly destination.size() bytes. No alignment is asked.
    /// Errors: pool_truncated (the file ends before), io.
    [[nodiscard]] virtual Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const = 0;

    /// In a child after fork: closes what the child inherited, without touching the parent's lock or
    /// its I/O in flight. A mapping is not inherited at all. Nothing else may be called after it.
    virtual void detach_after_fork() noexcept {}

    /// Gives a file that was created with publish_later its name, durably at durability(). Nothing
    /// for others. Errors: pool_exists (another process was quicker), io.
    [[nodiscard]] virtual Result<void> publish() { return {}; }

    // -- Whether another process has had it: media that several machines reach. -------------
    /// Records durably that the process with that number (MediumOptions::writer) is the one that writes the pool from here on. The record
    /// goes when a process without a number opens it for writing. Errors: io.
    [[nodiscard]] virtual Result<void> claim(std::uint64_t writer)
    {
        static_cast<void>(writer);
        return {};
    }
    /// The number that was recorded when this process opened it; 0: none.
    [[nodiscard]] virtual std::uint64_t last_writer() const noexcept { return 0; }

    // -- Copiers that read the file while the program runs (write_turns.hpp). ------------
    /// From here on every change of the file lies between begin_turn() and end_turn(), so that a copier may hold the next turn back for a
    /// while. Media that are written by calls do so from the start, each call being a turn.
    virtual void honour_holds() noexcept {}
    /// Waits while a copier holds, at most hold_max_ns. Turns nest, and overlap with those of other threads. Any thread; cost: two system
    /// calls where no turn is open.
    virtual void begin_turn() noexcept {}
    virtual void end_turn() noexcept {}

    // -- Block capability: every medium has it. ------------------------------------------
    /// Writes the whole batch; when it returns all of it is handed to the medium, in no order.
    /// Neighbouring writes are merged into large ones. Errors: no_space, io.
    [[nodiscard]] virtual Result<void> write(std::span<const BlockWrite> batch) = 0;
    /// Returns once everything written before is durable at durability(). Under
    /// Durability::process it does nothing on media where the kernel keeps what was written.
    [[nodiscard]] virtual Result<void> sync() = 0;

    /// ok, or why what was written may be gone although no call failed: the file was cut off or deleted, a mapped
    /// page was lost, or the program has put another file behind the descriptor. To be asked before anything is acknowledged.
    /// Errors: io, pool_truncated; the pool is read-only then.
    [[nodiscard]] virtual Result<void> check_intact() { return {}; }
    /// A mapped byte at `address` is gone (SIGBUS). True if it was this medium's: it reads as anything from then on, and
    /// check_intact() fails. Async-signal-safe.
    [[nodiscard]] virtual bool absorb_lost_page(void* address) noexcept
    {
        static_cast<void>(address);
        return false;
    }

    // -- Byte-addressable capability: only where byte_addressable().--------------------------
    /// True if the medium is naturally written by stores, write backs and fences.
    [[nodiscard]] virtual bool byte_addressable() const noexcept = 0;
    /// The mapped bytes, for reading. nullptr unless byte_addressable().
    [[nodiscard]] virtual const std::byte* mapping() const noexcept = 0;
    /// Stores into the mapping. Stores of up to 8 aligned bytes do not tear.
    virtual void store(std::uint64_t offset, const void* data, std::size_t size) noexcept = 0;
    /// Stores by non-temporal copy: needs no write_back, unordered until fence().
    /// `offset` and `size` are multiples of cache_line_bytes.
    virtual void store_nontemporal(std::uint64_t offset, const void* data, std::size_t size) noexcept = 0;
    /// As store_nontemporal, by any number of threads at a time, besides the one that the other members are called by, to places
    /// that no other thread stores to. fence(), of the same thread, may be called beside others too.
    virtual void append_lines(std::uint64_t offset, const void* data, std::size_t size) noexcept { store_nontemporal(offset, data, size); }
    /// append_lines() of single lines, without an instruction between them that would wait for the ones before.
    virtual void append_each(std::span<const LineWrite> lines) noexcept
    {
        for (const LineWrite& line : lines) {
            append_lines(line.offset, line.data, cache_line_bytes);
        }
    }
    /// If the 8 bytes at `offset`, a multiple of 8, are `expected` they become `desired`, as one store: true. Else `expected` becomes what
    /// they are. Any number of threads at a time, besides the one that the other members are called by.
    [[nodiscard]] virtual bool compare_exchange_word(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired) noexcept
    {
        static_cast<void>(offset);
        static_cast<void>(expected);
        static_cast<void>(desired);
        return false;
    }
    /// Stores the 8 bytes at `offset`, a multiple of 8, as one store. No write back need follow: for a hint, which a crash may lose.
    /// Threads as compare_exchange_word().
    virtual void store_word(std::uint64_t offset, std::uint64_t value) noexcept { store(offset, &value, sizeof value); }
    /// Starts the write back of the line at `offset`: the same thread's fence() waits for it. Threads as compare_exchange_word().
    virtual void write_back_line(std::uint64_t offset) noexcept { static_cast<void>(offset); }
    /// The quick part of check_intact(): a mapped byte is known to be gone. Any thread; one load.
    [[nodiscard]] virtual bool has_lost_pages() const noexcept { return false; }
    /// Starts the write back of each line that overlaps the range.
    virtual void write_back(std::uint64_t offset, std::size_t size) noexcept = 0;
    /// Returns once every earlier write back and non-temporal store of this thread is durable.
    virtual void fence() noexcept = 0;

    // -- The program's own stores: only where byte_addressable(). -----------------------------
    /// Maps the bytes [offset, +size) of the medium at `address` too, in place of what lies there: ordinary stores there are
    /// stores of the medium. All three are multiples of page_bytes. A child made by fork does not inherit it.
    /// Errors: unsupported (no byte-addressable medium), no_memory, io.
    [[nodiscard]] virtual Result<void> map_at(std::byte* address, std::uint64_t offset, std::uint64_t size);
    /// As map_at(), but a private copy: stores there change nothing of the medium. For a pool that may yet be refused, and for a child
    /// made by fork, before detach_after_fork(). No malloc. Errors as map_at().
    [[nodiscard]] virtual Result<void> map_copy_at(std::byte* address, std::uint64_t offset, std::uint64_t size) noexcept;
    /// Starts the write back of the lines at these addresses, each inside a range of map_at(). fence() waits for them, in the
    /// same thread. Any number of threads at a time, besides the one that the other members are called by.
    virtual void write_back_lines(std::span<const std::uintptr_t> line_addresses) noexcept { static_cast<void>(line_addresses); }
};

class [[nodiscard]] MediumTurn {
public:
    explicit MediumTurn(Medium& medium) noexcept : medium_(medium) { medium_.begin_turn(); }
    ~MediumTurn() { medium_.end_turn(); }
    MediumTurn(const MediumTurn&) = delete;
    MediumTurn& operator=(const MediumTurn&) = delete;

private:
    Medium& medium_;
};

}  // namespace stillpoint
