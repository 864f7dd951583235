#pragma once
// GlobalLock: what transactions hold that run without a pool [single global lock].

namespace stillpoint::itm {

class GlobalLock {
public:
    static void acquire() noexcept;
    static void release() noexcept;
    /// By any thread.
    [[nodiscard]] static bool is_held() noexcept;
};

}  // namespace stillpoint::itm
