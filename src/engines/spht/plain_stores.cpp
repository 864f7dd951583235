#include "engines/spht/plain_stores.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stillpoint::spht {

namespace {

constexpr std::uint64_t holes_max = std::uint64_t{1} << 20;

Result<void> unsupported(const Failure& failure)
{
    return fail(
        SP_E_UNSUPPORTED, failure.os_error,
        "plain stores of a transaction cannot be found: this process has no write protection by userfaultfd and PAGEMAP_SCAN (it needs "
        "Linux 6.7 and the permission)");
}

}  // namespace

Result<void> PlainStores::prepare(std::span<const std::byte> image)
{
    if (!uffd_) {
        auto uffd = os::Userfaultfd::open();
        if (!uffd) {
            return unsupported(uffd.error());
        }
        auto scanner = os::PagemapScanner::open();
        if (!scanner) {
            return unsupported(scanner.error());
        }
        uffd_.emplace(std::move(*uffd));
        scanner_.emplace(std::move(*scanner));
    }
    if (image.size() > registered_bytes_) {
        if (auto done = uffd_->register_range(image.data() + registered_bytes_, image.size() - registered_bytes_, false); !done) {
            return unsupported(done.error());
        }
        registered_bytes_ = image.size();
    }
    if (left_out_.capacity() == 0) {
        if (auto done = left_out_.reserve(holes_max, "blocks that a transaction frees"); !done) {
            return done;
        }
    }
    const std::uint64_t pages = image.size() / page_bytes + 1;
    return written_.capacity() >= pages ? Result<void>{} : written_.reserve(2 * pages, "pages that a transaction has written");
}

Result<void> PlainStores::copy_mirrored(std::span<const MirroredRange> mirrored)
{
    mirrored_ = mirrored;
    std::size_t bytes = 0;
    for (const MirroredRange& range : mirrored) {
        bytes += range.size;
    }
    if (bytes > mirrored_copy_.capacity()) {
        if (auto done = mirrored_copy_.reserve(bytes, "a copy of durable program memory"); !done) {
            return done;
        }
    }
    std::size_t at = 0;
    for (const MirroredRange& range : mirrored) {
        std::memcpy(mirrored_copy_.data() + at, range.program_memory, range.size);
        at += range.size;
    }
    return {};
}

Result<void> PlainStores::arm(std::span<const std::byte> image, std::span<const MirroredRange> mirrored)
{
    if (auto done = prepare(image); !done) {
        return done;
    }
    if (auto done = copy_mirrored(mirrored); !done) {
        return done;
    }
    const auto base = reinterpret_cast<std::uintptr_t>(image.data());
    if (!scan(base, base + image.size(), false)) {
        return fail(SP_E_UNSUPPORTED, errno, "plain stores of a transaction cannot be found: PAGEMAP_SCAN does not work here ({})",
                    std::strerror(errno));
    }
    armed_bytes_ = image.size();
    return {};
}

bool PlainStores::scan(std::uintptr_t begin, std::uintptr_t end, bool keeps) noexcept
{
    written_count_ = 0;
    while (begin < end) {
        constexpr std::size_t found_max = 64;
        os::PageRun found[found_max];
        std::size_t count = 0;
        begin = scanner_->collect_written(begin, end, found, found_max, count);
        if (begin == 0) {
            return false;
        }
        for (std::size_t i = 0; keeps && i < count; ++i) {
            written_[written_count_++] = found[i];
        }
    }
    return true;
}

bool PlainStores::collect(std::span<const std::byte> image) noexcept
{
    const auto base = reinterpret_cast<std::uintptr_t>(image.data());
    left_out_count_ = 0;
    if (!scan(base, base + armed_bytes_, true)) {
        return false;
    }
    if (image.size() > armed_bytes_) {
        // The pool has grown meanwhile.
        written_[written_count_++] = {base + armed_bytes_, base + image.size()};
    }
    return true;
}

bool PlainStores::leave_out(const std::byte* bytes, std::size_t size) noexcept
{
    if (left_out_count_ == left_out_.capacity()) {
        return false;
    }
    left_out_[left_out_count_++] = {bytes, bytes + size};
    return true;
}

void PlainStores::add_run(logs::RecordBuilder& record, const os::PageRun& run, const std::byte* image) const noexcept
{
    const auto* at = reinterpret_cast<const std::byte*>(run.begin);
    const auto* const end = reinterpret_cast<const std::byte*>(run.end);
    const Bytes* const last_hole = left_out_.data() + left_out_count_;
    const Bytes* hole = std::lower_bound(left_out_.data(), last_hole, at,
                                         [](const Bytes& bytes, const std::byte* wanted) { return bytes.begin < wanted; });
    for (; hole != last_hole && hole->begin < end; ++hole) {
        record.add_range(static_cast<std::uint64_t>(at - image), at, static_cast<std::uint64_t>(hole->begin - at));
        at = hole->end;
    }
    if (at < end) {
        record.add_range(static_cast<std::uint64_t>(at - image), at, static_cast<std::uint64_t>(end - at));
    }
}

void PlainStores::add_to(logs::RecordBuilder& record, std::span<const std::byte> image) noexcept
{
    std::sort(left_out_.data(), left_out_.data() + left_out_count_,
              [](const Bytes& one, const Bytes& other) { return one.begin < other.begin; });
    for (std::uint64_t i = 0; i < written_count_; ++i) {
        add_run(record, written_[i], image.data());
    }
    std::size_t at = 0;
    for (const MirroredRange& range : mirrored_) {
        constexpr std::size_t part_bytes = 64;
        for (std::size_t done = 0; done < range.size; done += part_bytes) {
            const std::size_t part = std::min(part_bytes, range.size - done);
            if (std::memcmp(range.program_memory + done, mirrored_copy_.data() + at + done, part) != 0) {
                const std::byte* const copy = range.image_copy + done;
                record.add_range(static_cast<std::uint64_t>(copy - image.data()), range.program_memory + done, part);
            }
        }
        at += range.size;
    }
}

void PlainStores::detach_after_fork() noexcept
{
    if (uffd_) {
        uffd_->close();
    }
}

}  // namespace stillpoint::spht
