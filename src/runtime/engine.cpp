#include "runtime/engine.hpp"

#include "core/store_marks.hpp"
#include "runtime/fase.hpp"

namespace stillpoint {

Result<int> Engine::run_as_one(int (*work)(), std::uint64_t& word, std::uint64_t value)
{
    fase_enter_section();
    if (const int result = work(); result != 0) {
        return result;
    }
    announce_store(&word, sizeof word);
    word = value;
    note_program_store(&word, sizeof word);
    fase_leave(nullptr);
    return 0;
}

}  // namespace stillpoint
