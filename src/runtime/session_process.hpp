#pragma once
// Programs whose threads are processes: the session, with the engine's own threads, lives in a process of its own, the supervisor, and
// calls that need it are made there. An engine that divides programs installs what follows; elsewhere all of it costs one load.

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>

namespace stillpoint::session_process {

/// A function of libc that threads of such a program call another way: its name, and what to call.
struct ReplacedCall {
    const char* name;
    void* function;
};

struct Calls {
    /// Makes `function(bytes)` run in the supervisor, on a copy of the bytes, which comes back. Its sp_last_error and errno come back, too.
    void (*run)(void (*function)(void* bytes), void* bytes, std::size_t size) noexcept;
    /// The calling thread ends the program: by exit, a return from main, or _exit.
    void (*program_ends)() noexcept;
};

/// nullptr: the session is in this process, or there is none.
[[gnu::visibility("hidden")]] extern constinit std::atomic<const Calls*> elsewhere;

[[nodiscard]] inline bool is_elsewhere() noexcept { return elsewhere.load(std::memory_order_relaxed) != nullptr; }

/// The interposer gives this: it puts the replaced calls into force. Before threads run.
void set_replacer(void (*replace)(std::span<const ReplacedCall> calls) noexcept) noexcept;
/// From here on calls of this process go to the supervisor, and those of libc where `replaced` says.
void set_elsewhere(const Calls& calls, std::initializer_list<std::span<const ReplacedCall>> replaced) noexcept;

/// A pool that is opened now may divide the program: main has not begun.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> may_divide;

/// The result of `call`, made in the supervisor. It holds values, no references, and addresses of durable memory only.
template <class Call>
[[gnu::cold, gnu::noinline]] auto there(Call call) noexcept
{
    using Value = decltype(call());
    struct Bytes {
        Call call;
        Value value;
    } bytes{call, {}};
    static_assert(std::is_trivially_copyable_v<Bytes>);
    elsewhere.load(std::memory_order_relaxed)
        ->run(
            [](void* place) {
                auto& copy = *static_cast<Bytes*>(place);
                copy.value = copy.call();
            },
            &bytes, sizeof bytes);
    return bytes.value;
}

/// A text for such a call; one that is longer is too long for what it names, and stays so.
class PassedText {
public:
    explicit PassedText(const char* text) noexcept : is_given_(text != nullptr)
    {
        for (std::size_t i = 0; is_given_ && i + 1 < sizeof bytes_ && text[i] != '\0'; ++i) {
            bytes_[i] = text[i];
        }
    }
    [[nodiscard]] const char* get() const noexcept { return is_given_ ? bytes_ : nullptr; }

private:
    char bytes_[128] = {};
    bool is_given_;
};

}  // namespace stillpoint::session_process
