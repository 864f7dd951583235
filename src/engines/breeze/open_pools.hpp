#pragma once
// The pools that this process has open, and the calling thread's transaction.

#include <cstdint>
#include <string>

#include "core/result.hpp"
#include "engines/breeze/breeze_pool.hpp"
#include "stillpoint/breeze.h"

namespace stillpoint::breeze {

struct OwnTransaction {
    BreezePool* pool = nullptr;
    Transaction* transaction = nullptr;  ///< nullptr: there is none
    unsigned depth = 0;
};
[[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]] extern constinit thread_local OwnTransaction own_transaction;

/// The pool that the address lies in, or nullptr.
[[nodiscard]] BreezePool* pool_at(const void* address) noexcept;
/// The pool of the program's pointer. Errors: not_open, detached.
[[nodiscard]] Result<BreezePool*> open_pool(const NVM_POOL* pool) noexcept;

/// Work of nvm_pool_create and nvm_pool_open. Errors: theirs.
[[nodiscard]] Result<BreezePool*> create_pool(const std::string& path, std::uint64_t size_bytes, const nvm_options* options);
[[nodiscard]] Result<BreezePool*> open_pool_file(const std::string& path, const nvm_options* options);
/// Work of nvm_pool_obtain: a file whose creation was cut off by a crash is made a pool. Errors: those of both.
[[nodiscard]] Result<BreezePool*> obtain_pool(const std::string& path, std::uint64_t size_bytes);
/// Errors: inside_fase, io.
[[nodiscard]] Result<void> close_pool(BreezePool& pool);

}  // namespace stillpoint::breeze
