#pragma once
// The counters of the engine and the kernel for this process, and the stop times of a slice.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

class Answer;

/// Counters at one moment; the answer to a slice has their growth.
class Counters {
public:
    /// Reads them now.
    Counters();
    /// Adds the growth since `before`, by name; what is not known here is left out.
    void add_growth(const Counters& before, Answer& answer) const;
    /// 0 where the engine does not count it.
    [[nodiscard]] std::uint64_t value(std::string_view name) const noexcept;

private:
    struct Value {
        const char* name;
        std::uint64_t value;
    };
    std::vector<Value> values_;
};

/// How long the engine's own recovery took, where it counts that and there was something to recover.
void add_recovery_time(Answer& answer);

/// Stop times of the checkpoints that begin while it is asked often enough. Costs two loads a look.
class StopTimes {
public:
    StopTimes();
    void look();
    /// Forgets the checkpoints so far.
    void restart();
    [[nodiscard]] const std::vector<std::uint64_t>& stops_ns() const noexcept { return stops_ns_; }
    /// Times between the captures of two checkpoints, both since the last restart().
    [[nodiscard]] const std::vector<std::uint64_t>& epochs_ns() const noexcept { return epochs_ns_; }
    /// How often look() is to be called; 0: the engine has no stops.
    [[nodiscard]] std::uint64_t look_every_ns() const noexcept { return look_every_ns_; }

private:
    std::uint64_t epoch_ = 0;
    std::uint64_t captured_ns_ = 0;  ///< of the last checkpoint that was seen durable
    bool has_capture_ = false;       ///< captured_ns_ is of this slice
    std::uint64_t look_every_ns_ = 0;
    std::vector<std::uint64_t> stops_ns_;
    std::vector<std::uint64_t> epochs_ns_;
};

/// Memory that this process holds, in bytes: private pages, and its share of shared ones that no named file holds. Pages of a mapped
/// pool are not among them: the driver counts the pool's blocks. 0 where the kernel does not say. Cost: a walk through the page tables.
[[nodiscard]] std::uint64_t anonymous_bytes();

}  // namespace bench
