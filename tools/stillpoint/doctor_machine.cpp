// What the CPU and the kernel have, for `doctor`.

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "arch/native.hpp"
#include "core/units.hpp"
#include "doctor_facts.hpp"
#include "os/descriptor.hpp"
#include "os/io_ring.hpp"

namespace stillpoint::tool {

namespace {

// Newer than the headers of the oldest system that this builds on (Linux 6.7: WP_ASYNC, PAGEMAP_SCAN).
constexpr std::uint64_t feature_wp_unpopulated = std::uint64_t{1} << 13;
constexpr std::uint64_t feature_wp_async = std::uint64_t{1} << 15;
constexpr int user_mode_only = 1;

struct ScanArgument {
    std::uint64_t size, flags, start, end, walk_end, vector, vector_length, pages_max;
    std::uint64_t category_inverted, category_mask, category_any_of, return_mask;
};
struct ScanRegion {
    std::uint64_t start, end, categories;
};
constexpr unsigned long pagemap_scan_request = _IOWR('f', 16, ScanArgument);
constexpr std::uint64_t category_present = 1 << 3;

os::Descriptor open_userfaultfd(bool user_mode)
{
    return os::Descriptor(static_cast<int>(
        syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | (user_mode ? user_mode_only : 0))));
}

bool grants_features(const os::Descriptor& userfault, std::uint64_t features)
{
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = features;
    return ioctl(userfault.get(), UFFDIO_API, &api) == 0 && (api.features & features) == features;
}

bool scans_page_map()
{
    const os::Descriptor pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    void* page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (!pagemap.valid() || page == MAP_FAILED) {
        return false;
    }
    ScanRegion region{};
    ScanArgument argument{};
    argument.size = sizeof argument;
    argument.start = reinterpret_cast<std::uintptr_t>(page);
    argument.end = argument.start + page_bytes;
    argument.vector = reinterpret_cast<std::uintptr_t>(&region);
    argument.vector_length = 1;
    argument.category_mask = category_present;
    argument.return_mask = category_present;
    const int regions = ioctl(pagemap.get(), pagemap_scan_request, &argument);
    munmap(page, page_bytes);
    return regions == 1 && region.end - region.start == page_bytes;
}

/// What the firmware says of every region of persistent memory: "cpu_cache" where all caches are flushed
/// by the platform at a power cut.
bool all_regions_have_persistent_caches()
{
    bool any = false;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/nd/devices", error)) {
        std::ifstream file(entry.path() / "persistence_domain");
        std::string domain;
        if (file >> domain) {
            any = true;
            if (domain != "cpu_cache") {
                return false;
            }
        }
    }
    return any;
}

}  // namespace

CpuFacts probe_cpu()
{
    return {std::string(arch::Native::detect().write_back_name()), all_regions_have_persistent_caches()};
}

KernelFacts probe_kernel()
{
    KernelFacts facts;
    utsname names{};
    if (uname(&names) == 0) {
        facts.release = names.release;
    }
    os::Descriptor userfault = open_userfaultfd(false);
    facts.userfaultfd_kernel_faults = userfault.valid();
    if (!userfault.valid()) {
        userfault = open_userfaultfd(true);
    }
    facts.userfaultfd = userfault.valid();
    facts.wp_async = userfault.valid() && grants_features(userfault, feature_wp_async | feature_wp_unpopulated);
    facts.pagemap_scan = scans_page_map();
    const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    facts.membarrier = commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
    const auto ring = os::IoRing::open(4, facts.io_uring_errno);
    if (ring) {
        facts.io_uring_errno = 0;
    }
    return facts;
}

}  // namespace stillpoint::tool
