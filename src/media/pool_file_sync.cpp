// When a pool file's bytes, size and name are durable.

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

#include "core/canary.hpp"
#include "media/errno_text.hpp"
#include "media/pool_file.hpp"
#include "media/observer.hpp"

namespace stillpoint {

namespace {

/// The directory that has the file's entry: of the file itself, where `path` is a symbolic link.
std::string directory_of(const std::string& path)
{
    std::string name = path;
    if (char* const real = realpath(path.c_str(), nullptr); real != nullptr) {
        name = real;
        std::free(real);  // NOLINT: realpath's contract
    }
    const std::size_t slash = name.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : name.substr(0, slash);
}

}  // namespace

void PoolFile::open_directory()
{
    metadata_is_durable_ = false;
    directory_ = os::Descriptor{::open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
}

int PoolFile::sync_name() noexcept
{
    if (is_removed(Canary::directory_sync)) {
        return 0;
    }
    faults_.persist();
    // Without the right to read the directory there is no descriptor to sync it by; syncfs takes everything
    // on that file system along, which is slow.
    const int result = directory_.valid() ? fsync(directory_.get()) : syncfs(fd());
    if (result != 0) {
        return errno;
    }
    observe(MediumEvent::name_sync);
    return 0;
}

Result<bool> PoolFile::sync()
{
    if (auto allowed = check_writable(); !allowed) {
        return pass_on(allowed.error());
    }
    faults_.persist();
    if (durability_ == Durability::process) {
        return false;
    }
    if (!metadata_is_durable_) {
        if (auto synced = sync_metadata(); !synced) {
            return pass_on(synced.error());
        }
        return true;
    }
    int error = faults_.next(FaultPoint::sync).error;
    if (error == 0) {
        error = is_removed(Canary::file_sync) || fdatasync(fd()) == 0 ? 0 : errno;
    }
    if (error != 0) {
        return fail_sync(error);
    }
    if (!is_removed(Canary::file_sync)) {
        observe(MediumEvent::sync);
    }
    faults_.persist();  // Durable, and not reported yet.
    return true;
}

Result<void> PoolFile::sync_metadata()
{
    if (auto allowed = check_writable(); !allowed) {
        return allowed;
    }
    faults_.persist();
    if (const Fault fault = faults_.next(FaultPoint::sync)) {
        return fail_sync(fault.error);
    }
    if (metadata_is_durable_ || durability_ == Durability::process) {
        return {};
    }
    int error = 0;
    if (!is_removed(Canary::first_file_sync)) {
        error = fsync(fd()) == 0 ? 0 : errno;
        if (error == 0) {
            observe(MediumEvent::sync);
        }
    }
    if (error == 0 && !unnamed_) {
        error = sync_name();
    }
    if (error != 0) {
        return fail_sync(error);
    }
    metadata_is_durable_ = !unnamed_;
    if (metadata_is_durable_) {
        directory_.reset();
    }
    return {};
}

tl::unexpected<Failure> PoolFile::fail_sync(int error) noexcept
{
    // Never tried again, not even after EINTR: the kernel may have dropped the dirty pages, and
    // then a second call would report success for data that is gone.
    observe(MediumEvent::sync_failed);
    frozen_ = !is_removed(Canary::freeze_after_failed_sync);
    const sp_error code = code_of_errno(error) == SP_E_NO_SPACE ? SP_E_NO_SPACE : SP_E_IO;
    return fail(code, error,
                "syncing {} (bytes 0 to {}) failed: {}; the pool is read-only from here on and its last "
                "durable state is intact; {}, then restart the program",
                path_, size_bytes_, describe_errno(error), advice_for(code));
}

}  // namespace stillpoint
