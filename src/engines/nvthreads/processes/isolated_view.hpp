#pragma once
// IsolatedView: the durable image as one thread's process sees it. Pages are the shared ones, read-only, until the thread's first store
// to one: then it has a private copy, and a twin that says what the page was. At a synchronisation point the differences are merged into
// the shared image, and the private pages are dropped.
//
// Threads: the program's thread of this process. Nothing here calls malloc; open_page() runs in a signal handler.

#include <cstddef>
#include <cstdint>

#include "core/result.hpp"
#include "core/units.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::nvthreads::processes {

class IsolatedView {
public:
    /// Pages that may be private at a time: each is a mapping of its own, and a process has 65530 by default.
    static constexpr std::uint64_t open_pages_max = 24 * 1024;

    /// Maps the file's bytes at `base`, private to this process, and a second time where merges store. `merges`: of the ControlArea.
    /// Errors: no_memory.
    [[nodiscard]] Result<void> map(std::byte* base, std::uint64_t image_bytes_max, int file);
    /// In the process of a new thread.
    void forget_private_pages() noexcept { drop(); }

    [[nodiscard]] bool contains(const void* address) const noexcept
    {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_) < bytes_;
    }
    /// The page of the address becomes private and writable. False: it cannot, and the store fails. Async-signal-safe.
    [[nodiscard]] bool open_page(const void* address) noexcept;
    /// All pages of [address, + size) that lie here.
    void open_pages(const void* address, std::size_t size) noexcept;
    [[nodiscard]] bool is_clean() const noexcept { return open_count_ == 0; }
    [[nodiscard]] bool is_nearly_full() const noexcept { return open_count_ > open_pages_max / 2; }

    /// Private pages get what others have merged since they were made, or last refreshed.
    void refresh() noexcept;

    /// The bytes that private pages have and their twins have not, as the runs of a record (redo_ring.hpp), in a buffer of
    /// `record_bytes_max`. Returns how many bytes that takes; UINT64_MAX: more than the buffer has.
    [[nodiscard]] std::uint64_t collect(std::byte* record, std::uint64_t record_bytes_max) const noexcept;
    /// The place of a byte that another thread has changed, too, since the page became private; nullptr: there is none. Under the lock of
    /// merges, before apply().
    [[nodiscard]] const void* find_race() const noexcept;
    /// Stores a record's runs into the shared image.
    static void apply(std::byte* shared, std::uint64_t image_bytes, const std::byte* record, std::uint64_t bytes) noexcept;
    void apply(const std::byte* record, std::uint64_t bytes) noexcept { apply(shared_, bytes_, record, bytes); }
    /// The shared pages are seen again.
    void drop() noexcept;

private:
    [[nodiscard]] std::byte* page_at(std::uint64_t page) const noexcept { return base_ + page * page_bytes; }
    [[nodiscard]] const std::byte* shared_at(std::uint64_t page) const noexcept { return shared_ + page * page_bytes; }
    [[nodiscard]] std::byte* twin_of(std::uint64_t index) noexcept { return twins_.data() + index * page_bytes; }
    [[nodiscard]] const std::byte* twin_of(std::uint64_t index) const noexcept { return twins_.data() + index * page_bytes; }

    std::byte* base_ = nullptr;
    std::byte* shared_ = nullptr;
    std::uint64_t bytes_ = 0;
    os::ReservedBitmap is_open_;
    os::ReservedArray<std::uint32_t> open_pages_;  ///< in the order of their first stores
    os::ReservedArray<std::byte> twins_;  ///< of the open pages, in their order
    std::uint64_t open_count_ = 0;
};

}  // namespace stillpoint::nvthreads::processes
