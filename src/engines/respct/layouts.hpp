#pragma once
// The program's layouts (sp_respct_layout), as the heap knows them.

#include "heap/heap.hpp"
#include "stillpoint/respct.h"

namespace stillpoint::respct {

/// As Heap::find_layout().
[[nodiscard]] Result<std::uint16_t> find_layout(Heap& heap, const sp_respct_layout& layout) noexcept;

}  // namespace stillpoint::respct
