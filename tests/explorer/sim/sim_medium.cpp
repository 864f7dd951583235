#include "sim/sim_medium.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "arch/flush.hpp"
#include "sim/store_tracer.hpp"

namespace stillpoint::sim {

namespace {

Stage* the_stage = nullptr;

tl::unexpected<Failure> outside(std::string_view path, std::uint64_t offset, std::uint64_t size)
{
    return fail(SP_E_INVALID_ARGUMENT, 0, "{}: {} bytes at offset {} are not whole pages inside the file", path, size, offset);
}

tl::unexpected<Failure> beyond_the_end(std::string_view path, std::uint64_t offset)
{
    return fail(SP_E_POOL_TRUNCATED, 0, "{}: the file ends before offset {}", path, offset);
}

}  // namespace

void set_stage(Stage* stage) noexcept
{
    the_stage = stage;
    set_medium_opener(stage);
}

Stage* stage() noexcept { return the_stage; }

Stage::Stage(bool byte_addressable, CrashImage file)
    : byte_addressable_(byte_addressable), named_(file.named), size_bytes_(file.content.size_bytes()),
      fd_(memfd_create("simulated file", MFD_CLOEXEC))
{
    const bool sized = fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(reserved_bytes)) == 0;
    void* const writable = sized ? mmap(nullptr, reserved_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0) : MAP_FAILED;
    void* const readable = sized ? mmap(nullptr, reserved_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd_, 0) : MAP_FAILED;
    if (writable == MAP_FAILED || readable == MAP_FAILED) {
        throw std::bad_alloc();
    }
    writable_ = static_cast<std::byte*>(writable);
    readable_ = static_cast<const std::byte*>(readable);
    file.content.for_each_page(
        [this](std::uint64_t page, const std::byte* bytes) { std::memcpy(writable_ + page * page_bytes, bytes, page_bytes); });
}

Result<std::unique_ptr<Medium>> Stage::create(const MediumOptions& options, std::uint64_t size)
{
    return SimMedium::create(*this, options, size);
}

Result<std::unique_ptr<Medium>> Stage::open(const MediumOptions& options) { return SimMedium::open(*this, options); }

Stage::~Stage()
{
    forget_traced(writable_, reserved_bytes);
    munmap(writable_, reserved_bytes);
    munmap(const_cast<std::byte*>(readable_), reserved_bytes);
    close(fd_);
}

void Stage::take_over(const CrashImage& applied)
{
    ++owners_;
    std::memset(writable_, 0, size_bytes_);
    size_bytes_ = applied.content.size_bytes();
    named_ = applied.named;
    applied.content.for_each_page(
        [this](std::uint64_t page, const std::byte* bytes) { std::memcpy(writable_ + page * page_bytes, bytes, page_bytes); });
}

SimMedium::SimMedium(Stage& stage, const MediumOptions& options)
    : stage_(stage), path_(options.path), durability_(options.durability), owner_(stage.owners_)
{
}

Result<std::unique_ptr<Medium>> SimMedium::create(Stage& stage, const MediumOptions& options, std::uint64_t size)
{
    if (stage.named_) {
        return fail(SP_E_POOL_EXISTS, EEXIST, "cannot create {}: the file exists already", options.path);
    }
    if (size > Stage::reserved_bytes) {
        return fail(SP_E_NO_SPACE, ENOSPC, "no space for {} bytes of {}", size, options.path);
    }
    auto medium = std::unique_ptr<SimMedium>(new SimMedium(stage, options));
    stage.size_bytes_ = size;
    if (!stage.in_objects) {  // An object takes room as it is written.
        stage.room_.leave_without(stage.room() == Room::in_memory ? options.without_room_in_memory : options.without_room);
    }
    medium->record(EventKind::resize, 0, nullptr, 0, size);
    if (!options.publish_later || stage.primitive) {
        stage.named_ = true;
        medium->record(EventKind::name);
    }
    if (stage.in_objects) {
        medium->record(EventKind::head_changed);
    }
    if (stage.primitive) {
        medium->leave_noise(2 * page_bytes, 4 * page_bytes);
    }
    return medium;
}

Result<std::unique_ptr<Medium>> SimMedium::open(Stage& stage, const MediumOptions& options)
{
    if (!stage.named_) {
        return fail(SP_E_POOL_MISSING, ENOENT, "cannot open {}: there is no such file", options.path);
    }
    auto medium = std::unique_ptr<SimMedium>(new SimMedium(stage, options));
    medium->last_writer_ = stage.writer;
    if (stage.in_objects && stage.writer != 0 && options.writer == 0) {  // In the operation that takes the lock.
        if (auto cleared = medium->claim(0); !cleared) {
            return pass_on(cleared.error());
        }
    }
    if (stage.primitive) {
        constexpr std::uint64_t noise_bytes = 96 * kib;
        constexpr std::uint64_t appended_bytes = 40 * mib;
        const std::uint64_t end = stage.size_bytes_;
        if (end < appended_bytes) {
            stage.size_bytes_ = end + appended_bytes;
            medium->record(EventKind::resize, 0, nullptr, 0, stage.size_bytes_);
            medium->record(EventKind::sync);
            if (stage.stranger) {
                medium->leave_noise(end, noise_bytes);
            }
        }
    }
    return medium;
}

/// Bytes that are there permanently.
void SimMedium::leave_noise(std::uint64_t offset, std::size_t size)
{
    // Small numbers: an engine could take them for its own.
    const std::vector<std::uint64_t> noise(size / sizeof(std::uint64_t), 1);
    put(byte_addressable() ? EventKind::nontemporal_store : EventKind::block_write, offset, noise.data(), size);
    if (byte_addressable()) {
        record(EventKind::fence);
    }
    record(EventKind::sync);
}

MediumCounters SimMedium::counters() const noexcept
{
    return {.bytes_written = bytes_written_.get(),
            .write_calls = write_calls_.get(),
            .syncs = syncs_.get(),
            .lines_written_back = lines_written_back_.get(),
            .fences = fences_.get()};
}

Result<void> SimMedium::publish()
{
    if (stage_.named_) {
        return {};
    }
    if (auto owned = check_owner(); !owned) {
        return owned;
    }
    stage_.named_ = true;
    record(EventKind::name);
    return stage_.in_objects ? change_head() : sync_file();
}

Result<void> SimMedium::resize(std::uint64_t size)
{
    if (size > Stage::reserved_bytes) {
        return fail(SP_E_NO_SPACE, ENOSPC, "no space for {} bytes of {}", size, path_);
    }
    if (auto owned = check_owner(); !owned) {
        return owned;
    }
    stage_.size_bytes_ = size;
    record(EventKind::resize, 0, nullptr, 0, size);
    return stage_.in_objects ? change_head() : sync_file();
}

Result<void> SimMedium::resize_with_room(std::uint64_t size, std::uint64_t room_end)
{
    const std::uint64_t begin = std::max(stage_.size_bytes_, room_end);
    auto resized = resize(size);
    if (resized && stage_.room() == Room::in_memory && begin < size) {
        stage_.room_.leave_without(FileRange{begin, size});
    }
    return resized;
}

Result<void> SimMedium::allocate(FileRange range)
{
    stage_.room_.take(range);
    return {};
}

/// The zeroes are as durable as anything that no sync and no fence follows.
void SimMedium::release(FileRange range) noexcept
{
    if (stage_.in_objects) {
        return;
    }
    static constexpr std::array<std::byte, 64 * kib> zeroes{};
    for (std::uint64_t at = range.begin; at < range.end; at += zeroes.size()) {
        put(byte_addressable() ? EventKind::nontemporal_store : EventKind::block_write, at, zeroes.data(),
            std::min<std::uint64_t>(zeroes.size(), range.end - at));
    }
    stage_.room_.leave_without(range);
}

Result<void> SimMedium::read(std::uint64_t offset, std::span<std::byte> destination) const
{
    if (offset > stage_.size_bytes_ || destination.size() > stage_.size_bytes_ - offset) {
        return beyond_the_end(path_, offset + destination.size());
    }
    std::memcpy(destination.data(), stage_.readable_ + offset, destination.size());
    return {};
}

void SimMedium::put(EventKind kind, std::uint64_t offset, const void* data, std::size_t size, std::uint64_t value) noexcept
{
    if (!stage_.room_.is_there_for(offset, size)) {
        std::fprintf(stderr, "%s: bytes are stored at %llu, where no room was taken on the disk\n", path_.c_str(),
                     static_cast<unsigned long long>(offset));
        std::abort();
    }
    const BetweenTracedStores alone;
    record(kind, offset, data, size, value);
    std::memcpy(stage_.writable_ + offset, data, size);
    bytes_written_.add(size);
}

Result<void> SimMedium::write(std::span<const BlockWrite> batch)
{
    if (frozen_) {
        return fail(SP_E_POOL_READ_ONLY, 0, "{} is read-only since an earlier sync failed", path_);
    }
    for (const BlockWrite& write : batch) {
        if (write.offset % page_bytes != 0 || write.size % page_bytes != 0 || write.offset > stage_.size_bytes_ ||
            write.size > stage_.size_bytes_ - write.offset) {
            return outside(path_, write.offset, write.size);
        }
    }
    if (stage_.in_objects) {
        auto owned = check_owner();
        if (owned) {
            write_operations(batch);
        }
        return owned;
    }
    for (const BlockWrite& write : batch) {
        put(byte_addressable() ? EventKind::nontemporal_store : EventKind::block_write, write.offset, write.data, write.size);
        write_calls_.add(1);
    }
    if (byte_addressable()) {
        fence();
    }
    return {};
}

/// As RadosMedium::write(): an operation has all pieces of its object until it is full.
void SimMedium::write_operations(std::span<const BlockWrite> batch)
{
    std::map<std::uint64_t, std::uint64_t> filled;
    for (const BlockWrite& write : batch) {
        for (std::size_t done = 0; done < write.size;) {
            const std::uint64_t offset = write.offset + done;
            const std::uint64_t object = offset / object_bytes;
            const std::uint64_t piece = std::min({write.size - done, object_bytes - offset % object_bytes, operation_bytes});
            if (filled[object] + piece > operation_bytes) {
                record(EventKind::hand_over, 0, nullptr, 0, object);
                filled[object] = 0;
            }
            put(EventKind::block_write, offset, write.data + done, piece, 1);
            filled[object] += piece;
            done += piece;
        }
    }
    for (const auto& [object, bytes] : filled) {
        record(EventKind::hand_over, 0, nullptr, 0, object);
        write_calls_.add(1);
    }
}

/// The first object compares the head in each operation; for the others the former owner is on the block list.
Result<void> SimMedium::check_owner()
{
    if (stage_.fences_owners && owner_ != stage_.owners_) {
        frozen_ = true;
        return fail(SP_E_POOL_LOCKED, 0, "{} has another owner", path_);
    }
    return {};
}

Result<void> SimMedium::claim(std::uint64_t writer)
{
    if (auto owned = check_owner(); !owned) {
        return owned;
    }
    stage_.writer = writer;
    record(EventKind::claim, 0, nullptr, 0, writer);
    return change_head();
}

Result<void> SimMedium::change_head()
{
    record(EventKind::head_changed);
    return {};
}

Result<void> SimMedium::sync()
{
    if (byte_addressable()) {
        fence();
        syncs_.add(1);
        return metadata_is_durable_ ? Result<void>{} : sync_file();
    }
    return sync_file();
}

/// A run's first sync takes along what an earlier run may have left undone: size and name.
Result<void> SimMedium::sync_file()
{
    if (frozen_) {
        return fail(SP_E_POOL_READ_ONLY, 0, "{} is read-only since an earlier sync failed", path_);
    }
    if (durability_ == Durability::process) {
        return {};
    }
    if (syncs_begun_++ == stage_.failing_sync) {
        frozen_ = true;
        record(EventKind::sync_failed);
        return fail(SP_E_IO, EIO, "syncing {} failed: simulated", path_);
    }
    if (stage_.sync_us != 0) {
        usleep(stage_.sync_us);
    }
    if (stage_.in_objects) {
        if (auto owned = check_owner(); !owned) {
            return owned;
        }
        if (stage_.sync_waits_for != Stage::SyncWaitsFor::nothing) {
            record(stage_.sync_waits_for == Stage::SyncWaitsFor::everything ? EventKind::sync : EventKind::head_changed);
        }
        syncs_.add(1);
        return {};
    }
    record(EventKind::sync);
    if (!metadata_is_durable_ && stage_.named_) {
        record(EventKind::name_sync);
        metadata_is_durable_ = true;
    }
    syncs_.add(1);
    return {};
}

const std::byte* SimMedium::mapping() const noexcept { return byte_addressable() ? stage_.readable_ : nullptr; }

void SimMedium::store(std::uint64_t offset, const void* data, std::size_t size) noexcept { put(EventKind::store, offset, data, size); }

void SimMedium::store_nontemporal(std::uint64_t offset, const void* data, std::size_t size) noexcept
{
    put(EventKind::nontemporal_store, offset, data, size);
}

void SimMedium::write_back(std::uint64_t offset, std::size_t size) noexcept
{
    const BetweenTracedStores alone;  // A store whose bytes can be read is recorded.
    record(EventKind::write_back, offset, nullptr, size);
    lines_written_back_.add(arch::lines_in(offset, size, cache_line_bytes));
}

bool SimMedium::compare_exchange_word(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired) noexcept
{
    const std::lock_guard hold(exchange_lock_);
    std::uint64_t found = 0;
    std::memcpy(&found, stage_.readable_ + offset, sizeof found);
    if (found != expected) {
        expected = found;
        return false;
    }
    put(EventKind::store, offset, &desired, sizeof desired);
    return true;
}

void SimMedium::store_word(std::uint64_t offset, std::uint64_t value) noexcept
{
    const std::lock_guard hold(exchange_lock_);
    put(EventKind::store, offset, &value, sizeof value);
}

void SimMedium::write_back_line(std::uint64_t offset) noexcept
{
    const BetweenTracedStores alone;
    record(EventKind::write_back, offset / cache_line_bytes * cache_line_bytes, nullptr, cache_line_bytes);
    lines_written_back_.add_shared(1);
}

void SimMedium::fence() noexcept
{
    if (stage_.fence_us_max != 0) {
        static std::atomic<unsigned> threads{0};
        static thread_local std::minstd_rand random(++threads);
        usleep(static_cast<useconds_t>(random() % stage_.fence_us_max));
    }
    const BetweenTracedStores alone;
    record(EventKind::fence);
    fences_.add(1);
}

Result<void> SimMedium::map_at(std::byte* address, std::uint64_t offset, std::uint64_t size)
{
    if (!byte_addressable()) {
        return Medium::map_at(address, offset, size);
    }
    if (offset % page_bytes != 0 || size % page_bytes != 0 || offset > stage_.size_bytes_ || size > stage_.size_bytes_ - offset) {
        return outside(path_, offset, size);
    }
    return trace_stores({address, size, offset, stage_.writable_ + offset}, stage_.fd_);
}

Result<void> SimMedium::map_copy_at(std::byte* address, std::uint64_t offset, std::uint64_t size) noexcept
{
    if (!byte_addressable()) {
        return Medium::map_copy_at(address, offset, size);
    }
    if (offset % page_bytes != 0 || size % page_bytes != 0 || offset > stage_.size_bytes_ || size > stage_.size_bytes_ - offset) {
        return outside(path_, offset, size);
    }
    if (mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, stage_.fd_, static_cast<off_t>(offset)) ==
        MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "cannot map a copy of {} bytes of {}", size, path_);
    }
    return {};
}

void SimMedium::write_back_lines(std::span<const std::uintptr_t> line_addresses) noexcept
{
    const BetweenTracedStores alone;
    for (const std::uintptr_t address : line_addresses) {
        record(EventKind::write_back, traced_offset(address) / cache_line_bytes * cache_line_bytes, nullptr, cache_line_bytes);
    }
    lines_written_back_.add(line_addresses.size());
}

Result<void> ImageMedium::read(std::uint64_t offset, std::span<std::byte> destination) const
{
    if (offset > content_.size_bytes() || destination.size() > content_.size_bytes() - offset) {
        return beyond_the_end(path(), offset + destination.size());
    }
    if (unreadable_sector_ != CrashImage::none && offset < unreadable_sector_ + sector_bytes &&
        offset + destination.size() > unreadable_sector_) {
        return fail(SP_E_IO, EIO, "{}: the sector at {} cannot be read", path(), unreadable_sector_);
    }
    content_.read(offset, destination.data(), destination.size());
    return {};
}

tl::unexpected<Failure> ImageMedium::refuse() { return fail(SP_E_POOL_READ_ONLY, 0, "a crash image is read-only"); }

}  // namespace stillpoint::sim
