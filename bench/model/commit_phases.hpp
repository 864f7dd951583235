#pragma once
// The commit phases of some systems as real code, as small as the model's.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace bench::model {

/// The processor's clock: the timestamps of transactions.
inline std::uint64_t ticks()
{
    unsigned processor = 0;
    return __builtin_ia32_rdtscp(&processor);
}

class CommitPhase {
public:
    virtual ~CommitPhase() = default;

    virtual void begin(std::size_t thread) = 0;
    /// Address and value of `words` written words, to the thread's log.
    virtual void log_words(std::size_t thread, std::uint64_t value, std::size_t words) = 0;
    /// Returns when the transaction is durable.
    virtual void commit(std::size_t thread) = 0;
    /// The system's own thread, until `stop`.
    virtual void background(const std::stop_token& stop) = 0;
};

struct CommitPhaseKind {
    std::string system;
    bool has_background;
};

[[nodiscard]] const std::vector<CommitPhaseKind>& commit_phases();
[[nodiscard]] std::unique_ptr<CommitPhase> make_commit_phase(const std::string& system, std::size_t threads);

}  // namespace bench::model
