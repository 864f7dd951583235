#include "engines/respct/locks.hpp"

#include "runtime/held_locks.hpp"

extern "C" {
__attribute__((visibility("default"), tls_model("initial-exec"))) __thread uint32_t sp_respct_locks = stillpoint::respct::locks_go_slowly;
}

namespace stillpoint::respct {

void choose_way_of_locks(bool takes_part) noexcept
{
    const bool slowly = !takes_part || held_locks::are_listed();
    sp_respct_locks = locks_counted() | (slowly ? locks_go_slowly : 0);
}

void list_locks_of_this_thread() noexcept { sp_respct_locks |= held_locks::are_listed() ? locks_go_slowly : 0; }

}  // namespace stillpoint::respct
