#pragma once
// A small file beside a pool that is replicated, PATH.replica: which pool elsewhere has the same bytes, and whether it has all of them.
// The pool's own lock guards it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/result.hpp"
#include "os/descriptor.hpp"

namespace stillpoint {

/// How the bytes here and those of the replica may differ.
enum class ReplicaState : std::uint32_t {
    equal = 1,      ///< not at all
    differing = 2,  ///< by what was written after the last epoch that was acknowledged here
    ahead = 3,      ///< epochs may have been acknowledged here that the replica lacks
};

/// When a run acknowledges.
enum class ReplicaLevel : std::uint8_t {
    local,   ///< acknowledged when the bytes are durable here; the replica follows
    remote,  ///< acknowledged when both have them
};

/// The bytes of the file: one sector of a disk, which no crash tears.
struct ReplicaRecord {
    static constexpr std::uint8_t magic_bytes[8] = {0x93, 'S', 'T', 'R', 'E', 'P', '\r', '\n'};
    static constexpr std::uint32_t version_known = 1;

    std::uint8_t magic[8];
    std::uint32_t version;
    ReplicaState state;
    std::uint64_t checksum;            ///< of all bytes, this field taken as 0
    std::array<std::uint8_t, 16> pool_uuid;  ///< zeroes: not noted, by a version that did not
    std::uint64_t file_number;         ///< file_number_of() the pool: a copy that was put in its place is another
    std::uint64_t generation;          ///< of the pool, when it was replicated last
    std::uint64_t writer;              ///< drawn once: Medium::claim()
    std::uint32_t is_starting;         ///< 1: the pool may have the generation after that one already
    std::uint32_t level;               ///< 1 + ReplicaLevel; 0: not noted, by a version that did not
    std::uint64_t name_checksum;       ///< of the replica's whole name
    std::array<char, 416> replica;     ///< its name, cut where it is longer, terminated
    std::uint64_t next_file_number;    ///< of the file that was made of the replica and gets the pool's name now; 0: none does
    std::uint64_t next_generation;     ///< of the pool in it
};
static_assert(std::is_trivially_copyable_v<ReplicaRecord> && sizeof(ReplicaRecord) == 512);
static_assert(offsetof(ReplicaRecord, state) == 12 && offsetof(ReplicaRecord, pool_uuid) == 24 &&
              offsetof(ReplicaRecord, generation) == 48 && offsetof(ReplicaRecord, replica) == 80 &&
              offsetof(ReplicaRecord, next_file_number) == 496);

void note_level(ReplicaRecord& record, ReplicaLevel level) noexcept;
void put_replica_name(ReplicaRecord& record, std::string_view name) noexcept;
/// The replica's name as far as the record has it, terminated.
[[nodiscard]] std::string name_of_replica(const ReplicaRecord& record);
[[nodiscard]] bool names_replica(const ReplicaRecord& record, std::string_view name) noexcept;

class ReplicaRecordFile {
public:
    [[nodiscard]] static std::string path_for(const std::string& pool_path) { return pool_path + ".replica"; }
    /// Nothing: there is no such file. Errors: io; pool_corrupt (it is none, or damaged).
    [[nodiscard]] static Result<std::optional<ReplicaRecord>> read(const std::string& pool_path);
    /// Opens the file for writing, makes it where there is none, and stores `record` durably. Errors: io, no_space.
    [[nodiscard]] static Result<ReplicaRecordFile> begin(const std::string& pool_path, const ReplicaRecord& record);

    /// Durable on return. No malloc. Errors: io.
    [[nodiscard]] Result<void> store(const ReplicaRecord& record) noexcept;
    void detach_after_fork() noexcept { file_.reset(); }

private:
    [[nodiscard]] Result<void> put(const ReplicaRecord& record) noexcept;

    std::string path_;
    os::Descriptor file_;
};

}  // namespace stillpoint
