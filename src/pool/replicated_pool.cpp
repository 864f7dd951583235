#include "pool/replicated_pool.hpp"

#include <algorithm>
#include <cstring>
#include <unistd.h>
#include <utility>
#include <vector>

#include "core/canary.hpp"
#include "media/replica/page_transfer.hpp"
#include "os/log.hpp"
#include "pool/superblock.hpp"
#include "pool/uuid.hpp"

namespace stillpoint {

namespace {

/// Superblocks and commit records lie in it.
constexpr std::uint64_t head_bytes = 4 * mib;

Result<layout::Superblock> superblock_of(const Medium& medium)
{
    if (medium.size_bytes() < layout::superblock_copies * page_bytes) {
        return fail(SP_E_NOT_A_POOL, 0,
                    "{}: not a pool: it has {} bytes; check the name, or move it away, and the next start makes it again", medium.path(),
                    medium.size_bytes());
    }
    SuperblockPair pair{};
    for (std::size_t copy = 0; copy < layout::superblock_copies; ++copy) {
        const bool is_read = medium.read(copy * page_bytes, std::as_writable_bytes(std::span(&pair.copies[copy], 1))).has_value();
        pair.states[copy] = is_read ? judge_superblock(pair.copies[copy]) : SuperblockState::unreadable;
    }
    const auto chosen = choose_superblock(pair, medium.path());
    if (!chosen) {
        return pass_on(chosen.error());
    }
    if (auto valid = validate_superblock(pair.copies[*chosen], medium.path()); !valid) {
        return pass_on(valid.error());
    }
    return pair.copies[*chosen];
}

void note_block(const layout::Superblock& block, ReplicaRecord& record) noexcept
{
    std::copy(std::begin(block.uuid), std::end(block.uuid), record.pool_uuid.begin());
    record.generation = block.generation;
}

Result<void> note_pool(const Medium& medium, ReplicaRecord& record)
{
    const auto block = superblock_of(medium);
    if (block) {
        note_block(*block, record);
    }
    return block ? Result<void>{} : Result<void>{pass_on(block.error())};
}

bool is_of_another_pool(const ReplicaRecord& record, const layout::Superblock& block) noexcept
{
    return record.pool_uuid != Uuid{} && !std::equal(record.pool_uuid.begin(), record.pool_uuid.end(), std::begin(block.uuid));
}

/// As the pool here is opened.
MediumOptions options_of_replica(const std::string& name, std::uint64_t writer, const MediumOptions& local)
{
    MediumOptions options;
    options.path = name;
    options.writer = writer;
    options.lease_ms = local.lease_ms;
    options.cluster_wait_max_ms = local.cluster_wait_max_ms;
    options.take_over = local.take_over;
    return options;
}

Result<std::unique_ptr<Medium>> open_again(const ReplicaSettings& settings)
{
    MediumOptions local;
    local.lease_ms = settings.lease_ms;
    local.cluster_wait_max_ms = settings.cluster_wait_max_ms;
    return open_medium(options_of_replica(settings.name, settings.writer, local));
}

Result<bool> have_one_head(const Medium& one, const Medium& other, std::uint64_t size_bytes)
{
    if (other.size_bytes() < size_bytes) {
        return false;
    }
    const std::uint64_t size = std::min(head_bytes, size_bytes);
    std::vector<std::byte> bytes(size);
    std::vector<std::byte> others(size);
    if (auto read = one.read(0, bytes); !read) {
        return pass_on(read.error());
    }
    if (auto read = other.read(0, others); !read) {
        return pass_on(read.error());
    }
    return bytes == others;
}

tl::unexpected<Failure> refuse(const std::string& local, const std::string& replica, std::string_view reason)
{
    return fail(SP_E_DIVERGED, 0,
                "{} and {}: {}. Nothing is merged. Look at both (`stillpoint info`), keep one, and move the other away: `mv {} {}.old` "
                "to go on with {}; the next start makes it again",
                local, replica, reason, local, local, replica);
}

/// Both sides of an opening, and the record of how they relate.
struct Opening {
    const MediumOptions& options;
    const ReplicaOptions& replica;
    std::optional<ReplicaRecord> record;
    std::unique_ptr<Medium> local;
    std::unique_ptr<Medium> remote;
    layout::Superblock block{};  ///< of the pool here, once it is there

    [[nodiscard]] const std::string& path() const { return options.path; }
    [[nodiscard]] Result<void> read_record();
    [[nodiscard]] Result<void> open_both();
    [[nodiscard]] Result<void> reconcile();
    [[nodiscard]] Result<void> decide();
    [[nodiscard]] std::string incoming_path() const { return path() + ".incoming"; }
    [[nodiscard]] Result<void> make_local();
    [[nodiscard]] Result<void> note_next(const std::string& incoming);
    [[nodiscard]] bool has_taken_next() noexcept;
    [[nodiscard]] Result<void> make_remote();
    [[nodiscard]] Result<void> send_to_remote();
    [[nodiscard]] Result<void> look_at_local();
    void describe(ReplicaState state);
};

Result<std::uint64_t> draw_writer()
{
    const auto uuid = draw_uuid();
    if (!uuid) {
        return pass_on(uuid.error());
    }
    std::uint64_t number = 0;
    std::memcpy(&number, uuid->data() + 8, sizeof number);
    return number | 1;
}

Result<void> Opening::read_record()
{
    auto read = ReplicaRecordFile::read(path());
    if (!read) {
        return pass_on(read.error());
    }
    if (*read && names_replica(**read, replica.name)) {
        record = **read;
    }
    return {};
}

/// Either may be missing.
Result<void> Opening::open_both()
{
    auto opened = open_medium(options);
    if (!opened && opened.error().code != SP_E_POOL_MISSING) {
        return pass_on(opened.error());
    }
    local = opened ? std::move(*opened) : nullptr;
    // The lock of the pool is held: the record stays as it is.
    if (auto read = read_record(); !read) {
        return read;
    }
    if (!record) {
        const auto writer = draw_writer();
        if (!writer) {
            return pass_on(writer.error());
        }
        record = ReplicaRecord{};
        record->writer = *writer;
        put_replica_name(*record, replica.name);
    }
    auto there = open_medium(options_of_replica(replica.name, record->writer, options));
    if (!there && there.error().code != SP_E_POOL_MISSING) {
        return pass_on(there.error());
    }
    remote = there ? std::move(*there) : nullptr;
    if (local == nullptr && remote == nullptr) {
        return fail(SP_E_POOL_MISSING, 0, "neither {} nor {} is there", path(), replica.name);
    }
    return {};
}

Result<void> Opening::look_at_local()
{
    const auto found = superblock_of(*local);
    if (!found) {
        return pass_on(found.error());
    }
    block = *found;
    if (block.durability == static_cast<std::uint32_t>(Durability::process)) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "{}: its durability is process: after a power cut it may have any bytes, and a replica would get them; make a pool "
                    "with durability power, or leave the option replica out",
                    path());
    }
    if (local->byte_addressable()) {
        return fail(SP_E_UNSUPPORTED, 0, "{}: a pool that is written by stores has no replica; say --medium file (option medium=file)",
                    path());
    }
    local->set_durability(Durability::power);
    // A run that was killed may have left bytes that a power cut still takes away; what is recorded as equal must stay.
    return local->sync();
}

void Opening::describe(ReplicaState state)
{
    note_block(block, *record);
    note_level(*record, replica.level);
    record->state = state;
    record->file_number = file_number_of(path());
    record->is_starting = 0;
    record->next_file_number = 0;
    record->next_generation = 0;
}

/// Before the file that was made of the replica has the pool's name: a start after a crash knows by that which of the two files is there.
Result<void> Opening::note_next(const std::string& incoming)
{
    if (local == nullptr) {
        describe(ReplicaState::equal);
        record->file_number = file_number_of(incoming);
    } else {
        record->next_file_number = file_number_of(incoming);
        record->next_generation = block.generation;
    }
    const auto stored = ReplicaRecordFile::begin(path(), *record);
    return stored ? Result<void>{} : Result<void>{pass_on(stored.error())};
}

/// A start was cut off when the file that it had made of the replica had the pool's name: the record of it is that start's.
bool Opening::has_taken_next() noexcept
{
    if (record->next_file_number == 0 || record->next_file_number != file_number_of(path())) {
        return false;
    }
    record->state = ReplicaState::equal;
    record->file_number = record->next_file_number;
    record->generation = record->next_generation;
    record->is_starting = 0;
    return true;
}

/// The pool here is made of the replica, beside the old one if there is one, and takes its name in one step.
Result<void> Opening::make_local()
{
    const auto theirs = superblock_of(*remote);
    if (!theirs) {
        return pass_on(theirs.error());
    }
    block = *theirs;
    MediumOptions incoming = options;
    incoming.path = incoming_path();
    incoming.publish_later = false;
    incoming.durability = Durability::power;
    const std::uint64_t size = round_up(block.file_bytes, page_bytes);
    auto made = create_medium(incoming, size);
    if (!made) {
        return pass_on(made.error());
    }
    auto copied = copy_to_new(*remote, **made, size);
    copied = copied ? (*made)->sync() : copied;
    made->reset();
    if (!copied) {
        unlink(incoming.path.c_str());
        return copied;
    }
    if (auto noted = note_next(incoming.path); !noted) {
        return noted;
    }
    if (auto named = replace_pool(incoming.path, path()); !named) {
        return named;
    }
    os::log(os::Severity::note, "{} is made of {}: {} MiB", path(), replica.name, size / mib);
    auto opened = open_medium(options);  // The old one's lock is still held by `local`, and the replica's by this process.
    if (!opened) {
        return pass_on(opened.error());
    }
    local = std::move(*opened);
    return look_at_local();
}

Result<void> Opening::make_remote()
{
    const std::uint64_t size = round_up(block.file_bytes, page_bytes);
    auto made = create_medium(options_of_replica(replica.name, record->writer, options), size);
    if (!made) {
        return pass_on(made.error());
    }
    remote = std::move(*made);
    if (auto copied = copy_to_new(*local, *remote, size); !copied) {
        return copied;
    }
    if (auto synced = remote->sync(); !synced) {
        return synced;
    }
    // The record is there before the replica has its name: of two that are there it is known how they relate.
    describe(ReplicaState::equal);
    if (auto stored = ReplicaRecordFile::begin(path(), *record); !stored) {
        return pass_on(stored.error());
    }
    if (auto claimed = remote->claim(record->writer); !claimed) {
        return claimed;
    }
    os::log(os::Severity::note, "{} is made of {}: {} MiB", replica.name, path(), size / mib);
    return remote->publish();
}

Result<void> Opening::send_to_remote()
{
    const auto sent = transfer_pages(*local, *remote);
    if (!sent) {
        return pass_on(sent.error());
    }
    os::log(os::Severity::note, "{}: {} pages that only {} had are sent", replica.name, sent->pages_sent, path());
    return {};
}

/// Both are there.
Result<void> Opening::decide()
{
    const auto theirs = superblock_of(*remote);
    if (!theirs) {
        return pass_on(theirs.error());
    }
    if (std::memcmp(block.uuid, theirs->uuid, sizeof block.uuid) != 0) {
        return refuse(path(), replica.name, "these are two different pools");
    }
    const bool is_of_another = is_of_another_pool(*record, block);
    const bool is_next = !is_of_another && has_taken_next();
    const bool is_the_recorded_file = record->state != ReplicaState{} && record->file_number == file_number_of(path()) && !is_of_another;
    if (!is_the_recorded_file || is_next) {
        // Right after it was made again, also by a version that did not note the new file: there is nothing to decide.
        const auto alike = have_same_bytes(*local, *remote);
        if (!alike || *alike) {
            return alike ? Result<void>{} : Result<void>{pass_on(alike.error())};
        }
    }
    if (record->state == ReplicaState{}) {
        return refuse(path(), replica.name, "both are there, and no record says which of them is newer");
    }
    if (is_of_another) {
        return refuse(path(), replica.name, "the record beside the pool is of another pool, and none says which of these two is newer");
    }
    if (block.generation < record->generation || !is_the_recorded_file) {
        return refuse(path(), replica.name,
                      "the pool here is not the file that was replicated: an older copy may have been put in its place");
    }
    const bool is_theirs = remote->last_writer() != record->writer && !is_removed(Canary::newer_side);
    const bool ran_alone = block.generation > record->generation + record->is_starting;
    if (is_theirs) {
        if (ran_alone || record->state == ReplicaState::ahead) {
            return refuse(path(), replica.name,
                          ran_alone ? "each was written without the other"
                                    : "another machine has taken over, and this one may have acknowledged epochs "
                                      "that the other has not got");
        }
        return make_local();
    }
    if (ran_alone || record->state != ReplicaState::equal) {
        return send_to_remote();
    }
    const auto alike = have_one_head(*local, *remote, block.file_bytes);
    if (!alike) {
        return pass_on(alike.error());
    }
    return *alike ? Result<void>{} : refuse(path(), replica.name, "they are not as the last run left them");
}

Result<void> Opening::reconcile()
{
    // One that was cut off. No other process has such a file: this one has the lock of the pool or of its replica.
    unlink(incoming_path().c_str());
    if (local != nullptr) {
        if (auto looked = look_at_local(); !looked) {
            return looked;
        }
    }
    if (remote == nullptr) {
        return make_remote();
    }
    return local == nullptr ? make_local() : decide();
}

ReplicaSettings settings_of(const MediumOptions& options, const ReplicaOptions& replica, std::uint64_t writer)
{
    ReplicaSettings settings;
    settings.name = replica.name;
    settings.writer = writer;
    settings.level = replica.level;
    settings.lag_ns_max = std::uint64_t{replica.lag_ms_max} * 1'000'000;
    settings.buffer_bytes = replica.buffer_bytes;
    settings.reopen = &open_again;
    settings.lease_ms = options.lease_ms;
    settings.cluster_wait_max_ms = options.cluster_wait_max_ms;
    settings.newest_epoch = replica.newest_epoch;
    settings.tell = replica.tell;
    settings.context = replica.context;
    settings.note_pool = &note_pool;
    return settings;
}

/// A replica follows writes by blocks.
MediumOptions by_blocks(MediumOptions options)
{
    options.kind = options.kind.value_or(MediumKind::file);
    return options;
}

}  // namespace

Result<std::unique_ptr<ReplicatedMedium>> open_replicated(const MediumOptions& local, const ReplicaOptions& replica)
{
    const MediumOptions options = by_blocks(local);
    Opening opening{options, replica, {}, {}, {}, {}};
    if (auto opened = opening.open_both(); !opened) {
        return pass_on(opened.error());
    }
    if (opening.remote != nullptr && is_removed(Canary::claim_after_decision)) {
        static_cast<void>(opening.remote->claim(opening.record->writer));
    }
    if (auto reconciled = opening.reconcile(); !reconciled) {
        return pass_on(reconciled.error());
    }
    opening.describe(ReplicaState::equal);
    auto file = ReplicaRecordFile::begin(options.path, *opening.record);
    if (!file) {
        return pass_on(file.error());
    }
    if (auto claimed = opening.remote->claim(opening.record->writer); !claimed) {
        return pass_on(claimed.error());
    }
    return ReplicatedMedium::make(std::move(opening.local), std::move(opening.remote),
                                  settings_of(options, replica, opening.record->writer), *opening.record, std::move(*file));
}

Result<std::unique_ptr<ReplicatedMedium>> create_replicated(const MediumOptions& local, const ReplicaOptions& replica,
                                                            std::uint64_t size_bytes)
{
    const MediumOptions options = by_blocks(local);
    if (options.durability == Durability::process) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "{}: a pool with a replica has durability power; leave the option durability out, and put it on a disk", options.path);
    }
    const auto writer = draw_writer();
    if (!writer) {
        return pass_on(writer.error());
    }
    auto here = create_medium(options, size_bytes);
    if (!here) {
        return pass_on(here.error());
    }
    if ((*here)->byte_addressable()) {
        return fail(SP_E_UNSUPPORTED, 0, "{}: a pool that is written by stores has no replica; say --medium file (option medium=file)",
                    options.path);
    }
    auto there = create_medium(options_of_replica(replica.name, *writer, options), size_bytes);
    if (!there) {
        return pass_on(there.error());
    }
    if (auto claimed = (*there)->claim(*writer); !claimed) {
        return pass_on(claimed.error());
    }
    ReplicaRecord record{};
    record.state = ReplicaState::differing;
    record.is_starting = 1;
    record.writer = *writer;
    note_level(record, replica.level);
    put_replica_name(record, replica.name);
    return ReplicatedMedium::make(std::move(*here), std::move(*there), settings_of(options, replica, *writer), record, std::nullopt);
}

}  // namespace stillpoint
