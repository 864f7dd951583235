#pragma once
// A value as JSON: docs/schemas/value.json.

#include <string_view>

#include "json.hpp"
#include "value_tree.hpp"

namespace stillpoint::tool {

/// As the member `key`, or, where that is empty, as an element of an array.
void add_value(Json& json, std::string_view key, const ValueNode& value);

}  // namespace stillpoint::tool
