#include "core/store_marks.hpp"

namespace stillpoint {

constinit thread_local StoreGroup* StoreGroup::own_ [[gnu::tls_model("initial-exec")]] = nullptr;

}  // namespace stillpoint

namespace stillpoint::store_marks {

namespace {

void ignore(const void* /*address*/, std::size_t /*size_bytes*/) noexcept {}

}  // namespace

constinit std::atomic<Wanted> wanted{Wanted::nothing};
constinit std::atomic<AfterStore> after_store{&ignore};
constinit std::atomic<AfterStore> after_block_state{&ignore};
constinit std::atomic<AfterStore> after_program_store{&ignore};
constinit std::atomic<GroupedStores> grouped_stores{nullptr};
constinit std::atomic<BeforeStore> before_store{nullptr};
constinit std::atomic<BeforeBlocksPass> before_blocks_pass{nullptr};
constinit std::atomic<std::uintptr_t> cards_begin{UINTPTR_MAX};
constinit std::atomic<std::uintptr_t> cards_end{0};
constinit std::atomic<std::uint8_t> taken_tag{0};

void want_cards() noexcept { wanted.store(Wanted::cards, std::memory_order_release); }

void want_calls(AfterStore call) noexcept { want_calls(call, call); }

void want_calls(AfterStore call, AfterStore block_state_call) noexcept { want_calls(call, block_state_call, call); }

void want_calls(AfterStore call, AfterStore block_state_call, AfterStore program_call) noexcept
{
    after_program_store.store(program_call, std::memory_order_relaxed);
    after_store.store(call, std::memory_order_relaxed);
    after_block_state.store(block_state_call, std::memory_order_relaxed);
    wanted.store(Wanted::calls, std::memory_order_release);
}

void want_calls_before(BeforeStore call) noexcept { before_store.store(call, std::memory_order_release); }

void want_groups(GroupedStores call) noexcept { grouped_stores.store(call, std::memory_order_release); }

void want_passing_blocks(BeforeBlocksPass call) noexcept { before_blocks_pass.store(call, std::memory_order_release); }

void want_nothing() noexcept
{
    taken_tag.store(0, std::memory_order_relaxed);
    before_blocks_pass.store(nullptr, std::memory_order_release);
    grouped_stores.store(nullptr, std::memory_order_release);
    before_store.store(nullptr, std::memory_order_release);
    wanted.store(Wanted::nothing, std::memory_order_release);
    after_store.store(&ignore, std::memory_order_relaxed);
    after_block_state.store(&ignore, std::memory_order_relaxed);
    after_program_store.store(&ignore, std::memory_order_relaxed);
}

}  // namespace stillpoint::store_marks
