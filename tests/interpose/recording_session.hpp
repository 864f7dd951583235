#pragma once
// Stands in for the session: records what the shims ask of it.

#include <atomic>
#include <cstddef>

namespace recording {

extern std::atomic<int> ends;
extern std::atomic<int> forks_in_parent;
extern std::atomic<int> forks_in_child;
extern std::atomic<int> threads_ended;
extern std::atomic<void*> prepared_address;
extern std::atomic<std::size_t> prepared_bytes;
/// The memory that a call has stored into, as far as the shim can know.
extern std::atomic<void*> noted_address;
extern std::atomic<std::size_t> noted_bytes;
/// Whether exec finds a session to end.
extern std::atomic<bool> open;

}  // namespace recording
