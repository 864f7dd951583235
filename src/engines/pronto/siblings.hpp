#pragma once
// Siblings: threads that make the arguments of operations durable while the operations run [Pronto §5.2.1]. The paper has one for each
// thread of the program; here one serves several threads, and is asked only where that was measured to pay (LoggingChoice).

#include <array>
#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "engines/pronto/thread_log.hpp"
#include "media/medium.hpp"
#include "os/service_thread.hpp"

namespace stillpoint::pronto {

class Siblings {
public:
    enum class Use : std::uint8_t { never, measured, always };

    Siblings() = default;
    Siblings(const Siblings&) = delete;
    Siblings& operator=(const Siblings&) = delete;
    ~Siblings() { stop(); }

    /// `medium` is byte-addressable. Threads start with the first job. On one CPU `measured` means never.
    void prepare(Medium& medium, Use use) noexcept;
    void stop() noexcept;
    void detach_after_fork() noexcept;

    /// Whether the calling thread's next entry should be handed over; `measured`: the caller notes how long the operation took.
    [[nodiscard]] bool should_hand_over(ThreadLog& thread, bool& measured) noexcept;
    /// The job's fields are filled: a sibling does it from now on. False: no thread is available, the caller does it.
    [[nodiscard]] bool hand_over(ThreadLog& thread) noexcept;
    /// Returns when the job's lines are durable. True: the sibling was late, so it had no CPU of its own.
    static bool await(SiblingJob& job) noexcept;

    /// The work of a sibling, in the calling thread, without the fence: the hash of the arguments, and the lines after the first.
    static void store_rest(Medium& medium, SiblingJob& job) noexcept;

private:
    static constexpr unsigned siblings_max = 8;

    struct alignas(128) Sibling {
        Siblings* team = nullptr;
        unsigned number = 0;
        os::ServiceThread thread;
        std::atomic<std::uint32_t> parked{0};  ///< futex: 1 while it sleeps
    };

    static void run(void* self);
    void loop(Sibling& self) noexcept;
    /// Does the jobs of the threads that the sibling serves. False: there was none.
    bool do_jobs(unsigned number) noexcept;
    [[nodiscard]] bool start_threads() noexcept;
    [[nodiscard]] unsigned sibling_of(const ThreadLog& thread) const noexcept;

    Medium* medium_ = nullptr;
    Use use_ = Use::never;
    unsigned cpus_ = 1;
    std::array<Sibling, siblings_max> siblings_;
    std::atomic<unsigned> count_{0};
    std::atomic<bool> stopping_{false};
    std::atomic<bool> unavailable_{false};
    os::FutexLock start_lock_;
};

}  // namespace stillpoint::pronto
