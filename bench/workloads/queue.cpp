// Pushes and pops on a queue under one lock [ResPCT §5.1].

#include <atomic>

#include "../engines/current.hpp"
#include "makers.hpp"

namespace bench {
namespace {

class QueueWorkload final : public Workload {
public:
    QueueWorkload(const Shape& shape, std::uint64_t elements) : elements_(elements), queue_(shape, "bench.queue"), progress_(queue_, shape)
    {
    }

    void load() override
    {
        if (progress_.noted(progress_.loaded_slot) == 0) {
            fill();
            progress_.note(progress_.loaded_slot, 1);
        }
    }
    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            std::uint64_t number = 0;
            if (context.random.below(2) == 0) {
                queue_.push(context.thread, context.random.next() >> 1);
                context.changed_bytes += sizeof number;
            } else if (queue_.pop(context.thread, number)) {
                context.changed_bytes += sizeof number;
                if (number >> 63 != 0) {
                    wrong_.fetch_add(1, std::memory_order_relaxed);
                }
            }
        }
    }
    std::string fault() override
    {
        return wrong_ == 0 ? std::string() : std::to_string(wrong_) + " numbers came out that were never put in";
    }
    void settle() override { queue_.settle(); }
    void note_progress(unsigned thread, std::uint64_t operations) override { progress_.note(thread, operations); }
    std::uint64_t noted_progress(unsigned thread) override { return progress_.noted(thread); }

private:
    void fill()
    {
        const Filling<CurrentQueue> filling(queue_);
        for (std::uint64_t i = 0; i < elements_; ++i) {
            queue_.push(0, i);
        }
    }

    std::uint64_t elements_;
    CurrentQueue queue_;
    CurrentProgress<CurrentQueue> progress_;
    std::atomic<std::uint64_t> wrong_{0};
};

}  // namespace

Work make_queue(const Shape& shape) { return {std::make_unique<QueueWorkload>(shape, shape.size_or(1000, 100)), nullptr}; }

}  // namespace bench
