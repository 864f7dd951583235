#pragma once
// The table of layouts: what recovery knows of the types whose objects typed spans hold.

#include "core/result.hpp"
#include "heap/span_table_view.hpp"

namespace stillpoint::heap {

/// Bytes of one member of that kind; 0: there is no such kind.
[[nodiscard]] std::size_t member_bytes(unsigned kind) noexcept;

/// The largest alignment of a member, which every object has.
[[nodiscard]] std::size_t layout_alignment(const LayoutRecord& record) noexcept;

/// Every record in use: its checksum, and that its members lie one after the other inside the stride. Errors: pool_corrupt.
[[nodiscard]] Result<void> check_layouts(const SpanTableView& table);

}  // namespace stillpoint::heap
