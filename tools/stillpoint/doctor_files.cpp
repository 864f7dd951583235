// Facilities of a folder's file system, for `doctor`: tried out on a file without a name.

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/units.hpp"
#include "doctor_facts.hpp"
#include "output.hpp"
#include "media/open.hpp"
#include "os/descriptor.hpp"
#include "os/file_size_limit.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::uint64_t probe_bytes = 64 * kib;

/// A line of /proc/self/mountinfo.
struct Mount {
    std::string mount_point, options, type, source, super_options;
};

/// The mount point's octal escapes (a space is "\040") undone.
std::string unescaped(const std::string& text)
{
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\\' && at + 3 < text.size()) {
            out += static_cast<char>(std::stoi(text.substr(at + 1, 3), nullptr, 8));
            at += 3;
        } else {
            out += text[at];
        }
    }
    return out;
}

/// The mount that holds `device`, with the longest mount point that `folder` begins with.
Mount find_mount(const std::string& folder, dev_t device)
{
    std::ifstream table("/proc/self/mountinfo");
    const std::string wanted = text_of("{}:{}", major(device), minor(device));
    Mount best;
    for (std::string line; std::getline(table, line);) {
        std::istringstream words(line);
        std::string id, parent, number, root, word;
        Mount mount;
        words >> id >> parent >> number >> root >> mount.mount_point >> mount.options;
        while (words >> word && word != "-") {
        }
        words >> mount.type >> mount.source >> mount.super_options;
        mount.mount_point = unescaped(mount.mount_point);
        // btrfs and overlays show another device number in stat than here: the path then decides.
        const bool contains = folder.starts_with(mount.mount_point);
        const bool better = mount.mount_point.size() >= best.mount_point.size();
        if (contains && better && (number == wanted || best.type.empty() || mount.type == "btrfs" || mount.type == "overlay")) {
            best = mount;
        }
    }
    return best;
}

bool one_of(const std::string& word, std::initializer_list<const char*> words)
{
    for (const char* candidate : words) {
        if (word == candidate) {
            return true;
        }
    }
    return false;
}

/// The mount option, if any, by which a sync does not reach the disk.
std::string option_that_disables_sync(const Mount& mount)
{
    std::istringstream words(mount.options + "," + mount.super_options);
    for (std::string option; std::getline(words, option, ',');) {
        if (one_of(option, {"nobarrier", "barrier=0"}) || (mount.type == "overlay" && option == "volatile")) {
            return option;
        }
    }
    return {};
}

/// The folder of /sys that has the device's queue; a partition's is its disk's. Empty: no block device.
std::filesystem::path device_folder(dev_t device, const Mount& mount)
{
    std::error_code error;
    auto folder = std::filesystem::canonical(text_of("/sys/dev/block/{}:{}", major(device), minor(device)), error);
    if (error && mount.source.starts_with("/dev/")) {
        folder = std::filesystem::canonical("/sys/class/block/" + std::filesystem::path(mount.source).filename().string(), error);
    }
    if (error) {
        return {};
    }
    return std::filesystem::exists(folder / "queue", error) ? folder : folder.parent_path();
}

void look_at_device(FileSystemFacts& facts, dev_t device, const Mount& mount)
{
    const auto folder = device_folder(device, mount);
    std::ifstream cache(folder / "queue/write_cache");
    std::string words;
    if (folder.empty() || !std::getline(cache, words)) {
        return;
    }
    facts.device = folder.filename().string();
    facts.volatile_write_cache = words.starts_with("write back");
    if (facts.device.starts_with("zram") || facts.device.starts_with("ram")) {
        facts.in_memory = true;
    }
}

void try_mapping(FileSystemFacts& facts, int fd)
{
    void* mapping = mmap(nullptr, probe_bytes, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
    facts.map_sync = mapping != MAP_FAILED;
    if (mapping != MAP_FAILED) {
        munmap(mapping, probe_bytes);
    }
}

/// One O_DIRECT write of a page, through a second descriptor of the same nameless file.
void try_direct(FileSystemFacts& facts, int fd)
{
    const os::Descriptor direct(open(text_of("/proc/self/fd/{}", fd).c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    alignas(page_bytes) static const std::byte page[page_bytes] = {};
    facts.direct = direct.valid() && pwrite(direct.get(), page, sizeof page, 0) == static_cast<ssize_t>(sizeof page);
}

/// A file without a name where there is such a thing, otherwise one whose name is removed at once.
os::Descriptor create_probe_file(const std::string& folder)
{
    os::Descriptor file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!file.valid() && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        std::string name = folder + "/.stillpoint-doctor-XXXXXX";
        file = os::Descriptor(mkostemp(name.data(), O_CLOEXEC));
        if (file.valid()) {
            unlink(name.c_str());
        }
    }
    return file;
}

void try_files(FileSystemFacts& facts)
{
    const os::FileSizeSignalHeld held;
    const os::Descriptor file = create_probe_file(facts.folder);
    if (!file.valid()) {
        facts.create_errno = errno;
        return;
    }
    facts.locks = flock(file.get(), LOCK_EX | LOCK_NB) == 0;
    facts.allocates = fallocate(file.get(), 0, 0, static_cast<off_t>(probe_bytes)) == 0;
    if (!*facts.allocates && ftruncate(file.get(), static_cast<off_t>(probe_bytes)) != 0) {
        facts.create_errno = errno;
        return;
    }
    try_direct(facts, file.get());
    try_mapping(facts, file.get());
}

}  // namespace

Result<FileSystemFacts> probe_file_system(const std::string& path)
{
    std::error_code error;
    auto resolved = std::filesystem::canonical(path, error);
    if (error) {
        const sp_error code = error.value() == EACCES ? SP_E_POOL_READ_ONLY : SP_E_POOL_MISSING;
        return fail(code, error.value(), "{}: {}; name a folder that exists, or a pool", path, error.message());
    }
    if (!std::filesystem::is_directory(resolved, error)) {
        resolved = resolved.parent_path();
    }
    FileSystemFacts facts;
    facts.folder = resolved.string();
    struct stat status{};
    struct statvfs space{};
    if (stat(facts.folder.c_str(), &status) != 0 || statvfs(facts.folder.c_str(), &space) != 0) {
        return fail(errno == EACCES ? SP_E_POOL_READ_ONLY : SP_E_IO, errno, "{}: {}", facts.folder, std::strerror(errno));
    }
    const Mount mount = find_mount(facts.folder, status.st_dev);
    facts.type = mount.type;
    facts.in_memory = lies_in_memory(facts.folder) || mount.type == "hugetlbfs";
    facts.network = mount.type.starts_with("nfs") || mount.type.starts_with("fuse") ||
                    one_of(mount.type, {"cifs", "smb3", "9p", "virtiofs", "ceph", "afs"});
    facts.sync_disabled_option = option_that_disables_sync(mount);
    facts.sync_disabled = !facts.sync_disabled_option.empty();
    facts.read_only = (space.f_flag & ST_RDONLY) != 0;
    facts.free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
    look_at_device(facts, status.st_dev, mount);
    try_files(facts);
    return facts;
}

}  // namespace stillpoint::tool
