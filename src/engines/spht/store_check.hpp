#pragma once
// The checked form of transactions (option `verify_stores`): a plain store into durable memory ends the program, with its place.
//
// The working snapshot is read-only. A store by the library's own code (commits, the heap, the directory of names) faults and opens its
// page, which is protected again at the end of what the thread does there. A fault of any other code is a mistake. While a page is open
// another thread's store to it goes unseen.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "runtime/protected_pages.hpp"

namespace stillpoint::spht {

/// Threads: any. Does nothing before begin().
class StoreCheck {
public:
    [[nodiscard]] bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }
    /// From here on is_on(): the engine's faults come here.
    void prepare() noexcept;
    /// Protects the image. Errors: no_memory.
    [[nodiscard]] Result<void> begin(std::span<std::byte> image);
    /// The image has grown by these bytes. Errors: no_memory.
    [[nodiscard]] Result<void> add(std::span<std::byte> bytes);
    /// Stores are not examined any more.
    void end() noexcept;

    /// Async-signal-safe, but for a mistake.
    [[nodiscard]] bool handle_fault(void* address) noexcept;
    void prepare_kernel_write(void* address, std::size_t size) noexcept;

    /// The calling thread has made the stores of the library: the pages that it has opened are protected again.
    void close_opened() noexcept
    {
        if (is_on()) [[unlikely]] {
            close_pages();
        }
    }
    /// Plain stores are a part of the transaction that runs alone, until forbid().
    void allow() noexcept;
    void forbid() noexcept;

private:
    void open(std::uint64_t first, std::uint64_t end) noexcept;
    void protect(std::uint64_t first, std::uint64_t end) noexcept;
    void close_pages() noexcept;
    void open_for_library(std::uint64_t page) noexcept;

    std::atomic<bool> is_on_{false};
    std::atomic<bool> allows_all_{false};
    std::atomic<bool> has_open_runs_{false};  ///< of system calls, whose pages no thread remembers
    ProtectedPages pages_;
    std::uintptr_t own_code_begin_ = 0;
    std::uintptr_t own_code_end_ = 0;
};

}  // namespace stillpoint::spht
