#include "versions/loader.hpp"

#include <algorithm>
#include <cstring>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/canary.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"

namespace stillpoint::versions {

namespace {
alignas(page_bytes) constexpr std::byte zero_page[page_bytes] = {};
}

Result<void> Loader::prepare(const Source& source)
{
    source_ = source;
    if (auto done = loaded_.reserve(source.pages_end / 64 + 1, "the map of loaded pages"); !done) {
        return done;
    }
    if (auto done = order_.reserve(source.pages_end, "the order of loading"); !done) {
        return done;
    }
    if (auto done = slots_.reserve(source.pages_end, "the copies to load"); !done) {
        return done;
    }
    for (std::uint64_t page = 0; page < source.pages_end; ++page) {
        slots_[page] = source.table->consistent(page);
    }
    if (auto done = fault_buffer_.reserve(cluster_pages * page_bytes, "loading"); !done) {
        return done;
    }
    return batch_buffer_.reserve(batch_pages * page_bytes, "loading");
}

std::uint64_t Loader::sort_by_location()
{
    std::uint64_t count = 0;
    for (std::uint64_t page = 0; page < source_.pages_end; ++page) {
        const VersionSlot copy = slots_[page];
        if (copy.epoch != 0) {
            order_[count++] = {copy.location, static_cast<std::uint32_t>(page)};
        }
    }
    std::sort(order_.data(), order_.data() + count,
              [](const Located& a, const Located& b) { return a.location < b.location; });
    return count;
}

std::uint64_t Loader::run_from(std::uint64_t next, std::uint64_t total) const noexcept
{
    std::uint64_t count = 1;
    while (count < batch_pages && next + count < total &&
           order_[next + count].location == order_[next].location + count) {
        ++count;
    }
    return count;
}

Result<void> Loader::verify(std::uint64_t image_page, const std::byte* bytes) const
{
    const VersionSlot& copy = slots_[image_page];
    const std::uint64_t content = content_hash(bytes, source_.table->hash_seed());
    const std::uint32_t found = page_checksum(content, image_page, copy.epoch);
    if (found != copy.checksum && !is_removed(Canary::page_checksum)) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}: the copy of image page {} at file offset {} does not match its checksum "
                    "(written in epoch {}); run `stillpoint check` and restore the pool from a copy",
                    source_.medium->path(), image_page, byte_offset(FilePage{copy.location}),
                    copy.epoch);
    }
    if (source_.content_hashes != nullptr) {
        // Before the page is placed, and only the first: later ones are of copies that the page has outlived.
        std::uint64_t none = 0;
        std::atomic_ref<std::uint64_t>(source_.content_hashes[image_page])
            .compare_exchange_strong(none, content, std::memory_order_relaxed);
    }
    return {};
}

Result<void> Loader::read_run(const Located* run, std::uint64_t count, std::byte* buffer) const
{
    return source_.medium->read(byte_offset(FilePage{run->location}), {buffer, count * page_bytes});
}

Result<void> Loader::load_all(std::byte* destination,
                              void (*progress)(std::uint64_t done, std::uint64_t total), Findings* findings)
{
    const std::uint64_t total = sort_by_location();
    std::byte* const buffer = batch_buffer_.data();
    for (std::uint64_t next = 0; next < total;) {
        const std::uint64_t count = run_from(next, total);
        if (auto read = read_run(&order_[next], count, buffer); !read) {
            return read;
        }
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t page = order_[next + i].image_page;
            if (auto verified = verify(page, buffer + i * page_bytes); !verified) {
                if (auto told = found(findings, pass_on(verified.error())); !told) {
                    return told;
                }
            }
            std::memcpy(destination + page * page_bytes, buffer + i * page_bytes, page_bytes);
        }
        next += count;
        if (progress != nullptr) {
            progress(next, total);
        }
    }
    loaded_count_.store(total, std::memory_order_relaxed);
    complete_.store(1, std::memory_order_release);
    return {};
}

Result<void> Loader::start_lazy(std::byte* destination, os::Userfaultfd& uffd)
{
    destination_ = destination;
    uffd_ = &uffd;
    if (auto done = fault_thread_.start("sp-load", &serve_faults, this); !done) {
        return done;
    }
    return read_ahead_thread_.start("sp-readahead", &read_ahead, this);
}

bool Loader::is_loaded(std::uint64_t image_page) const noexcept
{
    return ((std::atomic_ref<std::uint64_t>(loaded_[image_page / 64]).load(std::memory_order_acquire) >>
             (image_page % 64)) &
            1u) != 0;
}

void Loader::place(std::uint64_t image_page, const std::byte* bytes) noexcept
{
    uffd_->place_page(destination_ + image_page * page_bytes, bytes, page_bytes);
    const std::uint64_t bit = std::uint64_t{1} << (image_page % 64);
    const auto before = std::atomic_ref<std::uint64_t>(loaded_[image_page / 64])
                            .fetch_or(bit, std::memory_order_acq_rel);
    if ((before & bit) == 0) {
        loaded_count_.fetch_add(1, std::memory_order_relaxed);
    }
}

/// A page that another thread loaded meanwhile may have been written and its old location used
/// again since: what was read here is then simply stale.
void Loader::end_process_unless_loaded(const Failure& failure, std::uint64_t image_page) const noexcept
{
    if (is_loaded(image_page)) {
        return;
    }
    os::write_line(os::Severity::error, failure.text());
    syscall(SYS_exit_group, failure.code == SP_E_POOL_CORRUPT ? EX_DATAERR : EX_IOERR);
}

/// Loads up to `count` pages from `first` on that lie next to each other in the file too, and are not
/// loaded; returns how many it dealt with, at least one.
std::uint64_t Loader::load_neighbours(std::uint64_t first, std::uint64_t count, std::byte* buffer)
{
    const VersionSlot slot = slots_[first];
    if (is_loaded(first)) {
        return 1;
    }
    if (slot.epoch == 0) {
        place(first, zero_page);
        return 1;
    }
    std::uint64_t run = 1;
    while (run < count && slots_[first + run].epoch != 0 && !is_loaded(first + run) &&
           slots_[first + run].location == slot.location + run) {
        ++run;
    }
    const Located located{slot.location, static_cast<std::uint32_t>(first)};
    const auto read = read_run(&located, run, buffer);
    for (std::uint64_t i = 0; i < run; ++i) {
        const auto outcome = read ? verify(first + i, buffer + i * page_bytes) : read;
        if (!outcome) {
            end_process_unless_loaded(outcome.error(), first + i);
            continue;
        }
        place(first + i, buffer + i * page_bytes);
    }
    return run;
}

void Loader::load_cluster(std::uint64_t image_page, std::byte* buffer)
{
    if (is_loaded(image_page)) {
        place(image_page, zero_page);  // Present: this only wakes the waiting thread.
        return;
    }
    load_neighbours(image_page, 1, buffer);  // Somebody waits for this one.
    const std::uint64_t first = image_page / cluster_pages * cluster_pages;
    const std::uint64_t end = std::min(first + cluster_pages, source_.pages_end);
    for (std::uint64_t page = first; page < end;) {
        page += load_neighbours(page, end - page, buffer);
    }
}

void Loader::serve_faults(void* self)
{
    auto& loader = *static_cast<Loader*>(self);
    while (!loader.stopping_.load(std::memory_order_acquire)) {
        const std::uintptr_t address = loader.uffd_->wait_for_fault();
        if (address == 0) {
            continue;
        }
        if (address == os::Userfaultfd::lost) {
            if (loader.complete_.load(std::memory_order_acquire) == 0) {
                os::write_line(os::Severity::error, "the program has closed Stillpoint's userfaultfd while pages of the pool "
                                                    "were still to be loaded: it must not close descriptors by system calls");
                syscall(SYS_exit_group, EX_SOFTWARE);
            }
            return;
        }
        const auto offset = address - reinterpret_cast<std::uintptr_t>(loader.destination_);
        loader.load_cluster(offset / page_bytes, loader.fault_buffer_.data());
    }
}

void Loader::read_ahead(void* self)
{
    auto& loader = *static_cast<Loader*>(self);
    // Behind the program: it is only an advance on faults that may never come.
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
    const std::uint64_t total = loader.sort_by_location();
    std::byte* const buffer = loader.batch_buffer_.data();
    for (std::uint64_t next = 0; next < total && !loader.stopping_.load(std::memory_order_acquire);) {
        const std::uint64_t count = loader.run_from(next, total);
        auto read = loader.read_run(&loader.order_[next], count, buffer);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t page = loader.order_[next + i].image_page;
            if (loader.is_loaded(page)) {
                continue;
            }
            auto outcome = read ? loader.verify(page, buffer + i * page_bytes) : read;
            if (!outcome) {
                loader.end_process_unless_loaded(outcome.error(), page);
                continue;
            }
            loader.place(page, buffer + i * page_bytes);
        }
        next += count;
    }
    for (std::uint64_t page = 0;
         page < loader.source_.pages_end && !loader.stopping_.load(std::memory_order_acquire); ++page) {
        if (!loader.is_loaded(page)) {
            loader.place(page, zero_page);
        }
    }
    loader.order_.discard_from(0);
    loader.batch_buffer_.discard_from(0);
    loader.complete_.store(1, std::memory_order_release);
    os::futex_wake(loader.complete_);
}

void Loader::finish_loading() noexcept
{
    if (!read_ahead_thread_.running()) {
        return;
    }
    while (complete_.load(std::memory_order_acquire) == 0) {
        os::futex_wait(complete_, 0);
    }
}

void Loader::stop() noexcept
{
    stopping_.store(true, std::memory_order_release);
    read_ahead_thread_.join();
    if (fault_thread_.running()) {
        uffd_->wake_waiter();
        fault_thread_.join();
    }
}

void Loader::detach_after_fork() noexcept
{
    read_ahead_thread_.forget();
    fault_thread_.forget();
}

}  // namespace stillpoint::versions
