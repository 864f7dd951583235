#include "media/open.hpp"

#include "media/file_medium.hpp"
#include "media/pool_file.hpp"
#include "os/file_lock.hpp"

namespace stillpoint {

namespace {

Result<std::unique_ptr<Medium>> medium_over(PoolFile file, const MediumOptions& options)
{
    return std::make_unique<FileMedium>(std::move(file), options);
}

}  // namespace

Result<std::unique_ptr<Medium>> create_medium(const MediumOptions& options, std::uint64_t size)
{
    auto file = PoolFile::create(options, size);
    if (!file) {
        return pass_on(file.error());
    }
    return medium_over(std::move(*file), options);
}

Result<std::unique_ptr<Medium>> open_medium(const MediumOptions& options)
{
    auto file = PoolFile::open(options, PoolFile::Access::write);
    if (!file) {
        return pass_on(file.error());
    }
    return medium_over(std::move(*file), options);
}

Result<std::unique_ptr<Medium>> open_medium_read_only(const MediumOptions& options, bool lock)
{
    auto file = PoolFile::open(
        options, lock ? PoolFile::Access::read_locked : PoolFile::Access::read_unlocked);
    if (!file) {
        return pass_on(file.error());
    }
    return medium_over(std::move(*file), options);
}

int lock_holder_pid(const std::string& path) { return os::exclusive_lock_holder(path); }

}  // namespace stillpoint
