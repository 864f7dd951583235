#include "engines/nvthreads/processes/control_area.hpp"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace stillpoint::nvthreads::processes {

Result<ControlArea*> make_control_area()
{
    void* const memory = mmap(nullptr, sizeof(ControlArea), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "no shared memory for the threads' processes: {}", std::strerror(errno));
    }
    return static_cast<ControlArea*>(memory);  // Zeroes are its first value.
}

}  // namespace stillpoint::nvthreads::processes
