#include "media/copied_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/checksum.hpp"
#include "media/errno_text.hpp"
#include "media/whole_transfers.hpp"
#include "os/file_lock.hpp"
#include "os/file_size_limit.hpp"

namespace stillpoint {

namespace {

constexpr std::size_t piece_bytes = mib;
constexpr std::array<std::uint8_t, 16> unfinished_mark = {0x93, 'S', 'T', ' ', 'u', 'n', 'f',  'i',
                                                          'n',  'i', 's', 'h', 'e', 'd', '\r', '\n'};
constexpr std::uint64_t mark_bytes = page_bytes;  ///< of the file after its last byte; the mark is at their end

/// errno, or 0.
int set_length(int file, std::uint64_t size) noexcept
{
    const os::FileSizeSignalHeld held;
    return ftruncate(file, static_cast<off_t>(size)) == 0 ? 0 : errno;
}

}  // namespace

Result<void> CopiedFile::fail_at(int error, std::uint64_t offset) const
{
    const sp_error code = code_of_errno(error);
    return fail(code, error, "cannot write {} at byte {}: {}; {}; the same command goes on from here", path_, offset, describe_errno(error),
                advice_for_errno(error));
}

Result<CopiedFile> CopiedFile::open(const std::string& path, unsigned mode)
{
    CopiedFile copy;
    copy.path_ = path;
    copy.file_ = os::Descriptor{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode)};
    if (!copy.file_.valid()) {
        const int error = errno;
        return fail(code_of_errno(error), error, "cannot create {}: {}; {}", path, describe_errno(error), advice_for_errno(error));
    }
    if (os::try_lock_file(copy.fd(), os::LockKind::exclusive) != 0) {
        return fail(SP_E_POOL_LOCKED, EWOULDBLOCK, "{}: another copy is being made there; wait for it, or choose another name", path);
    }
    copy.block_ = std::make_unique<std::byte[]>(block_bytes);
    if (auto known = copy.recognise(); !known) {
        return pass_on(known.error());
    }
    if (getrandom(&copy.seed_, sizeof copy.seed_, 0) != sizeof copy.seed_) {
        return fail(SP_E_IO, errno, "no random numbers: {}", describe_errno(errno));
    }
    copy.head_ = std::make_unique<std::byte[]>(block_bytes);
    copy.piece_ = std::make_unique<std::byte[]>(piece_bytes);
    std::memset(copy.block_.get(), 0, block_bytes);
    copy.zero_digest_ = checksum64(copy.block_.get(), block_bytes, copy.seed_);
    return copy;
}

/// An empty file is a new one; another must be what an earlier copy has left.
Result<void> CopiedFile::recognise()
{
    struct stat facts{};
    if (fstat(fd(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return fail(SP_E_POOL_EXISTS, 0, "{} exists and is not a regular file; choose another name", path_);
    }
    const auto length = static_cast<std::uint64_t>(facts.st_size);
    if (length == 0) {
        return resize(0);
    }
    std::array<std::uint8_t, unfinished_mark.size()> mark{};
    std::size_t got = 0;
    if (length < mark_bytes || read_all(fd(), reinterpret_cast<std::byte*>(mark.data()), mark.size(), length - mark.size(), got) != 0 ||
        mark != unfinished_mark) {
        return fail(SP_E_POOL_EXISTS, EEXIST, "{} exists and is not an unfinished copy; rename it, or remove it", path_);
    }
    resumed_ = true;
    size_bytes_ = length - mark_bytes;
    size_at_begin_ = size_bytes_;
    digests_.assign((size_bytes_ + block_bytes - 1) / block_bytes, 0);
    is_as_base_.assign(digests_.size(), false);
    return size_bytes_ == 0 ? Result<void>{} : put_zeroes(0, std::min<std::uint64_t>(block_bytes, size_bytes_));
}

/// The mark moves with the end; at every moment there is one. What the file gains reads as zeroes.
Result<void> CopiedFile::resize(std::uint64_t size)
{
    int error = write_all(fd(), reinterpret_cast<const std::byte*>(unfinished_mark.data()), unfinished_mark.size(),
                          size + mark_bytes - unfinished_mark.size());
    if (error == 0 && size < size_bytes_) {
        error = set_length(fd(), size + mark_bytes);
    }
    if (error != 0) {
        return fail_at(error, size);
    }
    if (size > size_bytes_) {
        if (auto cleared = put_zeroes(size_bytes_, std::min(mark_bytes, size - size_bytes_)); !cleared) {
            return cleared;
        }
    }
    if (size % block_bytes != 0 || size_bytes_ % block_bytes != 0) {  // A block that has changed its length is another one.
        digests_.resize(std::min(size, size_bytes_) / block_bytes);
        size_at_begin_ = std::max(size_at_begin_, size_bytes_);
    }
    size_bytes_ = size;
    is_as_base_.resize(digests_.size(), false);
    digests_.resize((size + block_bytes - 1) / block_bytes, 0);
    is_as_base_.resize(digests_.size(), false);
    return {};
}

Result<CopiedFile::Pass> CopiedFile::take_pass(int source, const std::string& source_path, CopyProgress progress, CopyPermission permission,
                                               std::size_t late_bytes_max)
{
    if (auto written = write_late(); !written) {
        return pass_on(written.error());
    }
    struct stat facts{};
    if (fstat(source, &facts) != 0) {
        return fail(SP_E_IO, errno, "cannot inspect {}: {}", source_path, describe_errno(errno));
    }
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    if (size != size_bytes_) {
        if (auto resized = resize(size); !resized) {
            return pass_on(resized.error());
        }
    }
    if (late_bytes_max > late_room_) {
        late_bytes_.reset(new std::byte[late_bytes_max]);
        late_room_ = late_bytes_max;
    }
    late_used_ = late_bytes_max == 0 ? late_room_ : 0;
    Pass pass;
    std::uint64_t data_end = 0;  // Up to here the source has data.
    for (std::uint64_t at = 0; at < size;) {
        if (permission.may_go_on != nullptr && !permission.may_go_on(permission.context)) {
            return fail(SP_E_TIMED_OUT, 0, "{}: the last pass took too long", source_path);
        }
        if (at >= data_end) {
            const off_t found = lseek(source, static_cast<off_t>(at), SEEK_DATA);
            const std::uint64_t begin = found >= 0 ? static_cast<std::uint64_t>(found) : errno == ENXIO ? size : at;
            const std::uint64_t zeroes_end = begin >= size ? size : begin / block_bytes * block_bytes;
            if (zeroes_end > at) {
                if (auto taken = take_zeroes(pass, at, zeroes_end); !taken) {
                    return pass_on(taken.error());
                }
                at = zeroes_end;
                continue;
            }
            const off_t hole = lseek(source, static_cast<off_t>(begin), SEEK_HOLE);
            data_end = hole > 0 ? round_up(static_cast<std::uint64_t>(hole), block_bytes) : size;
        }
        const std::size_t wanted = std::min({piece_bytes, size - at, std::max<std::uint64_t>(data_end - at, block_bytes)});
        std::size_t got = 0;
        const int error = read_all(source, piece_.get(), wanted, at, got);
        if (error != 0 || got != wanted) {
            return fail(SP_E_IO, error, "cannot read {} at byte {}: {}", source_path, at,
                        error != 0 ? describe_errno(error) : "the file has become shorter");
        }
        if (auto taken = take_piece(pass, at, got); !taken) {
            return pass_on(taken.error());
        }
        pass.bytes_read += got;
        at += got;
        if (progress != nullptr) {
            progress(at, size);
        }
    }
    return pass;
}

Result<void> CopiedFile::take_block(Pass& pass, std::uint64_t index, const std::byte* bytes, std::size_t size)
{
    if (index == 0) {
        std::memcpy(head_.get(), bytes, size);
        head_bytes_ = size;
        return {};
    }
    const std::uint64_t digest = checksum64(bytes, size, seed_);
    const std::uint64_t offset = index * block_bytes;
    if (digests_[index] == digest) {
        return {};
    }
    const bool is_new = digests_[index] == 0;
    if (is_new && base_ != nullptr && size % page_bytes == 0 && base_->match(offset / page_bytes, bytes, size)) {
        digests_[index] = digest;
        is_as_base_[index] = true;
        return {};
    }
    if (is_new && offset < size_at_begin_) {
        auto same = holds(offset, bytes, size);
        if (!same) {
            return pass_on(same.error());
        }
        if (*same) {
            digests_[index] = digest;
            return {};
        }
    }
    digests_[index] = 0;  // Not known while it is being written.
    is_as_base_[index] = false;
    if (are_zero(bytes, size)) {
        if (!is_new || offset < size_at_begin_) {
            pass.bytes_changed += size;
            if (auto done = put_zeroes(offset, size); !done) {
                return done;
            }
        }
    } else {
        pass.bytes_changed += size;
        if (auto done = put(offset, bytes, size); !done) {
            return done;
        }
    }
    digests_[index] = digest;
    return {};
}

Result<CopiedFile::Pass> CopiedFile::take_stream(int source, const std::string& source_name)
{
    Pass pass;
    late_used_ = late_room_;
    for (bool ended = false; !ended;) {
        std::size_t got = 0;
        while (got < piece_bytes && !ended) {
            const ssize_t count = read(source, piece_.get() + got, piece_bytes - got);
            if (count < 0 && errno != EINTR) {
                return fail(SP_E_IO, errno, "cannot read {}: {}", source_name, describe_errno(errno));
            }
            got += count > 0 ? static_cast<std::size_t>(count) : 0;
            ended = count == 0;
        }
        if (pass.bytes_read + got > size_bytes_ || ended) {
            if (auto resized = resize(pass.bytes_read + got); !resized) {
                return pass_on(resized.error());
            }
        }
        if (auto taken = take_piece(pass, pass.bytes_read, got); !taken) {
            return pass_on(taken.error());
        }
        pass.bytes_read += got;
    }
    return pass;
}

/// The bytes of piece_, which lie at `offset` in the source.
Result<void> CopiedFile::take_piece(Pass& pass, std::uint64_t offset, std::size_t size)
{
    for (std::size_t place = 0; place < size; place += block_bytes) {
        auto taken = take_block(pass, (offset + place) / block_bytes, piece_.get() + place, std::min(block_bytes, size - place));
        if (!taken) {
            return taken;
        }
    }
    return {};
}

Result<void> CopiedFile::take_zeroes(Pass& pass, std::uint64_t begin, std::uint64_t end)
{
    for (std::uint64_t at = begin; at < end; at += block_bytes) {
        const std::uint64_t index = at / block_bytes;
        const std::size_t size = std::min<std::uint64_t>(block_bytes, end - at);
        const bool is_known_zero = size == block_bytes && digests_[index] == zero_digest_;
        const bool was_never_written = digests_[index] == 0 && at >= size_at_begin_;
        if (is_known_zero || was_never_written) {
            continue;
        }
        std::memset(piece_.get(), 0, size);
        if (auto taken = take_block(pass, index, piece_.get(), size); !taken) {
            return taken;
        }
    }
    return {};
}

Result<bool> CopiedFile::holds(std::uint64_t offset, const std::byte* bytes, std::size_t size)
{
    std::size_t got = 0;
    if (const int error = read_all(fd(), block_.get(), size, offset, got); error != 0) {
        return fail(SP_E_IO, error, "cannot read {} at byte {}: {}", path_, offset, describe_errno(error));
    }
    return got == size && std::memcmp(block_.get(), bytes, size) == 0;
}

Result<void> CopiedFile::put(std::uint64_t offset, const std::byte* bytes, std::size_t size)
{
    if (late_room_ - late_used_ >= size) {
        std::memcpy(late_bytes_.get() + late_used_, bytes, size);
        late_.push_back({offset, size, late_used_});
        late_used_ += size;
        return {};
    }
    const int error = write_all(fd(), bytes, size, offset);
    return error == 0 ? Result<void>{} : fail_at(error, offset);
}

Result<void> CopiedFile::put_zeroes(std::uint64_t offset, std::size_t size)
{
    if (fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size)) == 0) {
        return {};
    }
    std::memset(block_.get(), 0, size);
    const int error = write_all(fd(), block_.get(), size, offset);
    return error == 0 ? Result<void>{} : fail_at(error, offset);
}

CopiedFile::Origin CopiedFile::origin_of(std::uint64_t index) const noexcept
{
    if (index == 0) {
        return Origin::written;
    }
    if (is_as_base_[index]) {
        return Origin::base;
    }
    return digests_[index] == 0 && index * block_bytes >= size_at_begin_ ? Origin::never_written : Origin::written;
}

Result<void> CopiedFile::read_back(std::uint64_t offset, std::byte* bytes, std::size_t size) const
{
    std::size_t got = 0;
    if (const int error = read_all(fd(), bytes, size, offset, got); error != 0 || got != size) {
        return fail(SP_E_IO, error, "cannot read {} at byte {}: {}", path_, offset,
                    error != 0 ? describe_errno(error) : "the file has become shorter");
    }
    if (offset < head_bytes_) {
        std::memcpy(bytes, head_.get() + offset, std::min<std::uint64_t>(size, head_bytes_ - offset));
    }
    return {};
}

Result<void> CopiedFile::patch(std::uint64_t page, const std::byte* bytes)
{
    const std::uint64_t offset = page * page_bytes;
    if (offset < head_bytes_) {
        std::memcpy(head_.get() + offset, bytes, page_bytes);
        return {};
    }
    digests_[offset / block_bytes] = 0;
    size_at_begin_ = size_bytes_;
    if (are_zero(bytes, page_bytes)) {
        return put_zeroes(offset, page_bytes);
    }
    const int error = write_all(fd(), bytes, page_bytes, offset);
    return error == 0 ? Result<void>{} : fail_at(error, offset);
}

Result<void> CopiedFile::write_late()
{
    for (const Late& late : late_) {
        if (const int error = write_all(fd(), late_bytes_.get() + late.place, late.size, late.offset); error != 0) {
            return fail_at(error, late.offset);
        }
    }
    late_.clear();
    return {};
}

Result<void> CopiedFile::sync() { return fdatasync(fd()) == 0 ? Result<void>{} : fail_at(errno, 0); }

Result<void> CopiedFile::finish()
{
    if (auto done = sync(); !done) {  // All the rest, before the file looks like a pool.
        return done;
    }
    if (const int error = write_all(fd(), head_.get(), head_bytes_, 0); error != 0) {
        return fail_at(error, 0);
    }
    return sync();
}

Result<void> CopiedFile::remove_mark()
{
    if (const int error = set_length(fd(), size_bytes_); error != 0) {
        return fail_at(error, size_bytes_);
    }
    return fsync(fd()) == 0 ? Result<void>{} : fail_at(errno, 0);
}

Result<void> CopiedFile::take_room()
{
    const os::FileSizeSignalHeld held;
    if (fallocate(fd(), 0, 0, static_cast<off_t>(size_bytes_)) == 0 || errno == EOPNOTSUPP || errno == ENOSYS) {
        return {};
    }
    const int error = errno;
    return fail(code_of_errno(error), error, "no space for the {} bytes of {}: {}; {}", size_bytes_, path_, describe_errno(error),
                advice_for_errno(error));
}

}  // namespace stillpoint
