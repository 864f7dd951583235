// The list of systems, with SPHT's Table 1: which of the four limits each has.

#include "protocols.hpp"

namespace bench::model {
namespace {

template <class System>
std::unique_ptr<Protocol> make(World& world)
{
    return std::make_unique<System>(world);
}

}  // namespace

const std::vector<ProtocolKind>& all_protocols()
{
    // The order of ScalingLimits: clock in transactions, longer vulnerability, sequential durability, sequential replay.
    static const std::vector<ProtocolKind> kinds{
        {"SPHT-NL", ScalingLimits{false, false, false, false}, make<Spht>},
        {"SPHT-FL", ScalingLimits{false, false, false, false}, make<LinkedSpht<LinkDirection::forward>>},
        {"SPHT-BL", ScalingLimits{false, false, false, false}, make<LinkedSpht<LinkDirection::backward>>},
        {"NV-HTM", ScalingLimits{false, false, true, true}, make<NvHtm>},
        {"DudeTM", ScalingLimits{true, false, false, true}, make<DudeTm>},
        {"Crafty", ScalingLimits{true, true, true, false}, make<Crafty>},
        {"cc-HTM", ScalingLimits{false, false, true, true}, make<CcHtm>},
        {"PSTM", std::nullopt, make<Pstm>},
    };
    return kinds;
}

}  // namespace bench::model
