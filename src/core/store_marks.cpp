#include "core/store_marks.hpp"

namespace stillpoint::store_marks {

constinit std::atomic<bool> wanted{false};

}  // namespace stillpoint::store_marks
