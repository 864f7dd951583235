#include "versions/loader.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <thread>
#include <unistd.h>

#include "core/canary.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "os/probes.hpp"

namespace stillpoint::versions {

Result<void> Loader::prepare(const Source& source)
{
    source_ = source;
    if (auto done = loaded_.reserve(source.pages_end / 64 + 1, "the map of loaded pages"); !done) {
        return done;
    }
    if (auto done = claimed_.reserve(source.pages_end / 64 + 1, "the map of claimed pages"); !done) {
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
    if (auto done = fault_buffer_.reserve(window_pages_max * page_bytes, "loading"); !done) {
        return done;
    }
    if (auto done = zeroes_.reserve(window_pages_max * page_bytes, "loading"); !done) {
        return done;
    }
    const std::size_t cpus = std::max(1U, std::thread::hardware_concurrency());
    reader_count_ = std::min({cpus, threads_max, static_cast<std::size_t>(1 + source.pages_end / pages_of_a_thread)});
    for (Reader& reader : std::span(readers_.data(), reader_count_)) {
        reader.loader = this;
        if (auto done = reader.buffer.reserve(batch_pages * page_bytes, "loading"); !done) {
            return done;
        }
    }
    return {};
}

/// Block media want to be read in the order of the file; where reading is copying, the order of the image serves placing.
void Loader::sort_copies()
{
    std::uint64_t count = 0;
    for (std::uint64_t page = 0; page < source_.pages_end; ++page) {
        const VersionSlot copy = slots_[page];
        if (copy.epoch != 0) {
            order_[count++] = {copy.location, static_cast<std::uint32_t>(page)};
        }
    }
    if (!source_.medium->byte_addressable()) {
        std::sort(order_.data(), order_.data() + count, [](const LocatedPage& a, const LocatedPage& b) { return a.location < b.location; });
    }
    order_count_ = count;
}

bool Loader::is_read_with(const LocatedPage& copy, const LocatedPage& next) const noexcept
{
    return source_.medium->byte_addressable() || next.location == copy.location + 1;
}

std::span<const Loader::LocatedPage> Loader::take_run() noexcept
{
    const std::lock_guard guard(order_lock_);
    const std::uint64_t first = order_next_;
    if (first == order_count_ || !outcome_) {
        return {};
    }
    const std::uint64_t most = std::min(order_count_ - first, source_.medium->byte_addressable() ? batch_pages_mapped : batch_pages);
    std::uint64_t count = 1;
    while (count < most && is_read_with(order_[first + count - 1], order_[first + count])) {
        ++count;
    }
    order_next_ = first + count;
    return {&order_[first], count};
}

/// One read for those that lie next to each other in the file.
Result<void> Loader::read_run(std::span<const LocatedPage> run, std::byte* buffer) const
{
    for (std::size_t begin = 0; begin < run.size();) {
        std::size_t end = begin + 1;
        while (end < run.size() && run[end].location == run[end - 1].location + 1) {
            ++end;
        }
        if (auto read = source_.medium->read(byte_offset(FilePage{run[begin].location}),
                                             {buffer + begin * page_bytes, (end - begin) * page_bytes});
            !read) {
            return read;
        }
        begin = end;
    }
    return {};
}

Result<void> Loader::verify(std::uint64_t image_page, std::byte* bytes) const
{
    const VersionSlot& copy = slots_[image_page];
    const std::uint64_t content = content_hash(bytes, source_.table->hash_seed());
    const std::uint32_t found = page_checksum(content, image_page, copy.epoch);
    if (found != copy.checksum && !is_removed(Canary::page_checksum)) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}: the copy of image page {} at file offset {} does not match its checksum "
                    "(written in epoch {}); run `stillpoint check` and restore the pool from a copy",
                    source_.medium->path(), image_page, byte_offset(FilePage{copy.location}), copy.epoch);
    }
    if (source_.replay != nullptr && source_.replay->has(image_page)) {
        return source_.replay->apply(image_page, bytes);  // The page is not as it was written last: it has no hash.
    }
    if (source_.content_hashes != nullptr) {
        // Before the page is placed, and only the first: later ones are of copies that the page has outlived.
        std::uint64_t none = 0;
        std::atomic_ref<std::uint64_t>(source_.content_hashes[image_page])
            .compare_exchange_strong(none, content, std::memory_order_relaxed);
    }
    return {};
}

Result<void> Loader::copy_runs(Reader& reader, void (*progress)(std::uint64_t done, std::uint64_t total), Findings* findings)
{
    std::byte* const buffer = reader.buffer.data();
    for (auto run = take_run(); !run.empty(); run = take_run()) {
        if (auto read = read_run(run, buffer); !read) {
            return read;
        }
        for (std::size_t i = 0; i < run.size(); ++i) {
            const std::uint64_t page = run[i].image_page;
            if (auto verified = verify(page, buffer + i * page_bytes); !verified) {
                if (auto told = found(findings, pass_on(verified.error())); !told) {
                    return told;
                }
            }
            std::memcpy(destination_ + page * page_bytes, buffer + i * page_bytes, page_bytes);
        }
        const std::uint64_t done = loaded_count_.fetch_add(run.size(), std::memory_order_relaxed) + run.size();
        if (progress != nullptr) {
            progress(done, order_count_);
        }
    }
    return {};
}

/// A failure ends the other readers' shares too.
void Loader::copy_share(Reader& reader, void (*progress)(std::uint64_t done, std::uint64_t total), Findings* findings)
{
    if (auto done = copy_runs(reader, progress, findings); !done) {
        const std::lock_guard guard(order_lock_);
        outcome_ = done;
    }
}

void Loader::copy_share_beside(void* reader)
{
    auto& self = *static_cast<Reader*>(reader);
    self.loader->copy_share(self, nullptr, nullptr);
}

Result<void> Loader::load_all(std::byte* destination, void (*progress)(std::uint64_t done, std::uint64_t total), Findings* findings)
{
    destination_ = destination;
    sort_copies();
    // Findings are told in the order of the file.
    const std::size_t readers = findings == nullptr ? reader_count_ : 1;
    for (std::size_t i = 1; i < readers; ++i) {
        if (!readers_[i].thread.start("sp-load", &copy_share_beside, &readers_[i])) {
            break;  // Fewer threads do it too.
        }
    }
    copy_share(readers_[0], progress, findings);
    for (std::size_t i = 1; i < readers; ++i) {
        readers_[i].thread.join();
    }
    if (!outcome_) {
        return outcome_;
    }
    if (progress != nullptr && readers > 1) {
        progress(order_count_, order_count_);  // Others may have come to the end last.
    }
    for (Reader& reader : readers_) {
        reader.buffer.discard_from(0);
    }
    release_tables();
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
    readers_at_work_.store(1, std::memory_order_relaxed);
    return readers_[0].thread.start("sp-readahead", &begin_read_ahead, &readers_[0]);
}

bool Loader::is_loaded(std::uint64_t image_page) const noexcept
{
    return ((std::atomic_ref<std::uint64_t>(loaded_[image_page / 64]).load(std::memory_order_acquire) >> (image_page % 64)) & 1u) != 0;
}

bool Loader::claim(std::uint64_t image_page) noexcept
{
    const std::uint64_t bit = std::uint64_t{1} << (image_page % 64);
    return (std::atomic_ref<std::uint64_t>(claimed_[image_page / 64]).fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

void Loader::place(std::uint64_t first, std::uint64_t count, const std::byte* bytes) noexcept
{
    uffd_->place_pages(destination_ + first * page_bytes, bytes, count * page_bytes);
    for (std::uint64_t page = first; page < first + count;) {
        const std::uint64_t in_word = std::min(64 - page % 64, first + count - page);
        const std::uint64_t bits = (in_word == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << in_word) - 1) << (page % 64);
        const auto before = std::atomic_ref<std::uint64_t>(loaded_[page / 64]).fetch_or(bits, std::memory_order_acq_rel);
        loaded_count_.fetch_add(static_cast<std::uint64_t>(std::popcount(bits & ~before)), std::memory_order_relaxed);
        page += in_word;
    }
}

/// A page that another thread loaded meanwhile may have been written and its old location used
/// again since: what was read here is then simply stale. That thread may not have come to say so: the kernel knows.
void Loader::end_process_unless_loaded(const Failure& failure, std::uint64_t image_page) const noexcept
{
    unsigned char is_resident = 0;
    if (is_loaded(image_page) ||
        (mincore(destination_ + image_page * page_bytes, page_bytes, &is_resident) == 0 && (is_resident & 1U) != 0)) {
        return;
    }
    os::write_line(os::Severity::error, failure.text());
    syscall(SYS_exit_group, failure.code == SP_E_POOL_CORRUPT ? EX_DATAERR : EX_IOERR);
}

/// Copies that are neighbours in the image too are placed by one system call.
void Loader::load_run(std::span<const LocatedPage> run, std::byte* buffer) noexcept
{
    const auto read = read_run(run, buffer);
    for (std::size_t begin = 0; begin < run.size();) {
        const std::uint64_t first = run[begin].image_page;
        std::size_t end = begin;
        while (end < run.size() && run[end].image_page == first + (end - begin)) {
            if (const auto outcome = read ? verify(run[end].image_page, buffer + end * page_bytes) : read; !outcome) {
                end_process_unless_loaded(outcome.error(), run[end].image_page);
                break;
            }
            ++end;
        }
        if (end != begin) {
            place(first, end - begin, buffer + begin * page_bytes);
            begin = end;
        } else {
            ++begin;
        }
    }
}

void Loader::load_unclaimed(std::span<const LocatedPage> run, std::byte* buffer) noexcept
{
    for (std::size_t begin = 0; begin < run.size();) {
        std::size_t end = begin;
        while (end < run.size() && claim(run[end].image_page)) {
            ++end;
        }
        if (end != begin) {
            load_run(run.subspan(begin, end - begin), buffer);
        }
        begin = end + 1;
    }
}

/// Other threads may be loading it too.
void Loader::load_page(std::uint64_t image_page, std::byte* buffer) noexcept
{
    if (slots_[image_page].epoch == 0 || is_loaded(image_page)) {
        place(image_page, 1, zeroes_.data());  // Where it is present this only wakes the threads that wait.
        return;
    }
    const LocatedPage copy{slots_[image_page].location, static_cast<std::uint32_t>(image_page)};
    load_run({&copy, 1}, buffer);
}

void Loader::load_neighbours(std::uint64_t first, std::uint64_t end, std::byte* buffer) noexcept
{
    std::array<LocatedPage, window_pages_max> run;
    for (std::uint64_t page = first; page < end;) {
        std::size_t length = 0;
        for (; page < end && slots_[page].epoch != 0; ++page) {
            const LocatedPage copy{slots_[page].location, static_cast<std::uint32_t>(page)};
            if (length != 0 && !is_read_with(run[length - 1], copy)) {
                break;
            }
            run[length++] = copy;
        }
        load_unclaimed({run.data(), length}, buffer);
        if (length == 0) {
            page = place_zeroes(page, end);
        }
    }
}

/// A thread waits for this page, and will want its neighbours. The page is not left to a reader that has claimed it: readers have
/// a low priority. A thread that touches pages in order is woken after more and more of them: a wake costs as much as loading 20.
void Loader::serve_fault(std::uint64_t image_page, std::byte* buffer) noexcept
{
    if (is_loaded(image_page)) {
        load_page(image_page, buffer);
        return;
    }
    const bool in_order = image_page > fault_before_ && image_page < window_end_ + window_pages_max;
    fault_before_ = image_page;
    window_ = in_order ? std::min(2 * window_, window_pages_max) : cluster_pages;
    if (!in_order) {
        static_cast<void>(claim(image_page));
        load_page(image_page, buffer);
    }
    const std::uint64_t first = in_order ? image_page : image_page / cluster_pages * cluster_pages;
    window_end_ = std::min(first + window_, source_.pages_end);
    load_neighbours(first, window_end_, buffer);
    if (in_order) {
        load_page(image_page, buffer);
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
        loader.serve_fault(offset / page_bytes, loader.fault_buffer_.data());
        STILLPOINT_PROBE2(fault_served, address, 1);
    }
}

void Loader::begin_read_ahead(void* reader)
{
    Loader& loader = *static_cast<Reader*>(reader)->loader;
    loader.sort_copies();
    for (std::size_t i = 1; i < loader.reader_count_; ++i) {
        loader.readers_at_work_.fetch_add(1, std::memory_order_relaxed);
        if (!loader.readers_[i].thread.start("sp-readahead", &read_ahead, &loader.readers_[i])) {
            loader.readers_at_work_.fetch_sub(1, std::memory_order_relaxed);
            break;  // Fewer threads do it too.
        }
    }
    read_ahead(reader);
}

void Loader::read_ahead(void* reader)
{
    auto& self = *static_cast<Reader*>(reader);
    Loader& loader = *self.loader;
    // The program comes first: this is only an advance on faults that may never come.
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
    while (!loader.stopping_.load(std::memory_order_acquire)) {
        const auto run = loader.take_run();
        if (run.empty()) {
            break;
        }
        loader.load_unclaimed(run, self.buffer.data());
    }
    if (loader.readers_at_work_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        loader.end_read_ahead(self);
    }
    self.buffer.discard_from(0);
}

/// Every page is loaded.
void Loader::release_tables() noexcept
{
    order_.discard_from(0);
    if (source_.replay != nullptr) {
        source_.replay->release();
    }
}

/// The last reader.
void Loader::end_read_ahead(Reader& reader) noexcept
{
    for (std::uint64_t i = 0; i < order_count_ && !stopping_.load(std::memory_order_acquire); ++i) {
        if (!is_loaded(order_[i].image_page)) {
            load_page(order_[i].image_page, reader.buffer.data());  // The fault thread has claimed it, and is not done.
        }
    }
    for (std::uint64_t page = 0; page < source_.pages_end && !stopping_.load(std::memory_order_acquire);) {
        page = place_zeroes(page, source_.pages_end);
    }
    release_tables();
    complete_.store(1, std::memory_order_release);
    os::futex_wake(complete_);
}

/// Where there is no copy, from `first` on; returns where to go on: after `first` at least.
std::uint64_t Loader::place_zeroes(std::uint64_t first, std::uint64_t end) noexcept
{
    end = std::min(end, first + window_pages_max);
    std::uint64_t page = first;
    while (page < end && slots_[page].epoch == 0 && !is_loaded(page)) {
        ++page;
    }
    if (page != first) {
        place(first, page - first, zeroes_.data());
    }
    return std::max(page, first + 1);
}

void Loader::finish_loading() noexcept
{
    if (!readers_[0].thread.running()) {
        return;
    }
    while (complete_.load(std::memory_order_acquire) == 0) {
        os::futex_wait(complete_, 0);
    }
}

void Loader::stop() noexcept
{
    stopping_.store(true, std::memory_order_release);
    for (Reader& reader : readers_) {
        reader.thread.join();  // The first starts the others: after its end there are no more.
    }
    if (fault_thread_.running()) {
        uffd_->wake_waiter();
        fault_thread_.join();
    }
}

void Loader::detach_after_fork() noexcept
{
    for (Reader& reader : readers_) {
        reader.thread.forget();
    }
    fault_thread_.forget();
}

}  // namespace stillpoint::versions
