#pragma once
// Containers that survive: each is got with pronto::get_object<durable::map<...>>(name), and its changes are durable on return.
// docs/guide/pronto.md is the guide; each is written as one of yours would be.

#include "stillpoint/durable/map.hpp"
#include "stillpoint/durable/priority_queue.hpp"
#include "stillpoint/durable/string_map.hpp"
#include "stillpoint/durable/unordered_map.hpp"
#include "stillpoint/durable/vector.hpp"
