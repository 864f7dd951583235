#pragma once
// A protocol: what a system does around and after the speculative execution of a transaction. Each system is one file in protocols/.

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "speculation.hpp"

namespace bench::model {

/// The rows of SPHT's Table 1.
struct ScalingLimits {
    bool global_clock_in_transactions;  ///< speculation_ is told of accesses to a clock: GlobalClock
    bool longer_vulnerability;          ///< a transaction takes more than one attempt to become durable
    bool sequential_durability;         ///< no two transactions become durable at the same time
    bool sequential_replay;             ///< in the background, not modelled but for cc-HTM
};

class Protocol {
public:
    explicit Protocol(World& world, ConflictRule rule = ConflictRule::later_access_wins) : world_(world), speculation_(world, rule) {}
    virtual ~Protocol() = default;

    /// One transaction, until it is durable. Usually attempts, then the lock, then make_durable().
    [[nodiscard]] virtual Task<> run(Worker& worker, const Transaction& transaction);
    /// A thread of the system's own, if it has one.
    [[nodiscard]] virtual Task<> background();

    [[nodiscard]] const Speculation& speculation() const noexcept { return speculation_; }

protected:
    /// Before each attempt, outside of the speculation. As SPHT, Algorithm 1 has it: other threads see that a transaction runs which is
    /// not persistent, with a lower bound of its timestamp.
    virtual void begin(Worker& worker);
    /// Time that the system adds to the body of a transaction: logging of writes.
    [[nodiscard]] virtual double instrumentation_ns(const Transaction& transaction) const;
    /// The end of an attempt, from the body's last instruction to the commit. False: the attempt has aborted.
    [[nodiscard]] virtual Task<bool> commit_speculation(Worker& worker, const Transaction& transaction);
    /// After the speculation has committed, or the lock was released, with the timestamp that orders the transaction.
    [[nodiscard]] virtual Task<> make_durable(Worker& worker, const Transaction& transaction, double timestamp) = 0;
    /// In place of make_durable() for a transaction that wrote nothing.
    virtual void end_read_only(Worker& worker, double timestamp);

    /// Attempts until one commits; then true. False: as many as the machine allows have aborted.
    [[nodiscard]] Task<bool> speculate(Worker& worker, const Transaction& transaction, double& timestamp);
    /// The body under the single global lock.
    [[nodiscard]] Task<> run_locked(Worker& worker, const Transaction& transaction, double& timestamp);
    /// Waits until no other thread can still commit a transaction with a smaller timestamp that is not persistent (SPHT, Algorithm 1,
    /// WaitPrecedingTxs). True: another update transaction has a larger one.
    [[nodiscard]] Task<bool> wait_for_preceding(Worker& worker);

    /// Counts a transaction that is durable.
    void finish(Worker& worker);

    World& world_;
    Speculation speculation_;
};

struct ProtocolKind {
    std::string_view name;
    std::optional<ScalingLimits> limits;  ///< none: not in the table
    std::unique_ptr<Protocol> (*make)(World& world);
};

/// The eight systems of SPHT's evaluation, in its order.
[[nodiscard]] const std::vector<ProtocolKind>& all_protocols();

}  // namespace bench::model
