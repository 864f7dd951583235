#pragma once
// Increments of a pool's file: the pages that differ between two of its states, with digests of all pages of the newer one. So the next
// increment can be made after this one alone, and one that is added to anything but its base is noticed.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "media/copied_file.hpp"
#include "media/increment_layout.hpp"
#include "media/page_digests.hpp"
#include "os/descriptor.hpp"

namespace stillpoint {

/// The pool that an increment is of.
struct IncrementedPool {
    std::array<std::uint8_t, 16> uuid;
    std::string engine_name;
    std::uint32_t engine_layout_version;
};

/// The seed of the digests of that pool's pages.
[[nodiscard]] std::uint64_t digest_seed(const std::array<std::uint8_t, 16>& uuid) noexcept;

/// True if the file begins as an increment does; false for anything else, and where it cannot be read.
[[nodiscard]] bool is_increment(const std::string& path);

/// An increment that is open for reading; what open() has verified.
class IncrementFile {
public:
    /// Reads and verifies all but the changed pages. Memory: 8 bytes for each page of the pool's file that is not zero, and 16 for each
    /// run. Errors: pool_missing, not_a_pool (no increment), pool_version, pool_corrupt, pool_truncated, no_memory, io, pool_read_only.
    [[nodiscard]] static Result<IncrementFile> open(const std::string& path);
    /// As open(), of a file that is open already; `name` is for messages.
    [[nodiscard]] static Result<IncrementFile> take(os::Descriptor file, std::string name);

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const layout::IncrementHeader& header() const noexcept { return header_; }
    [[nodiscard]] std::string engine_name() const { return header_.engine_name; }
    /// Digests of the state that it makes.
    [[nodiscard]] const PageDigests& digests() const noexcept { return digests_; }
    /// Gives digests() away; visit() cannot be called after it.
    [[nodiscard]] PageDigests take_digests() noexcept { return std::move(digests_); }

    /// Called for each page that differs, first for those that are cleared; `bytes` are verified.
    using Visitor = Result<void> (*)(void* context, std::uint64_t page, const std::byte* bytes);
    /// Errors: pool_corrupt, io; the visitor's.
    [[nodiscard]] Result<void> visit(Visitor visitor, void* context) const;

private:
    IncrementFile() = default;
    [[nodiscard]] Result<void> read_header();
    [[nodiscard]] Result<void> read_index();
    [[nodiscard]] Result<void> take_runs(const std::byte* index);
    [[nodiscard]] Result<void> read_pages(std::uint64_t offset, std::byte* bytes, std::uint64_t first, std::uint64_t count) const;
    template <class... Args>
    [[nodiscard]] tl::unexpected<Failure> corrupt(fmt::format_string<Args...> format, Args&&... args) const;

    std::string path_;
    os::Descriptor file_;
    std::uint64_t file_bytes_ = 0;
    layout::IncrementHeader header_{};
    std::vector<layout::PageRun> changed_;
    std::vector<layout::PageRun> cleared_;
    PageDigests digests_;
};

/// An increment that is being made, under a name at which nothing takes it for one. A copier that is killed leaves that file, and the next
/// one writes it from the start.
class NewIncrement {
public:
    /// Opens `path`, or what a killed copier left there. Errors: pool_exists (the file is something else), pool_locked, no_space,
    ///   pool_read_only, io.
    [[nodiscard]] static Result<NewIncrement> open(const std::string& path, unsigned mode);

    /// Writes what leads from `base`, a state with `base_digests`, to what `copy` holds after its last pass, CopiedFile::leave_out(
    /// base_digests) included; `state` says which that is, without its digest. Durable on return. Cost: reads what differs twice.
    /// Errors: no_space, no_memory, io.
    [[nodiscard]] Result<layout::IncrementHeader> write(const IncrementedPool& pool, const layout::FileState& base,
                                                        const PageDigests& base_digests, layout::FileState state, const CopiedFile& copy);
    [[nodiscard]] int fd() const noexcept { return file_.get(); }

private:
    NewIncrement() = default;
    [[nodiscard]] Result<void> put(const void* bytes, std::size_t size, std::uint64_t offset);
    [[nodiscard]] Result<void> put_pages(const CopiedFile& copy, const std::vector<layout::PageRun>& runs, std::uint64_t offset);

    std::string path_;
    os::Descriptor file_;
};

}  // namespace stillpoint
