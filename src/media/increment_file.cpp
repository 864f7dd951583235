#include "media/increment_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/checksum.hpp"
#include "media/errno_text.hpp"
#include "media/increment_checksum.hpp"
#include "media/whole_transfers.hpp"

namespace stillpoint {

namespace {

using layout::IncrementHeader;
using layout::PageRun;

/// 16 TiB, several times the file of the largest pool: so no product below overflows, and digests take no more than 32 GiB of addresses.
constexpr std::uint64_t pages_max = std::uint64_t{1} << 32;
constexpr std::size_t piece_pages = 256;

/// Ascending, without overlap, not empty, inside `pages`; `total` of them in all.
bool are_sound(std::span<const PageRun> runs, std::uint64_t pages, std::uint64_t total) noexcept
{
    std::uint64_t next = 0;
    std::uint64_t sum = 0;
    for (const PageRun& run : runs) {
        if (run.first < next || run.first > pages || run.count == 0 || run.count > pages - run.first) {
            return false;
        }
        next = run.first + run.count;
        sum += run.count;
    }
    return sum == total;
}

bool is_known_state(const layout::FileState& state) noexcept
{
    return state.file_bytes % page_bytes == 0 && state.file_bytes / page_bytes <= pages_max;
}

}  // namespace

std::uint64_t increment_checksum(const IncrementHeader& header) noexcept
{
    const auto* const bytes = reinterpret_cast<const std::byte*>(&header);
    constexpr std::size_t after = offsetof(IncrementHeader, checksum) + sizeof header.checksum;
    const std::uint64_t head = checksum64(bytes, offsetof(IncrementHeader, checksum), layout::increment_checksum_seed);
    return checksum64(bytes + after, sizeof header - after, head);
}

std::uint64_t digest_seed(const std::array<std::uint8_t, 16>& uuid) noexcept
{
    return checksum64(uuid.data(), uuid.size(), layout::increment_digest_seed);
}

std::uint64_t index_bytes_of(const IncrementHeader& header) noexcept
{
    const std::uint64_t runs = header.changed_runs + header.cleared_runs + header.digest_runs;
    return round_up(runs * sizeof(PageRun) + header.digests * sizeof(std::uint64_t), page_bytes);
}

template <class... Args>
tl::unexpected<Failure> IncrementFile::corrupt(fmt::format_string<Args...> format, Args&&... args) const
{
    char reason[256];
    const auto end = fmt::format_to_n(reason, sizeof reason, format, std::forward<Args>(args)...);
    return fail(SP_E_POOL_CORRUPT, 0, "{}: the increment is damaged: {}; take it from another copy, or make a new full copy of the pool",
                path_, std::string_view(reason, static_cast<std::size_t>(end.out - reason)));
}

bool is_increment(const std::string& path)
{
    const os::Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    std::uint8_t magic[sizeof layout::increment_magic]{};
    return file.valid() && pread(file.get(), magic, sizeof magic, 0) == static_cast<ssize_t>(sizeof magic) &&
           std::memcmp(magic, layout::increment_magic, sizeof magic) == 0;
}

Result<IncrementFile> IncrementFile::open(const std::string& path)
{
    os::Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (!file.valid()) {
        const int error = errno;
        const sp_error code = code_of_errno(error);
        return fail(code, error, "cannot open {}: {}; {}", path, describe_errno(error), advice_for(code));
    }
    return take(std::move(file), path);
}

Result<IncrementFile> IncrementFile::take(os::Descriptor file, std::string name)
{
    IncrementFile increment;
    increment.path_ = std::move(name);
    increment.file_ = std::move(file);
    struct stat facts{};
    if (fstat(increment.file_.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return fail(SP_E_NOT_A_POOL, 0, "{} is not a regular file; name an increment that `stillpoint copy` has made", increment.path_);
    }
    increment.file_bytes_ = static_cast<std::uint64_t>(facts.st_size);
    if (auto read = increment.read_header(); !read) {
        return pass_on(read.error());
    }
    if (auto read = increment.read_index(); !read) {
        return pass_on(read.error());
    }
    return increment;
}

Result<void> IncrementFile::read_header()
{
    std::size_t got = 0;
    if (const int error = read_all(file_.get(), reinterpret_cast<std::byte*>(&header_), sizeof header_, 0, got); error != 0) {
        return fail(SP_E_IO, error, "cannot read {}: {}", path_, describe_errno(error));
    }
    if (got < sizeof header_.magic || std::memcmp(header_.magic, layout::increment_magic, sizeof header_.magic) != 0) {
        const bool unfinished = got >= sizeof header_.magic &&
                                std::memcmp(header_.magic, layout::unfinished_increment_magic, sizeof header_.magic) == 0;
        return fail(SP_E_NOT_A_POOL, 0, "{}: {}", path_,
                    unfinished ? "an increment that was never finished; remove it, and make it again (stillpoint copy)"
                               : "not an increment: it does not begin as one; name what `stillpoint copy --incremental-since` has made");
    }
    if (got < sizeof header_) {
        return fail(SP_E_POOL_TRUNCATED, 0, "{}: the increment ends at byte {}, inside its header; take it from another copy", path_, got);
    }
    if (header_.checksum != increment_checksum(header_)) {
        return corrupt("the checksum of its header does not hold");
    }
    if (header_.version != layout::increment_version) {
        return fail(SP_E_POOL_VERSION, 0, "{}: the increment has format version {}, this stillpoint reads version {}; use a newer one",
                    path_, header_.version, layout::increment_version);
    }
    if (header_.header_bytes != sizeof header_ || header_.page_bytes != page_bytes || !is_known_state(header_.base) ||
        !is_known_state(header_.own) || strnlen(header_.engine_name, sizeof header_.engine_name) == sizeof header_.engine_name) {
        return corrupt("its header contradicts itself");
    }
    for (const std::uint64_t count :
         {header_.changed_runs, header_.changed_pages, header_.cleared_runs, header_.cleared_pages, header_.digest_runs, header_.digests}) {
        if (count > pages_max) {
            return corrupt("its header counts {} pages", count);
        }
    }
    const std::uint64_t bytes = sizeof header_ + index_bytes_of(header_) + header_.changed_pages * page_bytes;
    if (header_.increment_bytes != bytes) {
        return corrupt("it has {} bytes, and its parts {}", header_.increment_bytes, bytes);
    }
    if (file_bytes_ < bytes) {
        return fail(SP_E_POOL_TRUNCATED, 0,
                    "{}: the increment has {} bytes, and the file {}: its end is missing; take it from another copy", path_, bytes,
                    file_bytes_);
    }
    return file_bytes_ == bytes ? Result<void>{} : Result<void>{corrupt("{} bytes follow its end", file_bytes_ - bytes)};
}

Result<void> IncrementFile::read_index()
{
    const std::uint64_t bytes = index_bytes_of(header_);
    os::ReservedArray<std::byte> index;
    if (auto reserved = index.reserve(bytes, "an increment's index"); !reserved) {
        return reserved;
    }
    std::size_t got = 0;
    if (const int error = read_all(file_.get(), index.data(), bytes, sizeof header_, got); error != 0 || got != bytes) {
        return fail(SP_E_IO, error, "cannot read {}: {}", path_, error != 0 ? describe_errno(error) : "the file has become shorter");
    }
    if (checksum64(index.data(), bytes, layout::increment_checksum_seed) != header_.index_checksum) {
        return corrupt("the checksum of its list of pages does not hold");
    }
    return take_runs(index.data());
}

Result<void> IncrementFile::take_runs(const std::byte* index)
{
    const std::uint64_t pages = header_.own.file_bytes / page_bytes;
    const auto* const runs = reinterpret_cast<const PageRun*>(index);
    changed_.assign(runs, runs + header_.changed_runs);
    cleared_.assign(runs + header_.changed_runs, runs + header_.changed_runs + header_.cleared_runs);
    const std::span<const PageRun> known(runs + header_.changed_runs + header_.cleared_runs, header_.digest_runs);
    if (!are_sound(changed_, pages, header_.changed_pages) || !are_sound(cleared_, pages, header_.cleared_pages) ||
        !are_sound(known, pages, header_.digests)) {
        return corrupt("its lists of pages contradict each other");
    }
    auto digests = PageDigests::of_zeroes(header_.own.file_bytes, digest_seed(std::to_array(header_.pool_uuid)));
    if (!digests) {
        return pass_on(digests.error());
    }
    digests_ = std::move(*digests);
    const auto* next = reinterpret_cast<const std::uint64_t*>(known.data() + known.size());
    for (const PageRun& run : known) {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
            digests_.set(page, *next++);
        }
    }
    const auto all = [this](std::span<const PageRun> list, bool are_zero_pages) {
        return std::all_of(list.begin(), list.end(), [&](const PageRun& run) {
            for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
                if ((digests_[page] == 0) != are_zero_pages) {
                    return false;
                }
            }
            return true;
        });
    };
    if (!all(changed_, false) || !all(cleared_, true) || digests_.of_all() != header_.own.digest) {
        return corrupt("the digests of the pages contradict the rest");
    }
    return {};
}

Result<void> IncrementFile::read_pages(std::uint64_t offset, std::byte* bytes, std::uint64_t first, std::uint64_t count) const
{
    std::size_t got = 0;
    if (const int error = read_all(file_.get(), bytes, count * page_bytes, offset, got); error != 0 || got != count * page_bytes) {
        return fail(SP_E_IO, error, "cannot read {} at byte {}: {}", path_, offset,
                    error != 0 ? describe_errno(error) : "the file has become shorter");
    }
    for (std::uint64_t page = 0; page < count; ++page) {
        if (digests_.digest_of(bytes + page * page_bytes) != digests_[first + page]) {
            return corrupt("the bytes of page {} of the pool, at byte {}, are others than when it was made", first + page,
                           offset + page * page_bytes);
        }
    }
    return {};
}

Result<void> IncrementFile::visit(Visitor visitor, void* context) const
{
    const auto piece = std::make_unique<std::byte[]>(piece_pages * page_bytes);
    const auto zeroes = std::make_unique<std::byte[]>(page_bytes);
    for (const PageRun& run : cleared_) {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
            if (auto done = visitor(context, page, zeroes.get()); !done) {
                return done;
            }
        }
    }
    std::uint64_t offset = sizeof header_ + index_bytes_of(header_);
    for (const PageRun& run : changed_) {
        for (std::uint64_t page = run.first, end = run.first + run.count; page < end;) {
            const std::uint64_t count = std::min<std::uint64_t>(piece_pages, end - page);
            if (auto read = read_pages(offset, piece.get(), page, count); !read) {
                return read;
            }
            for (std::uint64_t i = 0; i < count; ++i) {
                if (auto done = visitor(context, page + i, piece.get() + i * page_bytes); !done) {
                    return done;
                }
            }
            page += count;
            offset += count * page_bytes;
        }
    }
    return {};
}

}  // namespace stillpoint
