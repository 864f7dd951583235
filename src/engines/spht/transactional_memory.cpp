#include "engines/spht/transactional_memory.hpp"

#include <mutex>
#include <new>
#include <sys/mman.h>

#include "engines/spht/own_statistics.hpp"
#include "engines/spht/own_transaction.hpp"
#include "engines/spht/spht_layout.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint::spht {

namespace {

/// The library's own stores have the first slot and log; thread n has those of n + 1.
constexpr std::uint32_t system_number = TransactionalMemory::stores_slot;
constexpr std::uint32_t slot_of_thread(std::uint32_t number) { return number + 1; }
std::atomic<std::uint64_t> serials{0};
constexpr std::uint64_t system_record_words = std::uint64_t{1} << 21;

}  // namespace

constinit thread_local OwnTransaction own_transaction [[gnu::tls_model("initial-exec")]];
constinit std::atomic<std::uint64_t> serial_in_use{0};

TransactionalMemory::~TransactionalMemory()
{
    stop();
    const std::uint32_t count = thread_count_.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < count; ++i) {
        threads_[i]->~Transaction();
        munmap(threads_[i], transaction_bytes_max);
    }
}

Result<void> TransactionalMemory::prepare(const Parts& parts)
{
    parts_ = parts;
    image_base_ = parts.shadow->base();
    serial_ = serials.fetch_add(1, std::memory_order_relaxed) + 1;
    medium_ = &parts.pool->medium();
    const std::uint64_t image_pages_max = parts.image_bytes_max / page_bytes;
    const std::uint64_t chunks = logs::LogPart::chunks_max(image_pages_max);
    if (auto done = space_.reserve(chunks, medium_->byte_addressable() ? medium_->mapping() : nullptr, false, medium_); !done) {
        return done;
    }
    if (auto done = order_.reserve(); !done) {
        return done;
    }
    if (auto done = links_.reserve(order_, space_, *medium_, parts.linking, chunks); !done) {
        return done;
    }
    if (auto done = system_search_.reserve(); !done) {
        return done;
    }
    if (auto done = gate_.reserve(threads_max + 1); !done) {
        return done;
    }
    if (auto done = locks_.reserve(); !done) {
        return done;
    }
    if (parts.executor == Executor::simulated) {
        if (auto done = simulated_machine_.prepare(threads_max + 1, parts.executor_seed); !done) {
            return done;
        }
    }
    if (auto done = threads_.reserve(threads_max, "the threads of transactions"); !done) {
        return done;
    }
    if (auto done = free_threads_.reserve(threads_max, "the threads of transactions"); !done) {
        return done;
    }
    if (auto done = early_pages_.reserve(image_pages_max); !done) {
        return done;
    }
    if (auto done = system_record_.reserve(system_record_words); !done) {
        return done;
    }
    if (auto done = prepare_shared_logs(); !done) {
        return done;
    }
    protocol_ = parts.protocol->make(*this);
    system_commit_.emplace(Committing{order_.slot(system_number), system_search_, system_log_, system_record_, system_number});
    return system_log_.init(space_, *medium_, system_number, parts.pool->facts().generation);
}

/// A transaction in hardware has its log for as long as its body runs, links look for what a thread has logged, and the other systems'
/// protocols log in more than one step: there each thread has its own.
Result<void> TransactionalMemory::prepare_shared_logs() noexcept
{
    const bool holds_log_in_body = parts_.executor == Executor::hardware || parts_.executor == Executor::simulated;
    if (is_byte_addressable() || holds_log_in_body || links_.direction() || !parts_.protocol->is_spht()) {
        return {};
    }
    return shared_logs_.prepare(space_, *medium_, slot_of_thread(0), parts_.pool->facts().generation);
}

Result<void> TransactionalMemory::start(Timestamp after, const logs::GroupRecord& group)
{
    clock_.start(after, parts_.protocol->clock);
    order_.set_durable(after);
    order_.set_slots(1);
    const std::uint64_t area = parts_.pool->facts().engine_area_first_page;
    if (!medium_->byte_addressable()) {
        const auto count = [](void* self) noexcept { return static_cast<TransactionalMemory*>(self)->log_count(); };
        const auto log = [](void* self, std::uint32_t number) noexcept -> logs::RedoLog& {
            return static_cast<TransactionalMemory*>(self)->log(number);
        };
        const auto failed = [](void* self, const Failure& failure) noexcept {
            static_cast<TransactionalMemory*>(self)->fail_for_good(failure);
        };
        if (auto done = group_.start({medium_, parts_.medium_lock, &space_, &order_, &clock_, (area + group_page) * page_bytes,
                                      logs::group_magic, count, log, failed, this},
                                     group);
            !done) {
            return done;
        }
    }
    if (auto done = protocol_->start(); !done) {
        return done;
    }
    const std::lock_guard guard(system_lock_);
    is_running_ = true;
    serial_in_use.store(serial_, std::memory_order_release);
    return {};
}

void TransactionalMemory::stop() noexcept
{
    serial_in_use.store(0, std::memory_order_release);
    group_.stop();
    if (protocol_ != nullptr) {
        protocol_->stop();
    }
}

void TransactionalMemory::detach_after_fork() noexcept
{
    serial_in_use.store(0, std::memory_order_release);
    group_.detach_after_fork();
    protocol_->detach_after_fork();
    is_running_ = false;
    system_lock_.reset_after_fork();
    threads_lock_.reset_after_fork();
    gate_.reset_after_fork();
    plain_stores_.detach_after_fork();
    store_check_.end();
    simulated_machine_.reset_after_fork();
    space_.reset_after_fork();
}

/// The pool need not be the process's default one.
Heap* TransactionalMemory::heap() const noexcept { return session_of(image_base_)->heap; }

// ---- Threads ------------------------------------------------------------------------------------

Transaction* TransactionalMemory::own_if_any() const noexcept
{
    return own_transaction.memory_serial == serial_ ? own_transaction.transaction : nullptr;
}

Transaction* TransactionalMemory::own() noexcept
{
    Transaction* const own = own_if_any();
    return own != nullptr ? own : make_own();
}

Transaction* TransactionalMemory::make_own() noexcept
{
    const std::lock_guard guard(threads_lock_);
    std::uint32_t number = thread_count_.load(std::memory_order_relaxed);
    if (free_thread_count_ != 0) {
        number = free_threads_[--free_thread_count_];
    } else {
        void* const memory = number == threads_max
                                 ? MAP_FAILED
                                 : mmap(nullptr, transaction_bytes_max, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return nullptr;
        }
        Transaction* const made = make_transaction(
            parts_.executor, memory, {*this, order_.slot(slot_of_thread(number)), gate_.place(number), slot_of_thread(number)});
        if (!made->reserve() ||
            (!shared_logs_.are_used() && !made->log().init(space_, *medium_, slot_of_thread(number), parts_.pool->facts().generation))) {
            made->~Transaction();
            munmap(memory, transaction_bytes_max);
            return nullptr;
        }
        threads_[number] = made;
        thread_count_.store(number + 1, std::memory_order_release);
        gate_.set_places(number + 1);
        order_.set_slots(number + 2);
    }
    own_transaction = {serial_, threads_[number], number};
    return threads_[number];
}

void TransactionalMemory::thread_ends() noexcept
{
    if (own_if_any() == nullptr) {
        return;
    }
    Transaction& own = *own_transaction.transaction;
    if (own.is_running()) {
        own.abort();
        own.drop_actions();
    }
    const std::lock_guard guard(threads_lock_);
    free_threads_[free_thread_count_++] = own_transaction.number;
    own_transaction = {};
}

logs::GroupRecord TransactionalMemory::replayable() noexcept
{
    logs::GroupRecord goal = group_.newest();
    if (is_byte_addressable()) {
        goal.marker = protocol_->replayable();
    }
    return goal;
}

void TransactionalMemory::note_linked(std::uint64_t records) noexcept
{
    own_statistic(OwnStatistic::linked_records).fetch_add(records, std::memory_order_relaxed);
}

void TransactionalMemory::note_missing_link() noexcept
{
    own_statistic(OwnStatistic::link_fallbacks).fetch_add(1, std::memory_order_relaxed);
}

logs::RedoLog& TransactionalMemory::log(std::uint32_t number) noexcept
{
    return number == system_number ? system_log_ : threads_[number - 1]->log();
}

void TransactionalMemory::fail_for_good(const Failure& failure) noexcept
{
    {
        const std::lock_guard guard(failure_lock_);
        if (has_failed()) {
            return;
        }
        failure_ = failure;
        has_failed_.store(true, std::memory_order_release);
    }
    group_.fail_for_good(failure);
    space_.wake_waiters();
    parts_.give_up(parts_.engine, failure);
}

// ---- Durability ---------------------------------------------------------------------------------

Result<void> TransactionalMemory::make_room(logs::RedoLog& log, std::uint64_t words) noexcept
{
    logs::WaitOnFullDisk wait(space_);
    while (true) {
        const std::uint32_t seen = space_.returns().load(std::memory_order_acquire);
        const logs::RedoLog::Room room = log.prepare(words);
        if (room == logs::RedoLog::Room::too_large) {
            return check_size(words);
        }
        if (space_.is_getting_full() || room == logs::RedoLog::Room::wait) {
            parts_.request_replay(parts_.engine);
        }
        if (room == logs::RedoLog::Room::ready) {
            return {};
        }
        if (has_failed()) {
            return pass_on(failure_);
        }
        if (wait.is_over()) {
            return fail(SP_E_NO_SPACE, 0, "{}: the log is full, and the disk has no room for more of it; free some space", medium_->path());
        }
        os::futex_wait(space_.returns(), seen, wait.deadline_ns());
    }
}

Result<void> TransactionalMemory::check_size(std::uint64_t words) const noexcept
{
    if (system_log_.has_place_for(words)) {
        return {};
    }
    return fail(SP_E_TRANSACTION_TOO_LARGE, 0,
                "the transaction writes {} KiB with its log's overhead, and the log of this pool holds {} KiB for one; divide it, or "
                "make a larger pool",
                words * 8 / kib, space_.chunk_count() / 2 * logs::chunk_bytes / kib);
}

std::uint64_t TransactionalMemory::marker_offset() const noexcept
{
    return (parts_.pool->facts().engine_area_first_page + marker_page) * page_bytes;
}

bool TransactionalMemory::persist_log() noexcept { return !medium_->byte_addressable() || logs::fence_log(*medium_); }

bool TransactionalMemory::await_group(Timestamp timestamp) noexcept
{
    const auto done = group_.wait(timestamp);
    if (!done) {
        fail_for_good(done.error());
    }
    return done.has_value();
}

const Failure& TransactionalMemory::failure_to_persist() noexcept
{
    if (!has_failed()) {
        fail_for_good(logs::loss_of(*medium_));
    }
    return failure_;
}

Result<void> TransactionalMemory::await(Timestamp timestamp) noexcept
{
    return !has_failed() && protocol_->await(timestamp) ? Result<void>{} : pass_on(failure_to_persist());
}

// ---- The library's own stores --------------------------------------------------------------------

Timestamp TransactionalMemory::append_system_record() noexcept
{
    if (system_record_.empty() || !protocol_->make_room(*system_commit_, system_record_.words())) {
        return 0;
    }
    return protocol_->commit_stores(*system_commit_);
}

void TransactionalMemory::step_aside() noexcept
{
    if (Transaction* const own = own_if_any(); own != nullptr && own->is_running()) {
        own->step_aside();
    }
}

void TransactionalMemory::log_store(const void* address, std::size_t size) noexcept
{
    step_aside();
    const std::uint64_t offset = offset_of(address);
    if (offset == no_offset) {
        return;
    }
    const std::lock_guard guard(system_lock_);
    if (!is_running_) {
        early_pages_.note(offset, size);
        return;
    }
    system_record_.clear();
    system_record_.add_range(offset, address, size);
    static_cast<void>(append_system_record());
}

/// The record has a word of the image as it is: what counts is its timestamp.
Result<void> TransactionalMemory::seal() noexcept
{
    const std::span<const std::byte> same = {image_base_, sizeof(std::uint64_t)};
    return log_stores({&same, 1});
}

/// The library's own records are counted by the group of a later transaction. With full logs there is none, and no replay frees what they
/// take: so a group counts what is in the logs now. False, as try_seal().
Result<bool> TransactionalMemory::count_logged() noexcept
{
    if (!is_byte_addressable()) {
        if (auto counted = group_.wait(clock_.now()); !counted) {
            return pass_on(counted.error());
        }
    }
    return false;
}

Result<bool> TransactionalMemory::try_seal() noexcept
{
    if (!protocol_->leaves_stores_to_later_records()) {
        return true;
    }
    // A thread that has the lock may wait for room in the log, which the caller makes.
    constexpr unsigned turns_max = 1000;
    for (unsigned turns = 0; !system_lock_.try_lock();) {
        if (turns == turns_max) {
            return count_logged();
        }
        logs::wait_turn(turns);
    }
    Timestamp timestamp = 0;
    {
        const std::lock_guard guard(system_lock_, std::adopt_lock);
        system_record_.clear();
        system_record_.add_range(0, image_base_, sizeof(std::uint64_t));
        if (system_log_.prepare(system_record_.words()) != logs::RedoLog::Room::ready) {
            return count_logged();
        }
        timestamp = protocol_->commit_stores(*system_commit_);
    }
    if (auto done = finish_stores(timestamp); !done) {
        return pass_on(done.error());
    }
    return true;
}

Result<void> TransactionalMemory::finish_stores(Timestamp timestamp) noexcept
{
    return !has_failed() && protocol_->finish_stores(*system_commit_, timestamp) ? Result<void>{} : pass_on(failure_to_persist());
}

Result<void> TransactionalMemory::log_stores(std::span<const std::span<const std::byte>> ranges) noexcept
{
    step_aside();
    Timestamp timestamp = 0;
    {
        const std::lock_guard guard(system_lock_);
        if (!is_running_) {
            for (const std::span<const std::byte> range : ranges) {
                if (const std::uint64_t offset = offset_of(range.data()); offset != no_offset) {
                    early_pages_.note(offset, range.size());
                }
            }
            return {};
        }
        system_record_.clear();
        for (const std::span<const std::byte> range : ranges) {
            if (const std::uint64_t offset = offset_of(range.data()); offset != no_offset) {
                system_record_.add_range(offset, range.data(), range.size());
            }
        }
        timestamp = append_system_record();
    }
    if (timestamp == 0) {
        return has_failed() ? Result<void>(pass_on(failure_)) : Result<void>{};
    }
    return finish_stores(timestamp);
}

// ---- Program memory that is durable too ----------------------------------------------------------

void TransactionalMemory::add_mirrored(const MirroredRange& range) noexcept
{
    if (mirrored_count_ != mirrored_max) {
        mirrored_[mirrored_count_++] = range;
    }
}

std::uint64_t TransactionalMemory::mirrored_offset_of(const void* address) const noexcept
{
    for (std::size_t i = 0; i < mirrored_count_; ++i) {
        const auto inside = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - mirrored_[i].program_memory);
        if (inside < mirrored_[i].size) {
            return static_cast<std::uint64_t>(mirrored_[i].image_copy - image_base_) + inside;
        }
    }
    return no_offset;
}

}  // namespace stillpoint::spht
