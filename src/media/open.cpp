#include "media/open.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "media/dax_medium.hpp"
#include "media/errno_text.hpp"
#include "media/file_medium.hpp"
#include "media/file_names.hpp"
#include "media/memory_medium.hpp"
#include "media/pool_file.hpp"
#include "media/rados/rados_medium.hpp"
#include "media/rados/rados_name.hpp"
#include "media/replica/page_transfer.hpp"
#include "os/file_lock.hpp"
#include "os/file_mapping.hpp"

namespace stillpoint {

namespace {

MediumOpener* the_opener = nullptr;
EndHandler end_handler = nullptr;
std::atomic<bool> is_ending{false};

std::string folder_of(const std::string& path)
{
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

MediumKind best_kind(const PoolFile& file) noexcept
{
    if (file.lives_in_memory()) {
        // Stores reach such a file's only copy; write calls would copy each page once more.
        return MediumKind::memory;
    }
    const bool can_be_probed = file.size_bytes() >= page_bytes;
    return can_be_probed && os::FileMapping::grants_direct(file.fd()) ? MediumKind::dax : MediumKind::file;
}

Result<std::unique_ptr<Medium>> medium_over(PoolFile file, const MediumOptions& options)
{
    switch (options.kind.has_value() ? *options.kind : best_kind(file)) {
    case MediumKind::dax: return DaxMedium::open(std::move(file), options);
    case MediumKind::memory: return MemoryMedium::open(std::move(file), options);
    case MediumKind::file: break;
    }
    return std::make_unique<FileMedium>(std::move(file), options);
}

std::uint64_t inode_of(const std::string& path) noexcept
{
    struct stat facts{};
    return stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

}  // namespace

Result<void> MediumOpener::replace(const std::string& first_name, const std::string& path) { return replace_by(first_name, path); }

std::uint64_t MediumOpener::file_number(const std::string& path) { return inode_of(path); }

Result<void> replace_pool(const std::string& first_name, const std::string& path)
{
    return the_opener != nullptr ? the_opener->replace(first_name, path) : replace_by(first_name, path);
}

std::uint64_t file_number_of(const std::string& path) noexcept
{
    return the_opener != nullptr ? the_opener->file_number(path) : inode_of(path);
}

void set_medium_opener(MediumOpener* opener) noexcept { the_opener = opener; }

Result<std::unique_ptr<Medium>> create_medium(const MediumOptions& options, std::uint64_t size)
{
    if (the_opener != nullptr) {
        return the_opener->create(options, size);
    }
    if (is_rados_name(options.path)) {
        return RadosMedium::open(options, rados::Mode::create, size);
    }
    auto file = PoolFile::create(options, size);
    if (!file) {
        return pass_on(file.error());
    }
    const bool named = file->named();
    auto medium = medium_over(std::move(*file), options);
    if (!medium && named) {
        unlink(options.path.c_str());  // Still unformatted: it cannot have been used.
    }
    return medium;
}

bool lies_in_no_file(std::string_view path) noexcept { return is_rados_name(path); }

void set_end_handler(EndHandler handler) noexcept { end_handler = handler; }

void tell_to_end(const Failure& failure) noexcept
{
    if (end_handler != nullptr) {
        end_handler(failure);
    }
}

void note_program_ends() noexcept { is_ending.store(true, std::memory_order_release); }

bool program_ends() noexcept { return is_ending.load(std::memory_order_acquire); }

bool lies_in_memory(const std::string& path)
{
    if (lies_in_no_file(path)) {
        return false;
    }
    struct statfs system{};
    if (statfs(path.c_str(), &system) != 0 && statfs(folder_of(path).c_str(), &system) != 0) {
        return false;
    }
    return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}

Result<void> check_creation(const MediumOptions& options)
{
    if (lies_in_no_file(options.path)) {
        return {};  // That the cluster answers was seen when the pool was looked for.
    }
    const std::string folder = folder_of(options.path);
    if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) {
        return {};
    }
    const int error = errno;
    const sp_error code = code_of_errno(error);
    return fail(code, error, "cannot create {}: {}; {}", options.path, describe_errno(error), advice_for(code));
}

Result<std::unique_ptr<Medium>> open_medium(const MediumOptions& options)
{
    if (the_opener != nullptr) {
        return the_opener->open(options);
    }
    if (is_rados_name(options.path)) {
        auto medium = RadosMedium::open(options, rados::Mode::write);
        if (medium) {
            if (auto finished = finish_transfer(**medium); !finished) {
                return pass_on(finished.error());
            }
        }
        return medium;
    }
    auto file = PoolFile::open(options, PoolFile::Access::write);
    if (!file) {
        return pass_on(file.error());
    }
    return medium_over(std::move(*file), options);
}

Result<std::unique_ptr<Medium>> open_medium_read_only(const MediumOptions& options, bool lock)
{
    if (is_rados_name(options.path)) {
        auto medium = RadosMedium::open(options, lock ? rados::Mode::read_locked : rados::Mode::read);
        return medium ? with_transfer_finished(std::move(*medium)) : std::move(medium);
    }
    auto file = PoolFile::open(options, lock ? PoolFile::Access::read_locked : PoolFile::Access::read_unlocked);
    if (!file) {
        return pass_on(file.error());
    }
    return medium_over(std::move(*file), options);
}

int lock_holder_pid(const std::string& path)
{
    return is_rados_name(path) ? RadosMedium::owner_process(path) : os::exclusive_lock_holder(path);
}

}  // namespace stillpoint
