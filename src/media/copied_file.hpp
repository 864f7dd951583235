#pragma once
// A file that becomes a copy of another in passes, while the other may change between them and during all but the last.
//
// Each pass reads the source's data once and writes the blocks that differ from what the target holds: after a few passes over a busy
// file they are few, and so a last pass over a file at rest is short. The target is sparse: blocks of zeroes take no room. Until
// finish() its first block is missing and a mark follows its end, so that it does not pass for a pool, and is recognised. A copy that was
// killed goes on where it was: its first pass compares the blocks that are there.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/units.hpp"
#include "media/page_digests.hpp"
#include "os/descriptor.hpp"

namespace stillpoint {

/// Told now and then how many bytes of how many a pass has been over. nullptr: it is not told.
using CopyProgress = void (*)(std::uint64_t done_bytes, std::uint64_t all_bytes);

/// Asked now and then whether a pass may go on. nullptr: it may.
struct CopyPermission {
    bool (*may_go_on)(void* context) = nullptr;
    void* context = nullptr;
};

class CopiedFile {
public:
    static constexpr std::size_t block_bytes = 64 * kib;

    struct Pass {
        std::uint64_t bytes_read = 0;
        std::uint64_t bytes_changed = 0;  ///< of blocks that were written to the target
    };
    /// Opens `path`, an unfinished copy, or makes it, with the mode `mode`. It is locked as long as this lives.
    /// Errors: pool_exists (the file is something else), pool_locked (another copy is being made there), no_space, pool_read_only, io.
    [[nodiscard]] static Result<CopiedFile> open(const std::string& path, unsigned mode);

    /// One pass over `source`. `late_bytes_max`: so many changed bytes are written by write_late() only. After a failure of any other kind
    /// than io of the target another pass may follow.
    /// Errors: timed_out (no permission any more), no_space, io.
    [[nodiscard]] Result<Pass> take_pass(int source, const std::string& source_path, CopyProgress progress, CopyPermission permission = {},
                                         std::size_t late_bytes_max = 0);
    [[nodiscard]] Result<void> write_late();
    /// Takes what comes out of a pipe up to its end. Errors: no_space, io.
    [[nodiscard]] Result<Pass> take_stream(int source, const std::string& source_name);
    /// From here on blocks that are as `base` has them are not written, so that the target holds what differs from it. Before the first
    /// pass. `base` lives as long as the passes.
    void leave_out(const PageDigests& base) noexcept { base_ = &base; }
    /// Where the bytes of block number `index` are, after the last pass.
    enum class Origin : std::uint8_t {
        written,  ///< in the target
        never_written,  ///< nowhere: zeroes
        base,  ///< as the base has them
    };
    [[nodiscard]] Origin origin_of(std::uint64_t index) const noexcept;
    /// Reads bytes of the target, also those that finish() writes only. Errors: io.
    [[nodiscard]] Result<void> read_back(std::uint64_t offset, std::byte* bytes, std::size_t size) const;
    /// Puts other bytes into a page, after the last pass. Errors: no_space, io.
    [[nodiscard]] Result<void> patch(std::uint64_t page, const std::byte* bytes);
    /// Makes the target longer, by zeroes, or shorter, after the last pass; never shorter than the first block. Errors: no_space, io.
    [[nodiscard]] Result<void> set_size(std::uint64_t size) { return size == size_bytes_ ? Result<void>{} : resize(size); }
    /// The first bytes of the source, as the last pass found them.
    [[nodiscard]] const std::byte* head() const noexcept { return head_.get(); }
    [[nodiscard]] std::size_t head_bytes() const noexcept { return head_bytes_; }
    /// All that was written so far is on the disk. Errors: no_space, io.
    [[nodiscard]] Result<void> sync();
    /// The first block is written, and all of it durable. The mark stays until remove_mark(). Errors: no_space, io.
    [[nodiscard]] Result<void> finish();
    /// The file is an ordinary one, durably. To be called when it has its name, so that a copier that is killed never leaves a file under
    /// the first one that is not recognised. Until then it is a page longer than its source, which does a pool no harm. Errors: io.
    [[nodiscard]] Result<void> remove_mark();
    /// Takes room on the disk for every byte. Nothing where the file system cannot. Errors: no_space.
    [[nodiscard]] Result<void> take_room();

    [[nodiscard]] bool was_resumed() const noexcept { return resumed_; }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
    [[nodiscard]] int fd() const noexcept { return file_.get(); }

private:
    struct Late {
        std::uint64_t offset;
        std::size_t size;
        std::size_t place;  ///< in late_bytes_
    };
    CopiedFile() = default;
    [[nodiscard]] Result<void> recognise();
    [[nodiscard]] Result<void> resize(std::uint64_t size);
    [[nodiscard]] Result<void> take_piece(Pass& pass, std::uint64_t offset, std::size_t size);
    [[nodiscard]] Result<void> take_block(Pass& pass, std::uint64_t index, const std::byte* bytes, std::size_t size);
    [[nodiscard]] Result<void> take_zeroes(Pass& pass, std::uint64_t begin, std::uint64_t end);
    [[nodiscard]] Result<bool> holds(std::uint64_t offset, const std::byte* bytes, std::size_t size);
    [[nodiscard]] Result<void> put(std::uint64_t offset, const std::byte* bytes, std::size_t size);
    [[nodiscard]] Result<void> put_zeroes(std::uint64_t offset, std::size_t size);
    [[nodiscard]] Result<void> fail_at(int error, std::uint64_t offset) const;

    std::string path_;
    os::Descriptor file_;
    bool resumed_ = false;
    std::uint64_t size_bytes_ = 0;
    std::uint64_t size_at_begin_ = 0;  ///< up to here an unfinished copy had data
    std::vector<std::uint64_t> digests_;  ///< of the target's blocks; 0: not known
    std::vector<bool> is_as_base_;  ///< for each of them
    const PageDigests* base_ = nullptr;
    std::uint64_t seed_ = 0;  ///< of the digests, drawn at random
    std::uint64_t zero_digest_ = 0;  ///< of a whole block
    std::unique_ptr<std::byte[]> head_;
    std::size_t head_bytes_ = 0;
    std::unique_ptr<std::byte[]> piece_;
    std::unique_ptr<std::byte[]> block_;  ///< of the target, to compare
    std::unique_ptr<std::byte[]> late_bytes_;
    std::size_t late_room_ = 0;
    std::size_t late_used_ = 0;
    std::vector<Late> late_;
};

}  // namespace stillpoint
