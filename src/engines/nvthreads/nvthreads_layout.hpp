#pragma once
// The bytes that nvthreads keeps in a pool file: those of every engine of redo logs (logs/log_area_layout.hpp). Its logs have group
// records on every medium; the marker page says only that logs may have been written.

#include <cstdint>

namespace stillpoint::nvthreads {

inline constexpr std::uint32_t layout_version = 1;

}  // namespace stillpoint::nvthreads
