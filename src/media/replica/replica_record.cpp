#include "media/replica/replica_record.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "arch/checksum.hpp"
#include "media/errno_text.hpp"
#include "media/file_names.hpp"
#include "media/observer.hpp"

namespace stillpoint {

namespace {

constexpr std::uint64_t record_seed = 0x53545245504c4943;

std::uint64_t checksum_of(ReplicaRecord record) noexcept
{
    record.checksum = 0;
    return checksum64(&record, sizeof record, record_seed);
}

/// Earlier versions had a name of up to 431 bytes where the last two fields are now; a terminator was its last byte, too.
bool is_sound(const ReplicaRecord& record) noexcept
{
    return std::memcmp(record.magic, ReplicaRecord::magic_bytes, sizeof record.magic) == 0 && record.checksum == checksum_of(record) &&
           record.state >= ReplicaState::equal && record.state <= ReplicaState::ahead && record.next_generation >> 56 == 0;
}

ReplicaRecord complete(ReplicaRecord record) noexcept
{
    std::memcpy(record.magic, ReplicaRecord::magic_bytes, sizeof record.magic);
    record.version = ReplicaRecord::version_known;
    record.checksum = checksum_of(record);
    return record;
}

}  // namespace

void put_replica_name(ReplicaRecord& record, std::string_view name) noexcept
{
    record.replica = {};
    name.copy(record.replica.data(), record.replica.size() - 1);
    record.name_checksum = checksum64(name.data(), name.size(), record_seed);
}

void note_level(ReplicaRecord& record, ReplicaLevel level) noexcept { record.level = 1 + static_cast<std::uint32_t>(level); }

std::string name_of_replica(const ReplicaRecord& record)
{
    return {record.replica.data(), strnlen(record.replica.data(), record.replica.size())};
}

bool names_replica(const ReplicaRecord& record, std::string_view name) noexcept
{
    return record.name_checksum == checksum64(name.data(), name.size(), record_seed);
}

Result<std::optional<ReplicaRecord>> ReplicaRecordFile::read(const std::string& pool_path)
{
    const std::string path = path_for(pool_path);
    const os::Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
    if (!file.valid() && errno == ENOENT) {
        return std::optional<ReplicaRecord>{};
    }
    ReplicaRecord record{};
    const ssize_t got = file.valid() ? pread(file.get(), &record, sizeof record, 0) : -1;
    if (got < 0) {
        return fail(SP_E_IO, errno, "cannot read {}: {}", path, describe_errno(errno));
    }
    if (got != static_cast<ssize_t>(sizeof record) || !is_sound(record)) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{} is damaged: whether the pool and its replica have the same epochs is not known. Look at both (`stillpoint info`), "
                    "remove {} and the one of the two that you do not need",
                    path, path);
    }
    if (record.version != ReplicaRecord::version_known) {
        return fail(SP_E_POOL_VERSION, 0, "{} has version {}, which this Stillpoint does not know; use a newer one", path, record.version);
    }
    return std::optional{record};
}

Result<ReplicaRecordFile> ReplicaRecordFile::begin(const std::string& pool_path, const ReplicaRecord& record)
{
    ReplicaRecordFile made;
    made.path_ = path_for(pool_path);
    const std::string first_name = made.path_ + ".new";
    unlink(first_name.c_str());
    made.file_ = os::Descriptor{open(first_name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (!made.file_.valid()) {
        return fail(code_of_errno(errno), errno, "cannot create {}: {}", first_name, describe_errno(errno));
    }
    made.file_.claim();
    const ReplicaRecord whole = complete(record);
    if (auto stored = made.put(whole); !stored) {
        return pass_on(stored.error());
    }
    observe(MediumEvent::replica_record, 0, &whole, sizeof whole);
    if (auto named = replace_by(first_name, made.path_); !named) {
        return pass_on(named.error());
    }
    observe(MediumEvent::replica_record_sync);
    return made;
}

Result<void> ReplicaRecordFile::store(const ReplicaRecord& record) noexcept
{
    const ReplicaRecord whole = complete(record);
    observe(MediumEvent::replica_record, 0, &whole, sizeof whole);
    auto stored = put(whole);
    observe(MediumEvent::replica_record_sync);
    return stored;
}

Result<void> ReplicaRecordFile::put(const ReplicaRecord& record) noexcept
{
    if (pwrite(file_.get(), &record, sizeof record, 0) != static_cast<ssize_t>(sizeof record) || fdatasync(file_.get()) != 0) {
        return fail(code_of_errno(errno), errno, "cannot write {}: {}; nothing is acknowledged any more", path_, describe_errno(errno));
    }
    return {};
}

}  // namespace stillpoint
