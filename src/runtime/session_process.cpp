#include "runtime/session_process.hpp"

namespace stillpoint::session_process {

constinit std::atomic<const Calls*> elsewhere{nullptr};
constinit std::atomic<bool> may_divide{false};

namespace {
constinit std::atomic<void (*)(std::span<const ReplacedCall>) noexcept> replacer{nullptr};
}  // namespace

void set_replacer(void (*replace)(std::span<const ReplacedCall> calls) noexcept) noexcept
{
    replacer.store(replace, std::memory_order_release);
}

void set_elsewhere(const Calls& calls, std::initializer_list<std::span<const ReplacedCall>> replaced) noexcept
{
    if (const auto replace = replacer.load(std::memory_order_acquire); replace != nullptr) {
        for (const std::span<const ReplacedCall> list : replaced) {
            replace(list);
        }
    }
    elsewhere.store(&calls, std::memory_order_release);
}

}  // namespace stillpoint::session_process
