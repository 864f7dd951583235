#pragma once
// Requests that the kernel takes now and completes later: rings of io_uring, and contexts of kernel AIO. Most of them are made by system
// calls that no library sees. Looking at the process tells whether some may be going on, and which memory is registered with a ring.
//
// Rings are looked for among descriptors, by a call that asks for nothing. No look opens a file as long as nothing has changed: a
// program that closes a descriptor may count on getting its number back.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stillpoint::os {

/// Threads: one.
class AsyncRequests {
public:
    AsyncRequests() = default;
    AsyncRequests(const AsyncRequests&) = delete;
    AsyncRequests& operator=(const AsyncRequests&) = delete;
    ~AsyncRequests() { close(); }

    struct Range {
        std::uintptr_t begin;
        std::uintptr_t end;
    };
    enum class Depth : std::uint8_t {
        known,  ///< rings that were found earlier; cheap
        low,    ///< also new ones among the lowest descriptors, and new registered memory
        all,    ///< also new ones anywhere
    };

    /// Only registered memory in [begin, end) is of interest. Without /proc only rings are found.
    void open(std::uintptr_t begin, std::uintptr_t end) noexcept;
    [[nodiscard]] bool is_open() const noexcept { return end_ != 0; }
    void close() noexcept;

    /// True: a request may be going on.
    [[nodiscard]] bool look(Depth depth) noexcept;

    // The state at the last look.
    /// A ring, or the first context, that the look before did not know of.
    [[nodiscard]] bool found_new() const noexcept { return found_new_; }
    /// Registered memory, in no order; some may overlap.
    [[nodiscard]] std::span<const Range> registered() const noexcept { return {registered_.data(), registered_count_}; }
    /// The memory that was registered before, if it is not the same: a device may have stored to it until a moment ago.
    [[nodiscard]] std::span<const Range> no_longer_registered() const noexcept { return {previous_.data(), previous_count_}; }
    /// Memory that a device may store to at any time, of which no ring knows: RDMA, VFIO. In bytes; for a message.
    [[nodiscard]] std::uint64_t pinned_by_others() const noexcept { return pinned_by_others_; }

private:
    [[nodiscard]] bool is_busy(int ring) const noexcept;
    void find_rings(int descriptors_end, int gap_max) noexcept;
    void find_registered() noexcept;
    [[nodiscard]] bool find_registered_of(int ring, std::uint64_t& total_bytes) noexcept;
    void find_aio_contexts() noexcept;
    void add_registered(std::uintptr_t begin, std::uintptr_t end) noexcept;

    static constexpr std::size_t rings_max = 64;
    static constexpr std::size_t registered_max = 1024;

    bool has_rings_ = false;             ///< the kernel gives this process any
    std::size_t submitted_offset_ = 0;   ///< in the memory that a ring shares: sq.tail, stored before the kernel takes a request
    std::size_t completed_offset_ = 0;   ///< cq.tail
    int status_ = -1;     ///< /proc/self/status
    int aio_count_ = -1;  ///< /proc/sys/fs/aio-nr
    std::uintptr_t begin_ = 0;
    std::uintptr_t end_ = 0;
    std::array<int, rings_max> ring_{};
    std::size_t rings_ = 0;
    bool more_rings_ = false;  ///< than there is room for
    bool found_new_ = false;
    std::array<Range, registered_max> registered_{};
    std::size_t registered_count_ = 0;
    std::array<Range, registered_max> previous_{};
    std::size_t previous_count_ = 0;
    std::uint64_t pinned_by_others_ = 0;
    std::uint64_t aio_count_seen_ = 0;
    bool aio_contexts_ = false;
};

}  // namespace stillpoint::os
