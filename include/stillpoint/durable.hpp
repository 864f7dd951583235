#pragma once
// Containers that survive: each is got with pronto::get_object<durable::map<...>>(name), and its changes are durable on return.
// docs/guide/pronto.md is the guide; each is written as one of yours would be.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include "stillpoint/durable/map.hpp"
#include "stillpoint/durable/priority_queue.hpp"
#include "stillpoint/durable/queue.hpp"
#include "stillpoint/durable/sharded_string_map.hpp"
#include "stillpoint/durable/string_map.hpp"
#include "stillpoint/durable/unordered_map.hpp"
#include "stillpoint/durable/vector.hpp"

#endif
