#pragma once
// A protocol: what a system does around and after the speculative execution of a transaction. Each system is one file in protocols/.

#include <memory>
#include <string_view>
#include <vector>

#include "speculation.hpp"

namespace bench::model {

/// The rows of SPHT's Table 1, for each system what its file says.
struct ScalingLimits {
    bool global_clock_in_transactions;
    bool longer_vulnerability;
    bool sequential_durability;
    bool sequential_replay;
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
    /// Before each attempt, outside of the speculation.
    virtual void begin(Worker& worker) = 0;
    /// Time that the system adds to the body of a transaction: logging of writes.
    [[nodiscard]] virtual double instrumentation_ns(const Transaction& transaction) const;
    /// The last thing inside an attempt. False: the attempt has aborted.
    [[nodiscard]] virtual Task<bool> before_commit(Worker& worker);
    /// After the speculation has committed, or the lock was released, with the timestamp that orders the transaction.
    [[nodiscard]] virtual Task<> make_durable(Worker& worker, const Transaction& transaction, double timestamp) = 0;
    /// In place of make_durable() for a transaction that wrote nothing.
    virtual void end_read_only(Worker& worker, double timestamp) = 0;

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
    ScalingLimits limits;
    std::unique_ptr<Protocol> (*make)(World& world);
};

/// The eight systems of SPHT's evaluation, in its order.
[[nodiscard]] const std::vector<ProtocolKind>& all_protocols();

}  // namespace bench::model
