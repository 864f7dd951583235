#pragma once
// Threads that sleep between slices, and all work in one.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bench {

class SliceThreads {
public:
    /// The work of each thread in a slice: its number, and the monotonic time at which the slice ends. Returns how many
    /// operations it did.
    using Work = std::function<std::uint64_t(unsigned thread, std::uint64_t deadline_ns)>;

    /// `is_pinned`: thread i stays on the i-th of the process's CPUs, modulo their number.
    SliceThreads(unsigned count, bool is_pinned);
    ~SliceThreads();
    SliceThreads(const SliceThreads&) = delete;
    SliceThreads& operator=(const SliceThreads&) = delete;

    struct Slice {
        std::uint64_t operations;
        std::uint64_t wall_ns;
    };
    /// Lets all threads do `work`; returns when all have. Meanwhile calls `look` every `look_ns` in the calling thread.
    Slice run(std::uint64_t slice_ns, const Work& work, std::uint64_t look_ns = 0, const std::function<void()>& look = {});

    [[nodiscard]] unsigned count() const noexcept { return static_cast<unsigned>(threads_.size()); }

private:
    void thread_main(unsigned thread, bool is_pinned);

    std::mutex lock_;
    std::condition_variable changed_;
    const Work* work_ = nullptr;       ///< guarded by lock_, as are the next five
    std::uint64_t slice_number_ = 0;
    std::uint64_t deadline_ns_ = 0;
    std::uint64_t operations_ = 0;
    unsigned working_ = 0;
    bool end_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace bench
