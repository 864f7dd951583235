// Calls of the C API that open or make, by the others (stillpoint/breeze.h).

#include <new>

#include "engines/breeze/open_pools.hpp"
#include "runtime/api_export.hpp"
#include "runtime/session_state.hpp"
#include "stillpoint/breeze.h"

using stillpoint::fail;
using stillpoint::report;

namespace breeze = stillpoint::breeze;

STILLPOINT_API NVM_POOL* nvm_pool_obtain(const char* path, size_t size_bytes)
{
    if (path == nullptr || *path == '\0') {
        report(fail(SP_E_INVALID_ARGUMENT, 0, "nvm_pool_obtain needs a path").value());
        return nullptr;
    }
    try {
        const auto obtained = breeze::obtain_pool(path, size_bytes);
        if (obtained) {
            return reinterpret_cast<NVM_POOL*>(*obtained);
        }
        report(obtained.error());
    } catch (const std::bad_alloc&) {
        report(fail(SP_E_NO_MEMORY, 0, "no memory to open {}", path).value());
    }
    return nullptr;
}

STILLPOINT_API void* nvm_pool_obtain_root(NVM_POOL* pool, uint32_t type, size_t size_bytes)
{
    if (void* const root = nvm_pool_root(pool); root != nullptr) {
        nvm_object_facts facts;
        if (nvm_object(pool, root, &facts) != SP_OK) {
            return nullptr;
        }
        if (facts.type == type && facts.size_bytes == size_bytes) {
            return root;
        }
        report(fail(SP_E_OBJECT_TYPE, 0, "the root is an object of type {} with {} bytes, not one of type {} with {}", facts.type,
                    facts.size_bytes, type, size_bytes)
                   .value());
        return nullptr;
    }
    if (nvm_tx_begin(pool) != SP_OK) {
        return nullptr;
    }
    void* const made = nvm_alloc(pool, type, size_bytes);
    if (made == nullptr || nvm_pool_set_root(pool, made) != SP_OK) {
        static_cast<void>(nvm_tx_abort(pool));
        return nullptr;
    }
    return nvm_tx_commit(pool) == SP_OK ? made : nullptr;
}
