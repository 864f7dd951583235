#include "runtime/program_fit.hpp"

#include <atomic>

#include "core/sanitizers.hpp"
#include "core/units.hpp"

// Functions that the sanitizers' own libraries define; found at load where the program has one.
extern "C" {
[[gnu::weak]] void __tsan_init();
[[gnu::weak]] void __msan_init();
}

namespace stillpoint {

namespace {

std::atomic<bool> locks_are_unseen{false};

}  // namespace

void note_locks_are_unseen() noexcept { locks_are_unseen.store(true, std::memory_order_relaxed); }

Result<void> check_program_fits()
{
    if (locks_are_unseen.load(std::memory_order_relaxed)) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "libstillpoint.so was loaded after the C library, by dlopen or for another library, so the program's locks "
                    "are not seen. Start the program with `stillpoint run`, or link the program itself with -lstillpoint "
                    "(-Wl,--no-as-needed -lstillpoint)");
    }
    if (!thread_sanitizer && &__tsan_init != nullptr) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "this program runs under ThreadSanitizer, which does not allow the addresses of durable memory, {:#x} to "
                    "{:#x}. It has the same races without a pool: run it volatile, with no --pool and no "
                    "sp_open; or, with a pool, compile it without the sanitizer",
                    window_base, window_base + window_bytes);
    }
    if (&__msan_init != nullptr) {
        return fail(
            SP_E_UNSUPPORTED, 0,
            "this program runs under MemorySanitizer, which reports everything that this library writes as uninitialised, since the "
            "library was built without it. Run it volatile (no --pool, no sp_open), or with a pool under valgrind, "
            "compiled without the sanitizer");
    }
    return {};
}

}  // namespace stillpoint
