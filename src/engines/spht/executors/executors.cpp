#include "engines/spht/executors/executors.hpp"

#include <new>

#include "arch/rtm.hpp"
#include "engines/spht/executors/encounter_time.hpp"
#include "engines/spht/executors/hardware.hpp"
#include "engines/spht/executors/norec.hpp"
#include "engines/spht/executors/tl2.hpp"
#include "engines/spht/transactional_memory.hpp"

namespace stillpoint::spht {

Result<Executor> choose_executor(std::string_view word)
{
    if (word == "simulated") {
        return Executor::simulated;
    }
    if (word == "norec" || word == "tinystm") {
        return word == "norec" ? Executor::norec : Executor::tinystm;
    }
    if (word == "software" || (word == "auto" && !arch::Rtm::works())) {
        return Executor::software;
    }
    if (word == "hardware" && !arch::Rtm::works()) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "executor hardware: no transaction of this CPU commits (it has no Intel TSX, or its microcode turns it off); leave the "
                    "option out, or take executor=software");
    }
    return Executor::hardware;
}

Transaction* make_transaction(Executor executor, void* memory, const TransactionParts& parts) noexcept
{
    static_assert(sizeof(Tl2) <= transaction_bytes_max && sizeof(Norec) <= transaction_bytes_max &&
                  sizeof(Hardware<RtmTm>) <= transaction_bytes_max && sizeof(Hardware<SimulatedTm>) <= transaction_bytes_max);
    switch (executor) {
    case Executor::software: return new (memory) Tl2(parts.memory, parts.slot, parts.place, parts.number);
    case Executor::norec: return new (memory) Norec(parts.memory, parts.slot, parts.place, parts.number, parts.memory.norec_clock());
    case Executor::tinystm: return new (memory) EncounterTime(parts.memory, parts.slot, parts.place, parts.number);
    case Executor::hardware: return new (memory) Hardware<RtmTm>(parts.memory, parts.slot, parts.place, parts.number);
    case Executor::simulated:
        return new (memory)
            Hardware<SimulatedTm>(parts.memory, parts.slot, parts.place, parts.number, parts.memory.simulated_machine(), parts.number);
    }
    return nullptr;
}

}  // namespace stillpoint::spht
