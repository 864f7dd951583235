#include "runtime/dying_memory.hpp"

namespace stillpoint {

constinit std::atomic<MemoryDiesHook> memory_dies_hook{nullptr};

}  // namespace stillpoint
