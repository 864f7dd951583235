#pragma once
// Named objects, for the functions of the C API that make them.

#include <cstddef>
#include <string_view>

#include "core/result.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint {

/// Whether `handle` may name an object. Errors: invalid_argument (nullptr, or a length that no name has).
[[nodiscard]] Result<void> check_handle(const char* handle);
/// The object of that name, or a new one that `make` gives, inside a FASE and under the directory's lock, zeroed. nullptr with errno and
/// sp_last_error(): a bad handle, another size, no memory, what `make` says.
[[nodiscard]] void* named_object_of(const char* handle, std::size_t size_bytes, Result<void*> (*make)(void* context, Session& session),
                                    void* context);
/// A named object made as sp_calloc does; without a pool, ordinary memory of that alignment.
[[nodiscard]] void* named_object(const char* handle, std::size_t size_bytes, std::size_t alignment_bytes);

/// The directory comes from the pool file: an entry is believed only if it names a live block, as `stillpoint check` wants it.
[[nodiscard]] bool is_live_block(const Session& session, const DirectoryEntry& entry) noexcept;
/// The error for one that is not. Always a failure.
[[nodiscard]] tl::unexpected<Failure> no_live_block(std::string_view handle);

// -- Names, under the directory's lock and inside a FASE --
/// As Directory::insert, replace and erase.
[[nodiscard]] Result<void> insert_name(Session& session, std::string_view handle, const void* block, std::size_t size_bytes);
[[nodiscard]] Result<void> move_name(Session& session, const DirectoryEntry& old, const void* block, std::size_t size_bytes);
[[nodiscard]] Result<void> erase_name(Session& session, const DirectoryEntry& entry);

// -- Blocks that are freed or moved; inside a FASE, and these take the directory's lock --
/// False: the block has no name. Costs one load, nearly always.
[[nodiscard]] inline bool may_have_name(const Session& session, const void* block) noexcept
{
    return session.named.may_have_name(reinterpret_cast<std::uintptr_t>(block));
}
/// Frees a block that may have names, which go with it.
void free_with_names(Session& session, void* block) noexcept;
/// Does what Heap::reallocate does, for a block that may have a name: it goes with the block, and has the new size.
[[nodiscard]] void* reallocate_named(Session& session, void* block, std::size_t size_bytes, Heap::AboutToDie about_to_die) noexcept;

}  // namespace stillpoint
