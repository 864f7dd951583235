#include "core/store_marks.hpp"

namespace stillpoint::store_marks {

constinit std::atomic<Wanted> wanted{Wanted::nothing};

}  // namespace stillpoint::store_marks
