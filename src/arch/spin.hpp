#pragma once
// A pause between two looks at a word that another thread will soon store.

namespace stillpoint::arch {

/// Lets the other thread of a core, and the memory system, go on: some ten to fifty cycles.
[[gnu::always_inline]] inline void spin_pause() noexcept
{
#if defined(__x86_64__)
    asm volatile("pause");
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
}

}  // namespace stillpoint::arch
