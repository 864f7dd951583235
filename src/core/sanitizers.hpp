#pragma once
// Whether this build is instrumented: for what a sanitizer replaces, or calls before instrumented code can run.

#if defined(__SANITIZE_THREAD__)
#define STILLPOINT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STILLPOINT_THREAD_SANITIZER 1
#endif
#endif
#if !defined(STILLPOINT_THREAD_SANITIZER)
#define STILLPOINT_THREAD_SANITIZER 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define STILLPOINT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STILLPOINT_ADDRESS_SANITIZER 1
#endif
#endif
#if !defined(STILLPOINT_ADDRESS_SANITIZER)
#define STILLPOINT_ADDRESS_SANITIZER 0
#endif

namespace stillpoint {

inline constexpr bool thread_sanitizer = STILLPOINT_THREAD_SANITIZER != 0;

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
