// The hooks' entry points, for code that the compiler pass instrumented with calls, and for marks by hand.
// Code with `marks: cards` has store_marks::mark() in line and comes here never.

#include "core/store_marks.hpp"
#include "lint.hpp"
#include "stillpoint/nvhooks.h"

namespace lint = stillpoint::lint;

#define HOOK extern "C" __attribute__((visibility("default")))

HOOK void sp_mark_written(const void* address, size_t size_bytes) { stillpoint::note_program_store(address, size_bytes); }

HOOK bool nvhooks_is_nvm(const void* address)
{
    return stillpoint_is_persistent(address) || (lint::is_on() && lint::is_in_durable_global(address));
}

HOOK void* nvhooks_to_absolute_ptr(uintptr_t pointer) { return reinterpret_cast<void*>(pointer); }

HOOK void nvhooks_pre_nvm_read(const void* address, size_t size_bytes)
{
    if (lint::is_on()) [[unlikely]] {
        if (const lint::Observer* const observer = lint::observer(); observer != nullptr) {
            observer->read(address, size_bytes, __builtin_return_address(0));
        }
    }
}

HOOK void nvhooks_post_nvm_read(const void* /*address*/, size_t /*size_bytes*/) {}

HOOK void nvhooks_pre_nvm_write(void* address, size_t size_bytes) { stillpoint::announce_store(address, size_bytes); }

HOOK void nvhooks_post_nvm_write(void* address, size_t size_bytes)
{
    stillpoint::note_program_store(address, size_bytes);
    if (lint::is_on()) [[unlikely]] {
        lint::note_write(address, size_bytes, __builtin_return_address(0));
    }
}

HOOK void nvhooks_pointer_stored(void* location, const void* value)
{
    if (lint::is_on()) [[unlikely]] {
        lint::note_pointer(location, value, __builtin_return_address(0));
    }
}

HOOK void nvhooks_blocking_call(const char* function, uintptr_t first_argument, uintptr_t /*second_argument*/)
{
    if (lint::is_on()) [[unlikely]] {
        if (const lint::Observer* const observer = lint::observer(); observer != nullptr) {
            observer->blocking_call(function, first_argument, __builtin_return_address(0));
        }
    }
}
