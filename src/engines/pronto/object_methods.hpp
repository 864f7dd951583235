#pragma once
// Methods keep their identity by name: the pool's table of them is held against the program's.

#include <span>

#include "core/result.hpp"
#include "engines/pronto/live_object.hpp"
#include "engines/pronto/log_scan.hpp"

namespace stillpoint::pronto {

/// The object's table in the image.
[[nodiscard]] std::span<const MethodRecord> method_table(const ObjectRecord& record) noexcept;

/// Fills object.pool_methods and program_methods. Methods that the table lacks get the numbers after it; returns whether there are any,
/// or signatures that were taken over. `logged`: what is still to be run again.
/// Errors: object_type: size or name of the type; a method whose signature was changed, without `accept_changed`; one that `logged` has
///   and the program has not, or has with another signature.
[[nodiscard]] Result<bool> match_methods(LiveObject& object, std::span<const LoggedOperation> logged, bool accept_changed);

/// The program's methods in a table, added to the pool's or in their place. `table` has room for all.
void fill_method_table(const LiveObject& object, std::span<MethodRecord> table) noexcept;
/// Entries that fill_method_table() fills.
[[nodiscard]] std::size_t method_table_size(const LiveObject& object) noexcept;

}  // namespace stillpoint::pronto
