#pragma once
// Reads logs: which chunks an object's log has, which entries are whole, and which operations are to be run again
// [Pronto §5.2.4]. Bytes of a pool file are believed only behind a checksum.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/result.hpp"
#include "engines/pronto/log_space.hpp"
#include "engines/pronto/semantic_log_layout.hpp"
#include "pool/pool.hpp"

namespace stillpoint::pronto {

struct ScannedChunk {
    ChunkIndex chunk;
    std::uint64_t file_offset;
    ChunkHeader header;
};

/// The headers of all chunks that belong to a log. Errors: io, pool_truncated, pool_corrupt (a generation that has not been).
[[nodiscard]] Result<std::vector<ScannedChunk>> scan_chunks(const Pool& pool);

/// The header if the cache line holds one.
[[nodiscard]] std::optional<ChunkHeader> chunk_header_in(const std::byte* line) noexcept;

/// The snapshot has all of the chunk's operations that ever counted: what recovery left out of it stays out.
[[nodiscard]] bool is_superseded(const ChunkHeader& chunk, const ObjectRecord& record) noexcept;

/// An entry that is whole. `arguments` points into the chunk's bytes.
struct ScannedEntry {
    EntryHeader header;
    std::uint64_t generation;
    const std::byte* arguments;
};

/// Appends the entries of a chunk, of which `bytes` are all.
void scan_entries(std::span<const std::byte> bytes, const ChunkHeader& chunk, std::vector<ScannedEntry>& entries);

/// One operation that is to be run again.
struct LoggedOperation {
    std::uint64_t number;
    std::uint16_t method;  ///< the pool's number
    std::span<const std::byte> arguments;
};

/// An object's log, read whole.
class ScannedLog {
public:
    /// The part that `record` does not have yet. Errors: io, no_memory; pool_corrupt: two entries with one number.
    [[nodiscard]] static Result<ScannedLog> read(const Pool& pool, std::span<const ScannedChunk> chunks, const ObjectRecord& record);

    /// In commit order; without those that a crash has cut off or that were never acknowledged.
    [[nodiscard]] std::span<const LoggedOperation> operations() const noexcept { return operations_; }
    /// An operation that was acknowledged and is not there any more: damage. 0: none.
    [[nodiscard]] std::uint64_t damaged_number() const noexcept { return damaged_number_; }
    /// The damaged entry's method, where what is left of the entry tells.
    [[nodiscard]] std::optional<std::uint8_t> damaged_method() const noexcept { return damaged_method_; }
    /// An operation between them is missing that had not been acknowledged: those after it did not rely on it.
    [[nodiscard]] bool has_gap() const noexcept;
    /// Leaves out what comes after the damage.
    void cut_at_damage() noexcept;
    /// Whole entries that are left out.
    [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

    struct Page {
        std::size_t chunk;     ///< of those that were read
        std::uint64_t offset;  ///< in the chunk
        auto operator<=>(const Page&) const = default;
    };
    /// The chunks with entries that no later entry calls durable, and the first ones of their chunks.
    [[nodiscard]] std::vector<Page> pages_not_known_durable() const;
    [[nodiscard]] const std::byte* bytes_of(const Page& page) const noexcept { return chunks_[page.chunk].data() + page.offset; }

private:
    void leave_out_void_entries(std::span<const ScannedChunk> chunks);
    [[nodiscard]] std::size_t chunk_of(const ScannedEntry& entry) const noexcept;
    [[nodiscard]] Result<void> put_together(std::uint64_t committed);
    /// The arguments of the operation that begins at entry `at`; sets `at` after it. Empty: a part is missing.
    [[nodiscard]] std::optional<std::span<const std::byte>> arguments_at(std::size_t& at);
    void look_for_damage(std::span<const ScannedChunk> chunks, std::uint64_t committed);

    std::vector<std::vector<std::byte>> chunks_;
    std::vector<std::vector<std::byte>> assembled_;  ///< arguments of operations in several parts
    std::vector<ScannedEntry> entries_;
    std::vector<LoggedOperation> operations_;
    std::uint64_t first_expected_ = 1;
    std::uint64_t damaged_number_ = 0;
    std::optional<std::uint8_t> damaged_method_;
    std::uint64_t durable_number_ = 0;  ///< what the entries say was durable
    std::uint64_t left_out_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace stillpoint::pronto
