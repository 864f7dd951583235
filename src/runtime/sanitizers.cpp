#include "runtime/sanitizers.hpp"

#include "core/sanitizers.hpp"
#include "core/units.hpp"

// What the sanitizers' own libraries define; found at load where the program has one.
extern "C" {
[[gnu::weak]] void __tsan_init();
[[gnu::weak]] void __msan_init();
}

namespace stillpoint {

Result<void> check_sanitizers()
{
    if (!thread_sanitizer && &__tsan_init != nullptr) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "this program runs under ThreadSanitizer, which does not allow the addresses of durable memory, {:#x} to "
                    "{:#x}. Build both it and Stillpoint under Clang's, 18 or newer (cmake --preset tsan), and use that build's "
                    "library and `stillpoint run`; or look for races with valgrind --tool=helgrind",
                    window_base, window_base + window_bytes);
    }
    if (&__msan_init != nullptr) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "this program runs under MemorySanitizer, which takes all that this library writes for uninitialised, since the "
                    "library was built without it. Build the program without it, and run it under valgrind");
    }
    return {};
}

}  // namespace stillpoint
