#include "transactions/parts_program.hpp"

#include <stdexcept>

#include "stillpoint/stillpoint.h"

namespace stillpoint::explorer {

void PartsProgram::find_objects()
{
    parts_ = static_cast<TransactionParts*>(sp_root_find(TransactionParts::handle, nullptr));
    find_more();
}

PartDigests PartsProgram::digests() const
{
    std::uint64_t blocks = 0;
    if (const std::string wrong = problem_of(parts_, blocks); !wrong.empty()) {
        throw std::runtime_error(wrong);
    }
    PartDigests all;
    add_digests(parts_, all);
    return all;
}

std::string PartsProgram::look_at_image(const FindObject& find, PartDigests& digests, std::uint64_t& blocks) const
{
    const auto* const parts = static_cast<const TransactionParts*>(find(TransactionParts::handle));
    std::string wrong = problem_of(parts, blocks);
    if (wrong.empty()) {
        wrong = look_at_more(find, blocks);
    }
    if (wrong.empty()) {
        add_digests(parts, digests);
    }
    return wrong;
}

void PartsProgram::perform(Random& random)
{
    if (parts_ == nullptr) {
        parts_ = static_cast<TransactionParts*>(sp_root(TransactionParts::handle, sizeof *parts_));
        if (parts_ == nullptr) {
            throw std::runtime_error(sp_last_error());
        }
    }
    work_on(*parts_, random);
    if (random() % 9 < 2 && sp_checkpoint() != SP_OK) {
        throw std::runtime_error(sp_last_error());
    }
}

}  // namespace stillpoint::explorer
