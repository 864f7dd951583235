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
        {"SPHT-NL", {false, false, false, false}, make<Spht>},
        {"NV-HTM", {false, false, true, true}, make<NvHtm>},
    };
    return kinds;
}

}  // namespace bench::model
