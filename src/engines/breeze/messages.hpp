#pragma once
// Places in the program's code, for messages.

#include "engines/breeze/transaction.hpp"

namespace stillpoint::breeze {

struct PlaceText {
    char text[256];
};

/// "list.c:12", or the function and module that the instruction belongs to. No malloc.
[[nodiscard]] PlaceText describe(const CodePlace& place) noexcept;

}  // namespace stillpoint::breeze
