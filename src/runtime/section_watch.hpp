#pragma once
// Notices a program that writes durable memory and delimits nothing: with locks of its own, or none. Its checkpoints fall between any two
// stores, so a crash can tear what it wrote, and nothing else says so.
//
// Examined in each stop, when no thread is inside: what was written since the stop before, and whether a section has begun since
// then. Not counted are the first capture (what recovery and the opening wrote), the last one of an orderly end, and those that a
// thread waits for (sp_checkpoint), which come where the program wants them.

namespace stillpoint {

/// Threads: the checkpoint thread, but for at_end().
class SectionWatch {
public:
    /// The words of the message for this engine: "no lock of pthread or C11 was taken, ...", and what to do.
    struct Words {
        const char* not_seen;
        const char* advice;
    };
    explicit SectionWatch(const Words& words) noexcept : words_(words) {}

    /// In the stop. `wrote`: durable memory differs from the epoch before. `by_itself`: the interval was over, and no thread asked.
    void at_capture(bool wrote, bool by_itself) noexcept;
    /// Outside of the stop: says it once, where it has happened often.
    void after_capture() noexcept { report_from(often); }
    /// Says it where it has happened at all often, at the end of an orderly run. The checkpoint thread has ended.
    void at_end() noexcept;

private:
    // A program that makes its structures first, without a lock, and takes locks for the rest of its life is none of these.
    static constexpr unsigned often = 20;
    static constexpr unsigned often_for_a_whole_run = 5;

    void report_from(unsigned epochs) noexcept;

    Words words_;
    bool first_ = true;
    bool any_section_ = false;
    bool told_ = false;
    unsigned epochs_ = 0;
};

}  // namespace stillpoint
