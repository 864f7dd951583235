#pragma once
// PlainStores: finds what code that knows nothing of transactions has stored into durable memory, while one transaction runs alone. The
// kernel remembers which pages of the image were written; program memory that is durable too is compared with a copy.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/result.hpp"
#include "logs/record_builder.hpp"
#include "os/reserved_array.hpp"
#include "os/userfaultfd.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::spht {

/// Threads: the one whose transaction runs alone.
class PlainStores {
public:
    /// From here on stores count. `image`: its accessible bytes. Errors: unsupported; no_memory.
    [[nodiscard]] Result<void> arm(std::span<const std::byte> image, std::span<const MirroredRange> mirrored);

    /// Finds the pages that were written; false: the kernel refused. `image`: as it is now, perhaps larger.
    [[nodiscard]] bool collect(std::span<const std::byte> image) noexcept;
    /// These bytes of the image are the caller's to record. After collect(). False: there are too many.
    [[nodiscard]] bool leave_out(const std::byte* bytes, std::size_t size) noexcept;
    /// Everything that was found, as it is now.
    void add_to(logs::RecordBuilder& record, std::span<const std::byte> image) noexcept;

    void detach_after_fork() noexcept;

private:
    [[nodiscard]] Result<void> prepare(std::span<const std::byte> image);
    [[nodiscard]] Result<void> copy_mirrored(std::span<const MirroredRange> mirrored);
    void add_run(logs::RecordBuilder& record, const os::PageRun& run, const std::byte* image) const noexcept;
    [[nodiscard]] bool scan(std::uintptr_t begin, std::uintptr_t end, bool keeps) noexcept;

    std::optional<os::Userfaultfd> uffd_;
    std::optional<os::PagemapScanner> scanner_;
    std::size_t registered_bytes_ = 0;
    std::size_t armed_bytes_ = 0;
    os::ReservedArray<os::PageRun> written_;
    std::uint64_t written_count_ = 0;
    struct Bytes {
        const std::byte* begin;
        const std::byte* end;
    };
    os::ReservedArray<Bytes> left_out_;
    std::uint64_t left_out_count_ = 0;
    std::span<const MirroredRange> mirrored_;
    os::ReservedArray<std::byte> mirrored_copy_;
};

}  // namespace stillpoint::spht
