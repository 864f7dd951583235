#pragma once
// Whether this build is instrumented: for tests of what a sanitizer replaces.

namespace stillpoint {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif
#else
inline constexpr bool thread_sanitizer = false;
#endif

}  // namespace stillpoint

/// For a function that races on purpose, with the reason beside it.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STILLPOINT_NO_THREAD_SANITIZER __attribute__((no_sanitize("thread")))
#endif
#endif
#if !defined(STILLPOINT_NO_THREAD_SANITIZER)
#define STILLPOINT_NO_THREAD_SANITIZER
#endif
