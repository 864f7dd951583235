#include "rados_copy.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <unistd.h>

#include "api/registry.hpp"
#include "media/open.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::size_t largest_piece_bytes = 4 * mib;

struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }  // NOLINT: of aligned_alloc
};
using Pages = std::unique_ptr<std::byte, Free>;
Pages new_piece() { return Pages(static_cast<std::byte*>(std::aligned_alloc(page_bytes, largest_piece_bytes))); }

MediumOptions options_for(const std::string& path)
{
    MediumOptions options;
    options.path = path;
    return options;
}

/// Reads the whole medium, piece by piece, until `take` wants no more: Result<bool>(offset, piece). Errors: no_memory, the medium's, those
/// of `take`.
template <class Take>
Result<void> read_pieces(const Medium& from, Take take)
{
    const Pages piece = new_piece();
    if (piece == nullptr) {
        return fail(SP_E_NO_MEMORY, ENOMEM, "no memory to copy {}", from.path());
    }
    for (std::uint64_t at = 0; at < from.size_bytes();) {
        const std::size_t size = std::min<std::uint64_t>(largest_piece_bytes, from.size_bytes() - at);
        if (auto read = from.read(at, {piece.get(), size}); !read) {
            return read;
        }
        const Result<bool> taken = take(at, std::span<const std::byte>(piece.get(), size));
        if (!taken || !*taken) {
            return taken ? Result<void>{} : Result<void>{pass_on(taken.error())};
        }
        at += size;
    }
    return {};
}

/// Reads the whole medium into a pipe, up to the first failure, at which the pipe ends.
Result<void> pump(const Medium& from, int pipe)
{
    return read_pieces(from, [pipe](std::uint64_t, std::span<const std::byte> piece) -> Result<bool> {
        while (!piece.empty()) {
            const ssize_t written = write(pipe, piece.data(), piece.size());
            if (written < 0 && errno != EINTR) {
                return false;  // The reader has failed, and says why.
            }
            piece = piece.subspan(written > 0 ? static_cast<std::size_t>(written) : 0);
        }
        return true;
    });
}

/// The pages of a piece that hold something: others read as zeroes where nothing was written.
std::size_t written_runs(std::span<const std::byte> piece, std::uint64_t offset, std::span<BlockWrite> runs)
{
    alignas(page_bytes) static constexpr std::array<std::byte, page_bytes> zeroes{};
    std::size_t count = 0;
    for (std::size_t at = 0; at < piece.size(); at += page_bytes) {
        if (std::memcmp(piece.data() + at, zeroes.data(), page_bytes) == 0) {
            continue;
        }
        if (count > 0 && runs[count - 1].data + runs[count - 1].size == piece.data() + at) {
            runs[count - 1].size += page_bytes;
        } else {
            runs[count++] = {offset + at, piece.data() + at, page_bytes};
        }
    }
    return count;
}

Result<void> copy_pages(const Medium& from, Medium& to, PoolFileCopyFigures& figures, CopyProgress line)
{
    const auto runs = std::make_unique<std::array<BlockWrite, largest_piece_bytes / page_bytes>>();
    const auto put = [&](std::uint64_t at, std::span<const std::byte> piece) -> Result<bool> {
        const std::size_t count = written_runs(piece, at, *runs);
        if (auto written = to.write(std::span(*runs).first(count)); !written) {
            return pass_on(written.error());
        }
        figures.bytes_read += piece.size();
        if (line != nullptr) {
            line(at + piece.size(), from.size_bytes());
        }
        return true;
    };
    if (auto copied = read_pieces(from, put); !copied) {
        return copied;
    }
    figures.bytes_written = to.counters().bytes_written;
    return to.sync();
}

}  // namespace

Result<PoolFileCopyFigures> copy_out_of_rados(const std::string& path, CopiedFile& copy)
{
    const std::uint64_t begun_ns = os::monotonic_ns();
    const auto medium = open_medium_read_only(options_for(path), true);
    if (!medium) {
        return pass_on(medium.error());
    }
    int ends[2];
    if (pipe(ends) != 0) {
        return fail(SP_E_IO, errno, "no pipe to copy {}: {}", path, std::strerror(errno));
    }
    os::Descriptor near_end{ends[0]};
    os::Descriptor far_end{ends[1]};
    Result<void> pumped;
    std::thread pumping([&] {
        pumped = pump(**medium, far_end.get());
        far_end.reset();
    });
    const auto pass = copy.take_stream(near_end.get(), path);
    near_end.reset();
    pumping.join();
    if (!pumped || !pass) {
        return pass_on(!pumped ? pumped.error() : pass.error());
    }
    PoolFileCopyFigures figures;
    figures.passes = 1;
    figures.bytes_read = pass->bytes_read;
    figures.bytes_written = pass->bytes_changed;
    figures.elapsed_ns = os::monotonic_ns() - begun_ns;
    return figures;
}

Result<CopyInRados> copy_into_rados(const std::string& path, const std::string& new_path, bool progress)
{
    const std::uint64_t begun_ns = os::monotonic_ns();
    const auto from = open_medium_read_only(options_for(path), true);
    if (!from) {
        return pass_on(from.error());
    }
    MediumOptions wanted = options_for(new_path);
    wanted.publish_later = true;
    auto to = create_medium(wanted, round_up((*from)->size_bytes(), page_bytes));
    if (!to) {
        return pass_on(to.error());
    }
    CopyInRados made{};
    made.file_bytes = (*from)->size_bytes();
    made.figures.passes = 1;
    const CopyProgress line = copy_progress_line(progress);
    auto copied = copy_pages(**from, **to, made.figures, line);
    erase_copy_progress(line);
    if (!copied) {
        return pass_on(copied.error());
    }
    const auto opened = open_pool_of(new_path, std::move(to), true);
    auto verified = opened ? verify(*opened, progress, {}) : Result<Verification>(pass_on(opened.error()));
    if (!verified) {
        return fail(verified.error().code, verified.error().os_error, "{} is not copied, since its copy is not sound: {}", path,
                    verified.error().text());
    }
    if (auto named = opened->pool.medium().publish(); !named) {
        return pass_on(named.error());
    }
    made.verified = {verified->recovery, opened->pool.facts().engine_name};
    made.figures.elapsed_ns = os::monotonic_ns() - begun_ns;
    return made;
}

}  // namespace stillpoint::tool
