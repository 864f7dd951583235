#pragma once
// The bytes that nvthreads keeps in a pool file: those of every engine of redo logs (logs/log_area_layout.hpp). Runs whose threads make
// their own records durable move the marker; others write group records, on every medium.

#include <cstdint>

namespace stillpoint::nvthreads {

inline constexpr std::uint32_t layout_version = 3;
inline constexpr std::uint32_t layout_version_of_short_logs = 2;  ///< the first segment's log is as long as the others'

}  // namespace stillpoint::nvthreads
