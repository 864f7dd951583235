#pragma once
// A value as people read it: a field on each line, what lies in it below, indented.

#include <span>

#include "value_tree.hpp"

namespace stillpoint::tool {

/// The parts of a root, one level in.
void print_value(const ValueNode& value);
/// Bytes without a type, 16 a row, with the words among them that lead into the pool.
void print_rows(const PoolImage& image, std::uint64_t address, std::span<const std::byte> bytes);

}  // namespace stillpoint::tool
