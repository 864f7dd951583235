#include "media/mapped_medium.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>

#include "arch/flush.hpp"
#include "core/canary.hpp"
#include "media/errno_text.hpp"
#include "media/observer.hpp"
#include "os/persistent_caches.hpp"

namespace stillpoint {

namespace {

/// Address space to grow into: two copies of the largest image, its tables, and as much again.
constexpr std::uint64_t reserve_bytes = 4 * window_bytes;

template <class Word>
bool store_at_once(std::byte* target, const void* data, std::size_t size) noexcept
{
    if (size != sizeof(Word) || reinterpret_cast<std::uintptr_t>(target) % sizeof(Word) != 0) {
        return false;
    }
    Word word;
    std::memcpy(&word, data, sizeof word);
    __atomic_store_n(reinterpret_cast<Word*>(target), word, __ATOMIC_RELAXED);
    return true;
}

}  // namespace

MappedMedium::MappedMedium(PoolFile file, const MediumOptions& options, os::FileMapping::Mode mode)
    : file_(std::move(file)), mode_(file_.writable() ? mode : os::FileMapping::Mode::read_only), arch_(arch::Native::detect()),
      caches_are_persistent_(options.caches_are_persistent.has_value() ? *options.caches_are_persistent : os::caches_are_persistent())
{
}

Result<void> MappedMedium::map()
{
    const std::uint64_t size = file_.size_bytes();
    if (const int error = mapping_.reserve(reserve_bytes, size); error != 0) {
        return fail(SP_E_NO_MEMORY, error, "cannot reserve {} bytes of address space for {}: {}; raise the limit (ulimit -v)", size,
                    file_.path(), describe_errno(error));
    }
    if (const int error = mapping_.extend(file_.fd(), size, mode_); error != 0) {
        if (error == EOPNOTSUPP || error == EINVAL) {
            return fail(SP_E_UNSUPPORTED, error,
                        "{} is not on persistent memory that can be mapped directly: its file system "
                        "refuses MAP_SYNC; mount it with -o dax, or use the file medium",
                        file_.path());
        }
        return fail(SP_E_IO, error, "cannot map {} bytes of {}: {}", size, file_.path(), describe_errno(error));
    }
    describe_mechanism();
    return {};
}

void MappedMedium::describe_mechanism() noexcept
{
    needs_write_back_ = !caches_are_persistent_ && file_.durability() == Durability::power;
    const std::string_view write_back = needs_write_back_        ? arch_.write_back_name()
                                        : caches_are_persistent_ ? "no write back (persistent caches)"
                                                                 : "no write back (durability process)";
    const auto end = fmt::format_to_n(mechanism_, sizeof mechanism_ - 1, "{}, {}", mechanism_prefix(), write_back);
    *end.out = '\0';
}

void MappedMedium::set_durability(Durability durability) noexcept
{
    file_.set_durability(durability);
    describe_mechanism();
}

MediumCounters MappedMedium::counters() const noexcept
{
    return {.bytes_written = bytes_written_.get() + shared_.get(bytes_appended) + shared_.get(lines_of_any_thread) * cache_line_bytes,
            .write_calls = write_calls_.get(),
            .syncs = syncs_.get(),
            .lines_written_back = lines_written_back_.get() + shared_.get(lines_of_any_thread),
            .fences = shared_.get(fences),
            .persist_points = file_.faults().persist_points() + shared_.get(persist_points)};
}

Result<void> MappedMedium::resize_with_room(std::uint64_t size, std::uint64_t room_end)
{
    if (round_up(size, page_bytes) > mapping_.reserved()) {
        return fail(SP_E_NO_MEMORY, ENOMEM,
                    "{} cannot grow to {} bytes: this process has address space for {}; raise the "
                    "limit (ulimit -v) and restart",
                    file_.path(), size, mapping_.reserved());
    }
    if (size < size_bytes() || size > file_.size_bytes()) {
        if (auto grown = file_.grow(size, room_end); !grown) {
            return grown;
        }
    }
    if (const int error = mapping_.extend(file_.fd(), size, mode_); error != 0) {
        return fail(SP_E_IO, error, "cannot map {} up to byte {}: {}", file_.path(), size, describe_errno(error));
    }
    return {};
}

Result<void> MappedMedium::read(std::uint64_t offset, std::span<std::byte> destination) const
{
    // By a system call and not from the mapping: a bad block is then an error and not SIGBUS.
    return file_.read(offset, destination);
}

Result<void> MappedMedium::write(std::span<const BlockWrite> batch)
{
    if (auto allowed = file_.check_writable(); !allowed) {
        return allowed;
    }
    if (auto intact = file_.check_intact(); !intact) {
        return intact;
    }
    for (const BlockWrite& write : batch) {
        if (auto inside = file_.check_range(write.offset, write.size); !inside) {
            return inside;
        }
    }
    for (const BlockWrite& write : batch) {
        if (const Fault fault = file_.faults().next(FaultPoint::write); fault.error != 0) {
            return file_.fail_write(fault.error, write.offset, write.size);
        }
        store_nontemporal(write.offset, write.data, write.size);
        write_calls_.add(1);
    }
    // Here and not only in sync(), which another thread may call: a fence covers its own thread.
    if (!is_removed(Canary::mapped_write_fence)) {
        fence();
    }
    return {};
}

Result<void> MappedMedium::sync()
{
    if (!is_removed(Canary::mapped_sync_fence)) {
        fence();
    }
    syncs_.add(1);
    return is_removed(Canary::first_sync_of_mapped) ? Result<void>{} : file_.sync_metadata();
}

bool MappedMedium::absorb_lost_page(void* address) noexcept
{
    if (!mapping_.replace_page(address)) {
        return false;
    }
    file_.note_lost_page();
    return true;
}

void MappedMedium::detach_after_fork() noexcept
{
    file_.detach_after_fork();
    mapping_.abandon_after_fork();
}

void MappedMedium::store(std::uint64_t offset, const void* data, std::size_t size) noexcept
{
    file_.faults().persist();
    observe(MediumEvent::store, offset, data, size);
    std::byte* const target = mapping_.base() + offset;
    // One instruction for what must not tear; memcpy promises nothing of that kind.
    if (!store_at_once<std::uint64_t>(target, data, size) && !store_at_once<std::uint32_t>(target, data, size) &&
        !store_at_once<std::uint16_t>(target, data, size)) {
        std::memcpy(target, data, size);
    }
    if (!needs_write_back_) {  // else they are counted as lines, when they are written back
        bytes_written_.add(size);
    }
}

void MappedMedium::store_nontemporal(std::uint64_t offset, const void* data, std::size_t size) noexcept
{
    file_.faults().persist();
    observe(MediumEvent::nontemporal_store, offset, data, size);
    arch_.copy_nontemporal(mapping_.base() + offset, data, size);
    bytes_written_.add(size);
    charge_pages(size);
}

void MappedMedium::append_lines(std::uint64_t offset, const void* data, std::size_t size) noexcept
{
    pass_persist_point();
    observe(MediumEvent::nontemporal_store, offset, data, size);
    arch_.copy_nontemporal(mapping_.base() + offset, data, size);
    shared_.add(bytes_appended, size);
    const std::size_t rest = size % page_bytes;
    if (rest != size) {  // Entries are small, most of them.
        charge_pages(size - rest);
    }
    charge_lines((rest + cache_line_bytes - 1) / cache_line_bytes);
}

void MappedMedium::append_each(std::span<const LineWrite> lines) noexcept
{
    // A locked instruction waits for the stores before it, so all figures are counted first.
    pass_persist_points(lines.size());
    shared_.add(bytes_appended, lines.size() * cache_line_bytes);
    for (const LineWrite& line : lines) {
        observe(MediumEvent::nontemporal_store, line.offset, line.data, cache_line_bytes);
        arch_.copy_nontemporal(mapping_.base() + line.offset, line.data, cache_line_bytes);
    }
    charge_lines(lines.size());
}

void MappedMedium::pass_persist_points(std::uint64_t count) noexcept
{
    if (!file_.faults().has_rules()) {
        shared_.add(persist_points, count);
        return;
    }
    for (; count > 0; --count) {  // Then the points of all members are counted together.
        file_.faults().persist();
    }
}

bool MappedMedium::compare_exchange_word(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired) noexcept
{
    pass_persist_point();
    const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(mapping_.base() + offset));
    if constexpr (media_are_observed) {  // In the order in which they take effect.
        const std::lock_guard hold(observed_lock_);
        const bool exchanged = word.compare_exchange_strong(expected, desired);
        if (exchanged) {
            observe(MediumEvent::store, offset, &desired, sizeof desired);
        }
        return exchanged;
    }
    return word.compare_exchange_strong(expected, desired);
}

void MappedMedium::store_word(std::uint64_t offset, std::uint64_t value) noexcept
{
    file_.faults().persist();
    const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(mapping_.base() + offset));
    if constexpr (media_are_observed) {  // In the order in which they take effect.
        const std::lock_guard hold(observed_lock_);
        word.store(value, std::memory_order_release);
        observe(MediumEvent::store, offset, &value, sizeof value);
        return;
    }
    word.store(value, std::memory_order_release);
}

void MappedMedium::write_back_line(std::uint64_t offset) noexcept
{
    if (!needs_write_back_) {
        return;
    }
    pass_persist_point();
    observe(MediumEvent::write_back, offset, nullptr, cache_line_bytes);
    arch_.write_back(mapping_.base() + offset);
    shared_.add(lines_of_any_thread, 1);
    charge_lines(1);
}

void MappedMedium::write_back(std::uint64_t offset, std::size_t size) noexcept
{
    if (!needs_write_back_) {
        return;
    }
    file_.faults().persist();
    observe(MediumEvent::write_back, offset, nullptr, size);
    const std::size_t lines = arch::flush(arch_, mapping_.base() + offset, size);
    lines_written_back_.add(lines);
    bytes_written_.add(lines * arch::Native::line_bytes);
    charge_lines(lines);
}

void MappedMedium::fence() noexcept
{
    const bool has_rules = file_.faults().has_rules();
    if (has_rules) {
        file_.faults().persist();
    }
    arch_.fence();
    observe(MediumEvent::fence);
    shared_.add(fences, 1);
    if (has_rules) {
        file_.faults().persist();  // Durable, and not reported yet.
    } else {
        shared_.add(persist_points, 2);  // As pass_persist_point(), before and after.
    }
}

Result<void> MappedMedium::map_at(std::byte* address, std::uint64_t offset, std::uint64_t size)
{
    if (auto inside = file_.check_range(offset, size); !inside) {
        return inside;
    }
    if (const int error = os::FileMapping::map_at(address, file_.fd(), offset, size, mode_); error != 0) {
        return fail(SP_E_NO_MEMORY, error, "cannot map {} bytes of {} from byte {} at {}: {}", size, file_.path(), offset,
                    static_cast<const void*>(address), describe_errno(error));
    }
    return observe_mapping({address, size, offset, mapping_.base() + offset}, file_.fd());
}

Result<void> MappedMedium::map_copy_at(std::byte* address, std::uint64_t offset, std::uint64_t size) noexcept
{
    if (auto inside = file_.check_range(offset, size); !inside) {
        return inside;
    }
    if (const int error = os::FileMapping::map_at(address, file_.fd(), offset, size, os::FileMapping::Mode::private_copy); error != 0) {
        return fail(SP_E_NO_MEMORY, error, "cannot map a copy of {} bytes of {} from byte {} at {}: {}", size, file_.path(), offset,
                    static_cast<const void*>(address), describe_errno(error));
    }
    return {};
}

void MappedMedium::write_back_lines(std::span<const std::uintptr_t> line_addresses) noexcept
{
    if (!needs_write_back_ || line_addresses.empty()) {
        return;
    }
    pass_persist_point();
    observe_write_backs(line_addresses);
    for (const std::uintptr_t line : line_addresses) {
        arch_.write_back(reinterpret_cast<const void*>(line));
    }
    shared_.add(lines_of_any_thread, line_addresses.size());
    charge_lines(line_addresses.size());
}

}  // namespace stillpoint
