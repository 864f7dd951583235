#pragma once
// The types of objects that this program has made known (sp_pronto_register).

#include <string_view>

#include "core/result.hpp"
#include "stillpoint/pronto.h"

namespace stillpoint::pronto {

/// Any thread, also before main and without a pool. Errors: invalid_argument, no_memory.
[[nodiscard]] Result<void> register_type(const sp_pronto_type& type);

/// nullptr: no type of that name is known.
[[nodiscard]] const sp_pronto_type* find_type(std::string_view name) noexcept;

}  // namespace stillpoint::pronto
