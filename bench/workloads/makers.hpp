#pragma once
// Declares the maker of each workload; made from workloads.inc.

#include "../worker/workload.hpp"

namespace bench {

#define KEY_VALUE(name, ...) Work make_##name(const Shape& shape);
#define QUEUE(name, ...) Work make_##name(const Shape& shape);
#define MEMORY(name, ...) Work make_##name(const Shape& shape);
#define BATCHED(name, ...) Work make_##name(const Shape& shape);
#define IN_PLACE(name, ...) Work make_##name(const Shape& shape);
#define IN_PLACE_KEY_VALUE(name, ...) Work make_##name(const Shape& shape);
#define CONTAINER(name, ...) Work make_##name(const Shape& shape);
#define TRANSACTIONAL(name, ...) Work make_##name(const Shape& shape);
#include "workloads.inc"
#undef KEY_VALUE
#undef QUEUE
#undef MEMORY
#undef BATCHED
#undef IN_PLACE
#undef IN_PLACE_KEY_VALUE
#undef CONTAINER
#undef TRANSACTIONAL

}  // namespace bench
