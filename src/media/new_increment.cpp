#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/checksum.hpp"
#include "media/errno_text.hpp"
#include "media/increment_checksum.hpp"
#include "media/increment_file.hpp"
#include "media/whole_transfers.hpp"
#include "os/file_lock.hpp"

namespace stillpoint {

namespace {

using layout::IncrementHeader;
using layout::PageRun;

constexpr std::uint64_t block_pages = CopiedFile::block_bytes / page_bytes;

/// The pages that differ, and the digests of the new state.
struct Difference {
    PageDigests digests;
    std::vector<PageRun> changed;
    std::vector<PageRun> cleared;
    std::uint64_t changed_pages = 0;
    std::uint64_t cleared_pages = 0;
};

void add(std::vector<PageRun>& runs, std::uint64_t page)
{
    if (!runs.empty() && runs.back().first + runs.back().count == page) {
        ++runs.back().count;
    } else {
        runs.push_back({page, 1});
    }
}

/// Pages [first, end) of one block of the copy.
Result<void> compare_block(Difference& found, const PageDigests& base, const CopiedFile& copy, std::uint64_t first, std::uint64_t end,
                           std::byte* block)
{
    const CopiedFile::Origin origin = copy.origin_of(first / block_pages);
    if (origin == CopiedFile::Origin::written) {
        if (auto read = copy.read_back(first * page_bytes, block, (end - first) * page_bytes); !read) {
            return read;
        }
    }
    for (std::uint64_t page = first; page < end; ++page) {
        const std::uint64_t before = base[page];
        const std::uint64_t now = origin == CopiedFile::Origin::base      ? before
                                  : origin == CopiedFile::Origin::written ? found.digests.digest_of(block + (page - first) * page_bytes)
                                                                          : 0;
        found.digests.set(page, now);
        if (now == before) {
            continue;
        }
        add(now == 0 ? found.cleared : found.changed, page);
        ++(now == 0 ? found.cleared_pages : found.changed_pages);
    }
    return {};
}

Result<Difference> compare(const PageDigests& base, const CopiedFile& copy, std::uint64_t file_bytes)
{
    auto digests = PageDigests::of_zeroes(file_bytes, base.seed());
    if (!digests) {
        return pass_on(digests.error());
    }
    Difference found{std::move(*digests), {}, {}};
    const auto block = std::make_unique<std::byte[]>(CopiedFile::block_bytes);
    const std::uint64_t pages = file_bytes / page_bytes;
    for (std::uint64_t first = 0; first < pages; first += block_pages) {
        if (auto compared = compare_block(found, base, copy, first, std::min(pages, first + block_pages), block.get()); !compared) {
            return pass_on(compared.error());
        }
    }
    return found;
}

std::vector<std::byte> index_of(IncrementHeader& header, const Difference& found)
{
    std::vector<PageRun> known;
    std::vector<std::uint64_t> digests;
    for (std::uint64_t page = 0; page < found.digests.pages(); ++page) {
        if (const std::uint64_t digest = found.digests[page]; digest != 0) {
            add(known, page);
            digests.push_back(digest);
        }
    }
    header.changed_runs = found.changed.size();
    header.changed_pages = found.changed_pages;
    header.cleared_runs = found.cleared.size();
    header.cleared_pages = found.cleared_pages;
    header.digest_runs = known.size();
    header.digests = digests.size();
    std::vector<std::byte> index(index_bytes_of(header));
    std::byte* next = index.data();
    const auto append = [&next](const auto& list) {
        const std::size_t bytes = list.size() * sizeof list[0];
        if (bytes != 0) {
            std::memcpy(next, list.data(), bytes);
        }
        next += bytes;
    };
    append(found.changed);
    append(found.cleared);
    append(known);
    append(digests);
    header.index_checksum = checksum64(index.data(), index.size(), layout::increment_checksum_seed);
    header.increment_bytes = sizeof header + index.size() + header.changed_pages * page_bytes;
    return index;
}

}  // namespace

Result<NewIncrement> NewIncrement::open(const std::string& path, unsigned mode)
{
    NewIncrement made;
    made.path_ = path;
    made.file_ = os::Descriptor{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode)};
    if (!made.file_.valid()) {
        const int error = errno;
        return fail(code_of_errno(error), error, "cannot create {}: {}; {}", path, describe_errno(error), advice_for_errno(error));
    }
    if (os::try_lock_file(made.fd(), os::LockKind::exclusive) != 0) {
        return fail(SP_E_POOL_LOCKED, EWOULDBLOCK, "{}: another copy is being made there; wait for it, or choose another name", path);
    }
    struct stat facts{};
    std::uint8_t magic[sizeof layout::increment_magic]{};
    const bool is_file = fstat(made.fd(), &facts) == 0 && S_ISREG(facts.st_mode);
    const bool is_left = is_file && pread(made.fd(), magic, sizeof magic, 0) == static_cast<ssize_t>(sizeof magic) &&
                         (std::memcmp(magic, layout::unfinished_increment_magic, sizeof magic) == 0 ||
                          std::memcmp(magic, layout::increment_magic, sizeof magic) == 0);
    if (!is_file || (facts.st_size != 0 && !is_left)) {
        return fail(SP_E_POOL_EXISTS, EEXIST, "{} exists and is not an unfinished increment; rename it, or remove it", path);
    }
    if (auto marked = made.put(layout::unfinished_increment_magic, sizeof magic, 0); !marked) {
        return pass_on(marked.error());
    }
    if (ftruncate(made.fd(), sizeof magic) != 0) {
        return fail(SP_E_IO, errno, "cannot write {}: {}", path, describe_errno(errno));
    }
    return made;
}

Result<void> NewIncrement::put(const void* bytes, std::size_t size, std::uint64_t offset)
{
    const int error = write_all(fd(), static_cast<const std::byte*>(bytes), size, offset);
    if (error != 0) {
        return fail(code_of_errno(error), error, "cannot write {} at byte {}: {}; {}", path_, offset, describe_errno(error),
                    advice_for_errno(error));
    }
    return {};
}

Result<void> NewIncrement::put_pages(const CopiedFile& copy, const std::vector<PageRun>& runs, std::uint64_t offset)
{
    constexpr std::uint64_t piece_pages = 256;
    const auto piece = std::make_unique<std::byte[]>(piece_pages * page_bytes);
    for (const PageRun& run : runs) {
        for (std::uint64_t page = run.first, end = run.first + run.count; page < end;) {
            const std::uint64_t count = std::min(piece_pages, end - page);
            if (auto read = copy.read_back(page * page_bytes, piece.get(), count * page_bytes); !read) {
                return read;
            }
            if (auto written = put(piece.get(), count * page_bytes, offset); !written) {
                return written;
            }
            page += count;
            offset += count * page_bytes;
        }
    }
    return {};
}

Result<IncrementHeader> NewIncrement::write(const IncrementedPool& pool, const layout::FileState& base, const PageDigests& base_digests,
                                            layout::FileState state, const CopiedFile& copy)
{
    const auto found = compare(base_digests, copy, state.file_bytes);
    if (!found) {
        return pass_on(found.error());
    }
    IncrementHeader header{};
    std::memcpy(header.magic, layout::increment_magic, sizeof header.magic);
    header.version = layout::increment_version;
    header.header_bytes = sizeof header;
    std::copy(pool.uuid.begin(), pool.uuid.end(), header.pool_uuid);
    pool.engine_name.copy(header.engine_name, sizeof header.engine_name - 1);
    header.engine_layout_version = pool.engine_layout_version;
    header.page_bytes = page_bytes;
    header.base = base;
    header.own = state;
    header.own.digest = found->digests.of_all();
    header.created_unix_seconds = static_cast<std::uint64_t>(std::time(nullptr));
    const std::vector<std::byte> index = index_of(header, *found);
    header.checksum = increment_checksum(header);
    auto done = put(index.data(), index.size(), sizeof header);
    if (done) {
        done = put_pages(copy, found->changed, sizeof header + index.size());
    }
    if (done && fdatasync(fd()) != 0) {
        done = fail(SP_E_IO, errno, "cannot write {}: {}", path_, describe_errno(errno));
    }
    if (done) {  // From here on it passes for an increment, so all else is durable.
        done = put(&header, sizeof header, 0);
    }
    if (done && fsync(fd()) != 0) {
        done = fail(SP_E_IO, errno, "cannot write {}: {}", path_, describe_errno(errno));
    }
    return done ? Result<IncrementHeader>{header} : Result<IncrementHeader>{pass_on(done.error())};
}

}  // namespace stillpoint
