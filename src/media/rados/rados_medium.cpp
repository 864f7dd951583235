#include "media/rados/rados_medium.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "media/errno_text.hpp"
#include "media/rados/open_request.hpp"

namespace stillpoint {

namespace {

using rados::control_slot;
using rados::Mode;
using rados::object_bytes;
using rados::Operation;
using rados::write_slots;

}  // namespace

Result<std::unique_ptr<Medium>> RadosMedium::open(const MediumOptions& options, Mode mode, std::uint64_t size_bytes)
{
    if (options.kind.has_value() && *options.kind != MediumKind::file) {
        return fail(SP_E_UNSUPPORTED, 0, "{}: a pool in Ceph is written by blocks; leave the option medium out", options.path);
    }
    const auto request = rados::request_for(options, mode, size_bytes);
    if (!request) {
        return pass_on(request.error());
    }
    auto faults = options.faults.empty() ? FaultPlan::from_environment() : FaultPlan::parse(options.faults);
    if (!faults) {
        return pass_on(faults.error());
    }
    rados::OpenReply reply{};
    std::unique_ptr<rados::AgentLink> link;
    if (mode == Mode::write || mode == Mode::read) {
        link = rados::AgentLink::inherited(options.path, mode == Mode::write, reply);
    }
    if (link == nullptr) {
        const auto agent = rados::find_agent();
        if (!agent) {
            return pass_on(agent.error());
        }
        auto opened = rados::AgentLink::open(*agent, *request, reply);
        if (!opened) {
            return pass_on(opened.error());
        }
        link = std::move(*opened);
    }
    std::unique_ptr<RadosMedium> medium(new RadosMedium(options, mode, std::move(link), reply));
    medium->faults_ = *faults;
    return medium;
}

int RadosMedium::owner_process(const std::string& path)
{
    MediumOptions options;
    options.path = path;
    const auto request = rados::request_for(options, Mode::owner, 0);
    const auto agent = request ? rados::find_agent() : Result<std::string>{pass_on(request.error())};
    rados::OpenReply reply{};
    return agent && rados::AgentLink::open(*agent, *request, reply) ? reply.owner_process : 0;
}

RadosMedium::RadosMedium(const MediumOptions& options, Mode mode, std::unique_ptr<rados::AgentLink> link, const rados::OpenReply& reply)
    : path_(options.path), link_(std::move(link)), size_bytes_(reply.size_bytes), last_writer_(reply.last_writer),
      durability_(options.durability), is_writable_(mode == Mode::create || mode == Mode::write), wait_(options.cluster_wait_max_ms)
{
    if (reply.is_erasure_coded != 0) {
        fmt::format_to_n(mechanism_.data(), mechanism_.size() - 1, "rados, erasure coded in {} pieces", reply.replicas);
    } else if (reply.replicas != 0) {
        fmt::format_to_n(mechanism_.data(), mechanism_.size() - 1, "rados, {} replica{}", reply.replicas, reply.replicas == 1 ? "" : "s");
    } else {
        std::strcpy(mechanism_.data(), "rados");
    }
}

RadosMedium::~RadosMedium()
{
    if (!is_detached_ && !link_->is_borrowed()) {
        // The lock is free when this returns: the next opening need not wait for a lease.
        static_cast<void>(control(Operation::close, 0));
    }
}

MediumCounters RadosMedium::counters() const noexcept
{
    return {.bytes_written = bytes_written_.get(),
            .write_calls = write_calls_.get(),
            .syncs = syncs_.get(),
            .persist_points = faults_.persist_points()};
}

RadosMedium::Piece RadosMedium::piece_at(std::uint64_t offset, std::uint64_t size) noexcept
{
    const std::uint64_t in_object = offset % object_bytes;
    return {offset / object_bytes, static_cast<std::uint32_t>(in_object),
            static_cast<std::uint32_t>(std::min({size, object_bytes - in_object, std::uint64_t{rados::slot_bytes}}))};
}

Result<void> RadosMedium::check_writable() const
{
    if (!is_writable_) {
        return fail(SP_E_POOL_READ_ONLY, 0, "{} was opened for reading only", path_);
    }
    if (is_frozen_) {
        return fail(SP_E_POOL_READ_ONLY, 0,
                    "{} is read-only since an earlier write or sync failed; restart the program to continue from its last durable state",
                    path_);
    }
    return {};
}

tl::unexpected<Failure> RadosMedium::freeze(const Failure& failure) noexcept
{
    is_frozen_ = true;
    const auto told = fail(failure.code, failure.os_error, "{}: {}", path_, failure.text());
    if (failure.code == SP_E_POOL_LOCKED) {
        tell_to_end(told.value());
    }
    return told;
}

tl::unexpected<Failure> RadosMedium::freeze(int error, std::string_view action) noexcept
{
    const sp_error code = code_of_errno(error) == SP_E_NO_SPACE ? SP_E_NO_SPACE : SP_E_IO;
    return freeze(fail(code, error, "{} failed: {}; the pool is read-only from here on and its last durable state is intact", action,
                       describe_errno(error))
                      .value());
}

Result<void> RadosMedium::control(Operation operation, std::uint64_t size)
{
    rados::Slot& slot = link_->slot(control_slot);
    slot.operation = operation;
    slot.size_bytes = size;
    slot.extent_count = 0;
    if (auto asked = link_->request(control_slot); !asked) {
        return asked;
    }
    if (operation != Operation::close) {
        if (auto waited = wait_.await(*link_, control_slot, path_); !waited) {
            return waited;
        }
    }
    return link_->finish(control_slot);
}

Result<void> RadosMedium::resize(std::uint64_t size)
{
    if (auto allowed = check_writable(); !allowed) {
        return allowed;
    }
    if (size < size_bytes_ || size % page_bytes != 0 || size > rados::file_bytes_max) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{} cannot be resized from {} to {} bytes", path_, size_bytes_, size);
    }
    if (size == size_bytes_) {
        return {};
    }
    faults_.persist();
    if (const Fault fault = faults_.next(FaultPoint::allocate)) {
        return fail(code_of_errno(fault.error), fault.error, "{} cannot grow: {}", path_, describe_errno(fault.error));
    }
    if (auto done = control(Operation::resize, size); !done) {
        return freeze(done.error());
    }
    size_bytes_ = size;
    return {};
}

Result<void> RadosMedium::publish()
{
    if (auto allowed = check_writable(); !allowed) {
        return allowed;
    }
    faults_.persist();
    auto done = control(Operation::publish, 0);
    return done ? done : Result<void>{freeze(done.error())};
}

Result<void> RadosMedium::claim(std::uint64_t writer)
{
    if (auto allowed = check_writable(); !allowed) {
        return allowed;
    }
    faults_.persist();
    auto done = control(Operation::claim, writer);
    return done ? done : Result<void>{freeze(done.error())};
}

Result<void> RadosMedium::write(std::span<const BlockWrite> batch)
{
    if (auto allowed = check_writable(); !allowed) {
        return allowed;
    }
    for (const BlockWrite& write : batch) {
        if (write.offset % page_bytes != 0 || write.size % page_bytes != 0 || write.offset > size_bytes_ ||
            write.size > size_bytes_ - write.offset) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "{}: {} bytes at offset {} are not whole pages inside the pool, which has {} bytes",
                        path_, write.size, write.offset, size_bytes_);
        }
    }
    for (const BlockWrite& write : batch) {
        for (std::size_t done = 0; done < write.size;) {
            const Piece piece = piece_at(write.offset + done, write.size - done);
            if (auto added = add(piece, write.data + done); !added) {
                return added;
            }
            done += piece.size;
        }
    }
    while (open_count_ > 0) {
        if (auto handed = hand_over(0); !handed) {
            return handed;
        }
    }
    return {};
}

/// Puts the piece into the slot that is being filled for its object. An object has one at a time, so that writes of the same bytes keep
/// their order.
Result<void> RadosMedium::add(const Piece& piece, const std::byte* data)
{
    constexpr std::uint32_t open_max = write_slots / 2;
    std::uint32_t index = open_count_;
    while (index > 0 && link_->slot(open_[index - 1]).object != piece.object) {
        --index;
    }
    if (index > 0) {
        const std::uint32_t number = open_[--index];
        if (link_->slot(number).extent_count == rados::extents_max || filled_bytes_[number] + piece.size > rados::slot_bytes) {
            if (auto handed = hand_over(index); !handed) {
                return handed;
            }
            index = open_count_;
        }
    } else {
        index = open_count_;
    }
    if (index == open_count_) {
        if (open_count_ == open_max) {
            if (auto handed = hand_over(0); !handed) {
                return handed;
            }
        }
        const auto taken = take_slot();
        if (!taken) {
            return pass_on(taken.error());
        }
        index = open_count_++;
        open_[index] = *taken;
        rados::Slot& fresh = link_->slot(*taken);
        fresh.operation = Operation::write;
        fresh.object = piece.object;
        fresh.extent_count = 0;
        filled_bytes_[*taken] = 0;
    }
    const std::uint32_t number = open_[index];
    rados::Slot& slot = link_->slot(number);
    std::memcpy(link_->data(number) + filled_bytes_[number], data, piece.size);
    filled_bytes_[number] += piece.size;
    if (slot.extent_count > 0) {
        rados::Extent& last = slot.extents[slot.extent_count - 1];
        if (last.offset + last.size == piece.offset) {
            last.size += piece.size;
            return {};
        }
    }
    slot.extents[slot.extent_count++] = {piece.offset, piece.size};
    return {};
}

/// A slot that neither the agent has nor this thread is filling.
Result<std::uint32_t> RadosMedium::take_slot()
{
    std::uint32_t oldest = write_slots;
    for (std::uint32_t step = 0; step < write_slots; ++step) {
        const std::uint32_t number = (next_ + step) % write_slots;
        const auto open_end = open_.begin() + open_count_;
        if (std::find(open_.begin(), open_end, number) != open_end) {
            continue;
        }
        if (!in_flight_[number] || link_->is_done(number)) {
            oldest = number;
            break;
        }
        oldest = oldest == write_slots ? number : oldest;
    }
    next_ = (oldest + 1) % write_slots;
    if (in_flight_[oldest]) {
        if (auto finished = finish_write(oldest); !finished) {
            return pass_on(finished.error());
        }
    }
    return oldest;
}

Result<void> RadosMedium::hand_over(std::uint32_t open_index)
{
    const std::uint32_t number = open_[open_index];
    std::copy(open_.begin() + open_index + 1, open_.begin() + open_count_, open_.begin() + open_index);
    --open_count_;
    faults_.persist();
    if (const Fault fault = faults_.next(FaultPoint::write); fault.error != 0) {
        return freeze(fault.error, "writing");
    }
    write_calls_.add(1);
    bytes_written_.add(filled_bytes_[number]);
    {
        const std::lock_guard guard(lock_);
        in_flight_[number] = true;
    }
    auto asked = link_->request(number);
    return asked ? asked : Result<void>{freeze(asked.error())};
}

Result<void> RadosMedium::finish_write(std::uint32_t number)
{
    // Still marked while it is awaited: a reader of the same bytes waits, too.
    if (auto waited = wait_.await(*link_, number, path_); !waited) {
        return freeze(waited.error());
    }
    auto finished = link_->finish(number);
    {
        const std::lock_guard guard(lock_);
        in_flight_[number] = false;
    }
    faults_.persist();
    return finished ? finished : Result<void>{freeze(finished.error())};
}

Result<void> RadosMedium::sync()
{
    if (auto allowed = check_writable(); !allowed) {
        return allowed;
    }
    faults_.persist();
    if (const Fault fault = faults_.next(FaultPoint::sync)) {
        return freeze(fault.error, "syncing");
    }
    for (std::uint32_t number = 0; number < write_slots; ++number) {
        if (in_flight_[number]) {
            if (auto finished = finish_write(number); !finished) {
                return finished;
            }
        }
    }
    // Every replica has it. Whether this process still is the owner decides whether it may say so.
    if (auto owned = link_->check_ownership(); !owned) {
        return freeze(owned.error());
    }
    wait_.end(path_);
    syncs_.add(1);
    faults_.persist();
    return {};
}

Result<void> RadosMedium::check_intact() { return is_frozen_ ? check_writable() : Result<void>{}; }

void RadosMedium::await_writes_of(const Piece& piece) const noexcept
{
    for (;;) {
        std::uint32_t writer = write_slots;
        {
            const std::lock_guard guard(lock_);
            for (std::uint32_t number = 0; number < write_slots && writer == write_slots; ++number) {
                const rados::Slot& slot = link_->slot(number);
                if (!in_flight_[number] || link_->is_done(number) || slot.object != piece.object) {
                    continue;
                }
                const auto extents = std::span(slot.extents).first(std::min(slot.extent_count, rados::extents_max));
                const bool overlaps = std::ranges::any_of(extents, [&](const rados::Extent& extent) {
                    return extent.offset < piece.offset + piece.size && piece.offset < extent.offset + extent.size;
                });
                writer = overlaps ? number : write_slots;
            }
        }
        if (writer == write_slots || !link_->await(writer)) {
            return;
        }
    }
}

/// The reads of one call that the agent has.
struct RadosMedium::ReadsInFlight {
    struct Read {
        std::uint32_t slot;
        std::byte* destination;
        std::uint32_t size;
    };
    explicit ReadsInFlight(const RadosMedium& owner) noexcept : medium(owner) {}
    ~ReadsInFlight()
    {
        while (count > 0) {
            static_cast<void>(finish_first());
        }
    }
    ReadsInFlight(const ReadsInFlight&) = delete;
    ReadsInFlight& operator=(const ReadsInFlight&) = delete;

    Result<void> finish_first()
    {
        const Read read = reads[0];
        std::copy(reads.begin() + 1, reads.begin() + count, reads.begin());
        --count;
        auto finished = medium.link_->finish(read.slot);
        if (finished) {
            std::memcpy(read.destination, medium.link_->data(read.slot), read.size);
        }
        give_back(read.slot);
        return finished;
    }
    void give_back(std::uint32_t slot) const noexcept
    {
        medium.free_reads_.fetch_or(1u << (slot - write_slots), std::memory_order_release);
        os::futex_wake(medium.free_reads_);
    }

    const RadosMedium& medium;
    std::array<Read, rados::read_slots> reads{};
    std::uint32_t count = 0;
};

Result<void> RadosMedium::begin_read(ReadsInFlight& reads, const Piece& piece, std::byte* destination) const
{
    std::uint32_t free = free_reads_.load(std::memory_order_acquire);
    for (;;) {
        if (free == 0) {
            if (reads.count > 0) {
                if (auto finished = reads.finish_first(); !finished) {
                    return finished;
                }
            } else {
                os::futex_wait(free_reads_, 0);
            }
            free = free_reads_.load(std::memory_order_acquire);
        } else if (free_reads_.compare_exchange_weak(free, free & (free - 1), std::memory_order_acq_rel)) {
            break;
        }
    }
    const std::uint32_t number = write_slots + static_cast<std::uint32_t>(__builtin_ctz(free));
    await_writes_of(piece);
    rados::Slot& slot = link_->slot(number);
    slot.operation = Operation::read;
    slot.object = piece.object;
    slot.extent_count = 1;
    slot.extents[0] = {piece.offset, piece.size};
    if (auto asked = link_->request(number); !asked) {
        reads.give_back(number);
        return asked;
    }
    reads.reads[reads.count++] = {number, destination, piece.size};
    return {};
}

Result<void> RadosMedium::read(std::uint64_t offset, std::span<std::byte> destination) const
{
    if (offset > size_bytes_ || destination.size() > size_bytes_ - offset) {
        return fail(SP_E_POOL_TRUNCATED, 0, "{} ends before offset {}: it was copied incompletely; restore it from a copy", path_,
                    offset + destination.size());
    }
    Result<void> outcome;
    {
        ReadsInFlight reads(*this);
        for (std::size_t done = 0; done < destination.size() && outcome;) {
            const Piece piece = piece_at(offset + done, destination.size() - done);
            const Fault fault = faults_.next(FaultPoint::read);
            outcome = fault.error != 0 ? Result<void>{fail(SP_E_IO, fault.error, "{}", describe_errno(fault.error))}
                                       : begin_read(reads, piece, destination.data() + done);
            done += piece.size;
        }
        while (outcome && reads.count > 0) {
            outcome = reads.finish_first();
        }
    }
    if (!outcome) {
        return fail(outcome.error().code, outcome.error().os_error, "reading {} bytes at offset {} of {} failed: {}", destination.size(),
                    offset, path_, outcome.error().text());
    }
    return {};
}

void RadosMedium::detach_after_fork() noexcept
{
    is_detached_ = true;
    link_->detach_after_fork();
}

}  // namespace stillpoint
