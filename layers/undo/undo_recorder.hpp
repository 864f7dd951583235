#pragma once
// The machine of the crash test: it does nothing but tell. undo_crash_test.cpp keeps the model of what a crash may leave.

#include <cstddef>
#include <string_view>

#include "arch/arch.hpp"

namespace stillpoint::undo {

/// Set by the test: which canary is out, and what is told of write backs and fences.
inline Canary removed_canary = Canary::none;

class Listener {
public:
    virtual void wrote_back(const void* line) = 0;
    virtual void fenced() = 0;

protected:
    ~Listener() = default;
};
inline Listener* listener = nullptr;

struct Recorder {
    static constexpr std::size_t line_bytes = 64;
    void write_back(const void* line) const noexcept
    {
        if (listener != nullptr) {
            listener->wrote_back(line);
        }
    }
    void fence() const noexcept
    {
        if (listener != nullptr) {
            listener->fenced();
        }
    }
    void copy_nontemporal(void*, const void*, std::size_t) const noexcept {}
    [[nodiscard]] std::string_view write_back_name() const noexcept { return "recorded"; }
};
static_assert(arch::Arch<const Recorder>);

inline const Recorder machine;
inline bool removed(Canary canary) noexcept { return removed_canary == canary; }

}  // namespace stillpoint::undo
