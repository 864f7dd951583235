// Facilities of the CPU and the kernel, for `doctor`: asked of the very code that a run uses.

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "arch/native.hpp"
#include "doctor_facts.hpp"
#include "os/io_ring.hpp"
#include "os/persistent_caches.hpp"
#include "os/userfaultfd.hpp"

namespace stillpoint::tool {

CpuFacts probe_cpu() { return {std::string(arch::Native::detect().write_back_name()), os::caches_are_persistent()}; }

KernelFacts probe_kernel()
{
    KernelFacts facts;
    utsname names{};
    if (uname(&names) == 0) {
        facts.release = names.release;
    }
    const auto userfaultfd = os::Userfaultfd::open();
    facts.async_protection = userfaultfd.has_value();
    if (userfaultfd) {
        facts.serves_system_calls = userfaultfd->scope() == os::Userfaultfd::Scope::user_and_kernel;
    } else {
        facts.tracker_obstacle = userfaultfd.error().text();
    }
    const auto scanner = os::PagemapScanner::open();
    facts.pagemap_scan = scanner.has_value();
    if (!scanner && facts.tracker_obstacle.empty()) {
        facts.tracker_obstacle = scanner.error().text();
    }
    const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    facts.membarrier = commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
    if (os::IoRing::open(4, facts.io_uring_errno)) {
        facts.io_uring_errno = 0;
    }
    return facts;
}

}  // namespace stillpoint::tool
