#pragma once
// The classes of the eight systems. What distinguishes them is in the files of their names.

#include <cstdint>
#include <map>

#include "../protocol.hpp"
#include "global_clock.hpp"

namespace bench::model {

class Spht : public Protocol {
public:
    using Protocol::Protocol;

protected:
    [[nodiscard]] Task<> make_durable(Worker& worker, const Transaction& transaction, double timestamp) override;
    [[nodiscard]] Task<> update_marker(Worker& worker, bool is_followed);

private:
    double marker_ = -1;  ///< as the caches have it
    SharedLine marker_line_;
    Watermark durable_marker_;
};

enum class LinkDirection : std::uint8_t { forward, backward };

template <LinkDirection direction>
class LinkedSpht final : public Spht {
public:
    using Spht::Spht;

protected:
    [[nodiscard]] Task<> make_durable(Worker& worker, const Transaction& transaction, double timestamp) override;
};

class NvHtm final : public Protocol {
public:
    using Protocol::Protocol;

protected:
    [[nodiscard]] Task<> make_durable(Worker& worker, const Transaction& transaction, double timestamp) override;
};

class DudeTm final : public Protocol {
public:
    explicit DudeTm(World& world) : Protocol(world), clock_(world, speculation_) {}
    [[nodiscard]] Task<> background() override;

protected:
    void begin(Worker& worker) override;
    [[nodiscard]] double instrumentation_ns(const Transaction& transaction) const override;
    [[nodiscard]] Task<bool> commit_speculation(Worker& worker, const Transaction& transaction) override;
    [[nodiscard]] Task<> make_durable(Worker& worker, const Transaction& transaction, double timestamp) override;
    void end_read_only(Worker& worker, double timestamp) override;

private:
    struct VolatileLog {
        const Worker* worker;
        double bytes;
    };

    GlobalClock clock_;
    std::map<std::uint64_t, VolatileLog> waiting_;  ///< for the persist thread, by the clock's number
    std::uint64_t last_number_ = 0;
    Signal arrived_;
    Watermark durable_number_;
};

class Crafty final : public Protocol {
public:
    explicit Crafty(World& world) : Protocol(world), clock_(world, speculation_) {}
    [[nodiscard]] Task<> run(Worker& worker, const Transaction& transaction) override;

protected:
    [[nodiscard]] double instrumentation_ns(const Transaction& transaction) const override;
    [[nodiscard]] Task<> make_durable(Worker& worker, const Transaction& transaction, double timestamp) override;

private:
    [[nodiscard]] Task<bool> log_phase(Worker& worker, const Transaction& transaction);
    [[nodiscard]] Task<bool> redo_phase(Worker& worker, const Transaction& transaction, std::uint64_t clock_seen);
    [[nodiscard]] Task<bool> validate_phase(Worker& worker, const Transaction& transaction, std::uint64_t clock_seen);
    [[nodiscard]] Task<bool> run_phases(Worker& worker, const Transaction& transaction);

    GlobalClock clock_;
};

class CcHtm final : public Protocol {
public:
    using Protocol::Protocol;
    [[nodiscard]] Task<> background() override;

protected:
    [[nodiscard]] Task<> make_durable(Worker& worker, const Transaction& transaction, double timestamp) override;

private:
    struct Queued {
        const Worker* worker;
        Transaction transaction;
        bool is_ready;  ///< all transactions before it are in the queue, or through it
    };

    std::map<double, Queued> queue_;  ///< by timestamp
    Signal changed_;
    Watermark applied_;
};

class Pstm final : public Protocol {
public:
    explicit Pstm(World& world) : Protocol(world, ConflictRule::locked_line_wins) {}
    [[nodiscard]] Task<> run(Worker& worker, const Transaction& transaction) override;

protected:
    [[nodiscard]] Task<> make_durable(Worker& worker, const Transaction& transaction, double timestamp) override;

private:
    SharedLine clock_line_;
};

}  // namespace bench::model
