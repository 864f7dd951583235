// intruder of STAMP (IISWC 2008, §III.B.3): finds attacks in network traffic by their signatures.
//
// Packets of many flows arrive in no order. For each, a thread (1) takes it from the stream, (2) adds it to its flow in an ordered map,
// where the packets of a flow are a sorted list, and moves a flow that is complete to a queue, (3) takes a complete flow from there, if
// there is one, and looks for signatures in its text, outside of transactions. Each step is a transaction, and so is noting the verdict.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../../harness/random.hpp"
#include "../../transactions/list.hpp"
#include "../../transactions/queue.hpp"
#include "../../transactions/tree.hpp"
#include "../../workloads/makers.hpp"
#include "programs.hpp"

namespace bench {
namespace {

using namespace transactional;

struct Parameters {
    std::uint32_t flows;
    std::uint32_t packets_max;  ///< of a flow
};
constexpr std::uint32_t percent_of_attacks = 10;
constexpr std::uint32_t letters_max = 16;  // of a packet
/// Harmless texts are lower-case letters, so none has one of these in it.
constexpr std::array<std::string_view, 4> signatures = {"DROP TABLE", "../../ETC", "%90%90%90", "CMD.EXE?"};

/// A packet on the wire: the flow's number, the packet's place in it, how many there are, and its part of the text.
struct Packet {
    std::uint32_t flow;
    std::uint32_t place;
    std::uint32_t count;
    std::uint32_t length;
    std::uint64_t begin;  ///< in the text of all flows
};
/// A flow of which packets have arrived.
struct Flow {
    std::uint64_t number;
    std::uint64_t missing;
    List<std::uint64_t> packets;  ///< their numbers, by place
};
enum class Verdict : std::uint64_t { none, harmless, attack };
struct State {
    alignas(64) std::uint64_t next_packet;
    alignas(64) Tree<Flow*> flows;
    alignas(64) Queue<Flow*> complete;
};

bool has_signature(std::string_view text)
{
    return std::any_of(signatures.begin(), signatures.end(),
                       [&](std::string_view signature) { return text.find(signature) != std::string_view::npos; });
}

class Intruder final : public TransactionalJob {
public:
    Intruder(const Shape& shape, const Parameters& parameters) : TransactionalJob(shape), of_(parameters) {}

private:
    void make_input() override
    {
        Random random(37);
        packets_each_.resize(of_.flows);
        expected_.resize(of_.flows);
        for (std::uint32_t flow = 0; flow < of_.flows; ++flow) {
            const auto count = static_cast<std::uint32_t>(1 + random.below(of_.packets_max));
            std::string text(std::max<std::size_t>(count, random.below(std::uint64_t{count} * letters_max + 1)), ' ');
            std::generate(text.begin(), text.end(), [&random] { return static_cast<char>('a' + random.below(26)); });
            expected_[flow] = Verdict::harmless;
            if (random.below(100) < percent_of_attacks) {
                text.insert(random.below(text.size() + 1), signatures[random.below(signatures.size())]);
                expected_[flow] = Verdict::attack;
            }
            packets_each_[flow] = count;
            cut(text, flow, count);
        }
        shuffle(packets_, random);
    }
    void cut(std::string_view text, std::uint32_t flow, std::uint32_t count)
    {
        for (std::uint32_t place = 0; place < count; ++place) {
            const std::size_t first = text.size() * place / count;
            const std::size_t end = text.size() * (place + 1) / count;
            packets_.push_back({flow, place, count, static_cast<std::uint32_t>(end - first), text_.size() + first});
        }
        text_ += text;
    }
    void find_memory() override
    {
        state_ = M::named<State>("bench.intruder");
        verdicts_ = M::named<Verdict>("bench.intruder.verdicts", of_.flows);
    }
    void clear() override
    {
        state_->flows.clear<M>([](auto& tx, Flow* flow) { dispose(tx, flow); });
        while (M::atomically([&](auto& tx) {
            const auto flow = state_->complete.pop(tx);
            if (flow) {
                dispose(tx, *flow);
            }
            return flow.has_value();
        })) {
        }
        fill(verdicts_, of_.flows);
        M::atomically([&](auto& tx) { tx.write(state_->next_packet, std::uint64_t{0}); });
    }
    template <Transaction Tx>
    static void dispose(Tx& tx, Flow* flow)
    {
        while (flow->packets.pop(tx)) {
        }
        tx.free(flow);
    }

    void run(Context& context) override
    {
        std::string text;
        for (;;) {
            const std::uint64_t packet = atomically(context, [&](auto& tx) { return add(tx, state_->next_packet, 1) - 1; });
            if (packet >= packets_.size()) {
                return;
            }
            atomically(context, [&](auto& tx) { receive(tx, packet); });
            const std::uint64_t flow = atomically(context, [&](auto& tx) { return take_complete(tx, text); });
            if (flow != none) {
                const Verdict verdict = has_signature(text) ? Verdict::attack : Verdict::harmless;
                atomically(context, [&](auto& tx) { tx.write(verdicts_[flow], verdict); });
            }
            context.changed_bytes += sizeof(List<std::uint64_t>::Node) + sizeof(std::uint64_t);
        }
    }
    template <Transaction Tx>
    void receive(Tx& tx, std::uint64_t number)
    {
        const Packet& packet = packets_[number];
        Flow** const place = state_->flows.find(tx, packet.flow);
        Flow* flow = place != nullptr ? tx.read(*place) : nullptr;
        if (flow == nullptr) {
            flow = make_empty<Flow>(tx);
            tx.write(flow->number, std::uint64_t{packet.flow});
            tx.write(flow->missing, std::uint64_t{packet.count});
            state_->flows.insert(tx, packet.flow, flow);
        }
        flow->packets.insert(tx, packet.place, number);
        if (subtract(tx, flow->missing, 1) == 0) {
            state_->flows.remove(tx, packet.flow);
            state_->complete.push(tx, flow);
        }
    }
    /// The flow's number, and its text; or none.
    template <Transaction Tx>
    std::uint64_t take_complete(Tx& tx, std::string& text)
    {
        text.clear();
        const auto flow = state_->complete.pop(tx);
        if (!flow) {
            return none;
        }
        const std::uint64_t number = tx.read((*flow)->number);
        while (const auto packet = (*flow)->packets.pop(tx)) {
            text += std::string_view(text_).substr(packets_[*packet].begin, packets_[*packet].length);
        }
        tx.free(*flow);
        return number;
    }

    std::string fault_of_result() const override
    {
        for (std::uint32_t flow = 0; flow < of_.flows; ++flow) {
            if (verdicts_[flow] != expected_[flow]) {
                return "flow " + std::to_string(flow) +
                       (verdicts_[flow] == Verdict::none ? " was never complete" : " got the wrong verdict");
            }
        }
        return fault_of_unfinished();
    }
    /// Every packet that was taken is where its flow is; but each thread may have one packet, or one flow, in its hands.
    std::string fault_of_unfinished() const override
    {
        std::vector<std::uint32_t> found(of_.flows);
        std::string fault;
        std::vector<bool> is_queued(of_.flows);
        const auto examine = [&](const Flow* flow, bool is_complete) {
            if (flow->number >= of_.flows || verdicts_[flow->number] != Verdict::none || is_queued[flow->number]) {
                fault = "a flow is there twice, or after its verdict";
                return;
            }
            is_queued[flow->number] = is_complete;
            flow->packets.for_each([&](std::uint64_t place, std::uint64_t number) {
                const bool is_there = number < std::min<std::uint64_t>(state_->next_packet, packets_.size());
                if (!is_there || packets_[number].flow != flow->number || packets_[number].place != place) {
                    fault = "a packet lies in a flow that is not its own";
                }
                ++found[flow->number];
            });
            if (found[flow->number] + flow->missing != packets_each_[flow->number] || (flow->missing == 0) != is_complete) {
                fault = "flow " + std::to_string(flow->number) + " misses another number of packets than it says";
            }
        };
        state_->flows.for_each([&](std::uint64_t, const Flow* flow) { examine(flow, false); });
        state_->complete.for_each([&](const Flow* flow) { examine(flow, true); });
        return !fault.empty() ? fault : !state_->flows.is_whole() ? "the flows are out of order" : fault_of_counts(found);
    }
    [[nodiscard]] std::string fault_of_counts(const std::vector<std::uint32_t>& found) const
    {
        std::vector<std::uint32_t> taken(of_.flows);
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(state_->next_packet, packets_.size()); ++i) {
            ++taken[packets_[i].flow];
        }
        std::uint64_t in_hands = 0;
        for (std::uint32_t flow = 0; flow < of_.flows; ++flow) {
            if (verdicts_[flow] == Verdict::none) {
                const bool is_taken_whole = found[flow] == 0 && taken[flow] == packets_each_[flow];
                in_hands += is_taken_whole ? 1 : taken[flow] - found[flow];
            } else if (verdicts_[flow] != expected_[flow] || taken[flow] != packets_each_[flow]) {
                return "flow " + std::to_string(flow) + " got a verdict that it cannot have";
            }
        }
        return in_hands > threads() ? "packets that were taken are nowhere" : std::string();
    }

    static constexpr std::uint64_t none = UINT64_MAX;

    const Parameters of_;
    std::string text_;
    std::vector<Packet> packets_;  ///< in the order in which they arrive
    std::vector<std::uint32_t> packets_each_;
    std::vector<Verdict> expected_;
    State* state_ = nullptr;
    Verdict* verdicts_ = nullptr;
};

}  // namespace

Work make_stamp_intruder(const Shape& shape)
{
    return {nullptr, std::make_unique<Intruder>(shape, parameters_for<Parameters>(shape, {200, 4}, {2038, 16}, {16 << 10, 128}))};
}

}  // namespace bench
