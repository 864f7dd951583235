#include "itm/transaction.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "itm/global_lock.hpp"
#include "itm/messages.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::itm {

namespace {

/// Until the engine says that it cannot.
std::atomic<bool> finds_plain_stores{true};

}  // namespace

thread_local Transaction* Transaction::own_ = nullptr;

/// Frees a thread's transaction at its end.
struct OwnTransaction {
    Transaction* made = nullptr;
    ~OwnTransaction()
    {
        Transaction::own_ = nullptr;
        delete made;
    }
    static Transaction* make() { return new Transaction; }
};

Transaction& Transaction::own()
{
    if (own_ == nullptr) [[unlikely]] {
        static thread_local OwnTransaction owner;
        owner.made = OwnTransaction::make();
        own_ = owner.made;
    }
    return *own_;
}

// ---- Beginning ----------------------------------------------------------------------------------

std::uint32_t Transaction::begin(std::uint32_t properties, const Registers& registers)
{
    static std::atomic<std::uint32_t> ids{no_transaction_id};
    if (depth_ != 0) {
        return begin_nested(properties, registers);
    }
    if (sp_spht_current() != nullptr) {
        end_process("__transaction_atomic inside a transaction of spht.h, which it cannot become a part of; end that one first");
    }
    id_ = ids.fetch_add(1, std::memory_order_relaxed) + 1;
    properties_ = properties;
    start_ = registers;
    wants_alone_ = (properties & goes_irrevocable) != 0 || (properties & has_instrumented_code) == 0;
    wants_writes_ = false;
    start_attempt();
    return chosen_code() | save_live_variables;
}

std::uint32_t Transaction::chosen_code() const noexcept
{
    return (properties_ & has_instrumented_code) != 0 ? run_instrumented_code : run_uninstrumented_code;
}

void Transaction::start_attempt()
{
    if (!begin_in_engine()) {
        handle_ = nullptr;
    }
    depth_ = 1;
    is_direct_ = handle_ == nullptr || wants_alone_;
    is_irrevocable_ = chosen_code() == run_uninstrumented_code;
    lowest_stack_ = start_.stack;
    set_ways();
}

/// False: there is none for transactions, and the thread has the global lock.
bool Transaction::begin_in_engine()
{
    const bool read_only = (properties_ & is_read_only) != 0 && !wants_writes_;
    while (true) {
        bool is_refused = false;
        if (sp_start_kind() != SP_START_VOLATILE) {
            // Programs free and use memory by plain accesses once a transaction has made it private: the ABI promises that.
            unsigned flags = SP_SPHT_PRIVATIZES;
            if (wants_alone_) {
                flags |= SP_SPHT_IRREVOCABLE | (finds_plain_stores.load(std::memory_order_relaxed) ? unsigned{SP_SPHT_PLAIN_STORES} : 0);
            } else if (read_only) {
                flags |= SP_SPHT_READ_ONLY;
            }
            int code = SP_OK;
            handle_ = sp_spht_begin(flags, &code);
            if (handle_ != nullptr) {
                if (!GlobalLock::is_held()) [[likely]] {
                    return true;
                }
                // The pool was opened while a transaction ran that knows nothing of it.
                sp_spht_abort(handle_, 1);
                GlobalLock::acquire();
                GlobalLock::release();
                continue;
            }
            if (code == SP_E_UNSUPPORTED && (flags & SP_SPHT_PLAIN_STORES) != 0) {
                finds_plain_stores.store(false, std::memory_order_relaxed);
                report_once(Message::plain_stores, sp_last_error());
                continue;
            }
            if (code != SP_E_NOT_OPEN && (properties_ & returns_errors) != 0) {
                ended_by_ = code;
                stillpoint_itm_return_again(skip_transaction | restore_live_variables, &start_);
            }
            if (code == SP_E_POOL_ENGINE) {
                report_once(Message::other_engine, sp_last_error());
            } else if (code != SP_E_NOT_OPEN && code != SP_E_DETACHED) {
                end_process(sp_last_error());
            }
            is_refused = true;
        }
        GlobalLock::acquire();
        if (is_refused || sp_start_kind() == SP_START_VOLATILE) {
            return false;
        }
        GlobalLock::release();
    }
}

void Transaction::set_ways() noexcept
{
    stack_ = checkpoints_.empty() ? start_.stack : checkpoints_.back().start.stack;
    const bool reads_only = (properties_ & is_read_only) != 0 && !wants_writes_;
    is_plain_ = !is_direct_ && !reads_only && checkpoints_.empty() && private_.empty() && !exceptions_.any();
}

std::uint32_t Transaction::begin_nested(std::uint32_t properties, const Registers& registers)
{
    std::uint32_t actions = run_instrumented_code;
    if ((properties & has_instrumented_code) == 0) {
        become_irrevocable();
        actions = run_uninstrumented_code;
    }
    // One that may be cancelled has instrumented stores in any case.
    if ((properties & has_no_abort) == 0) {
        checkpoints_.push_back({registers, depth_, id_, undo_.size(), allocated_.size(), freed_.size(), durable_allocated_.size(),
                                durable_freed_.size(), commit_actions_.size(), undo_actions_.size()});
        lowest_stack_ = std::min(lowest_stack_, registers.stack);
        set_ways();
        actions |= save_live_variables;
    }
    ++depth_;
    return actions;
}

void Transaction::start_again()
{
    start_attempt();
    stillpoint_itm_return_again(chosen_code() | save_live_variables | restore_live_variables, &start_);
}

void Transaction::become_irrevocable()
{
    if (is_direct_) {
        is_irrevocable_ = true;
        return;
    }
    wants_alone_ = true;
    retry_otherwise();
}

void Transaction::retry_otherwise()
{
    sp_spht_transaction* const handle = handle_;
    roll_back();
    sp_spht_abort(handle, 1);
    start_again();
}

// ---- Memory ---------------------------------------------------------------------------------------

void Transaction::write_and_keep(void* place, const void* value, std::size_t bytes)
{
    if (is_direct_) {
        undo_.keep(place, bytes, UndoLog::Kind::memory);
        std::memcpy(place, value, bytes);
        return;
    }
    if ((properties_ & is_read_only) != 0 && !wants_writes_) {
        // The compiler was wrong: without a list of what it has read the transaction cannot write.
        wants_writes_ = true;
        retry_otherwise();
    }
    // In a frame between the outermost beginning and the innermost one, or in a block that no other thread knows: in place.
    const auto address = reinterpret_cast<std::uintptr_t>(place);
    if ((address < start_.stack && address >= stack_) || private_.contains(place) || exceptions_.contains(place)) {
        if (!checkpoints_.empty()) {
            undo_.keep(place, bytes, UndoLog::Kind::memory);
        }
        std::memcpy(place, value, bytes);
        return;
    }
    if (checkpoints_.empty()) {
        if (sp_spht_write(handle_, place, value, bytes) != SP_OK) {
            meet_conflict();
        }
        return;
    }
    std::byte old[256];
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t part = std::min(bytes - done, sizeof old);
        std::byte* const at = static_cast<std::byte*>(place) + done;
        if (sp_spht_read(handle_, at, old, part) != SP_OK) {
            meet_conflict();
        }
        undo_.keep_value(at, old, part, UndoLog::Kind::buffered);
        if (sp_spht_write(handle_, at, static_cast<const std::byte*>(value) + done, part) != SP_OK) {
            meet_conflict();
        }
        done += part;
    }
}

void Transaction::keep_own(void* place, std::size_t bytes)
{
    if (!is_on_stack(place)) {
        undo_.keep(place, bytes, UndoLog::Kind::own);
    }
}

/// Ends the attempt: another transaction was in the way, or this one is too large.
void Transaction::meet_conflict(void* exception)
{
    const int code = sp_spht_commit(handle_);
    if (code != SP_E_CONFLICT) {
        end_refused(code, exception);
    }
    roll_back(exception);
    start_again();
}

/// The engine has rolled the transaction back, but for plain stores, and it would end so each time.
void Transaction::end_refused(int code, void* exception)
{
    if ((properties_ & returns_errors) == 0 || is_irrevocable_) {
        end_process(sp_last_error());
    }
    roll_back(exception);
    ended_by_ = code;
    stillpoint_itm_return_again(skip_transaction | restore_live_variables, &start_);
}

/// Memory as it was when the undo log had `undo_size` entries. Frames below `stack` are gone, and their memory may be the caller's.
void Transaction::restore(std::size_t undo_size, std::uint64_t stack)
{
    for (std::size_t i = undo_.size(); i > undo_size; --i) {
        const UndoLog::Entry& entry = undo_[i - 1];
        const auto address = reinterpret_cast<std::uintptr_t>(entry.place);
        if (entry.kind == UndoLog::Kind::buffered) {
            if (depth_ != 0 && sp_spht_write(handle_, entry.place, undo_.old_bytes(entry), entry.size) != SP_OK) {
                meet_conflict();
            }
        } else if ((address < lowest_stack_ || address >= stack) &&
                   !(keeps_private_ && (private_.contains(entry.place) || exceptions_.contains(entry.place)))) {
            std::memcpy(entry.place, undo_.old_bytes(entry), entry.size);
        }
    }
    undo_.shrink(undo_size);
}

// ---- Ending -----------------------------------------------------------------------------------------

void Transaction::commit(void* exception)
{
    if (depth_ > 1) {
        --depth_;
        if (!checkpoints_.empty() && checkpoints_.back().depth == depth_) {
            checkpoints_.pop_back();
            set_ways();
        }
        return;
    }
    if (handle_ == nullptr) {
        GlobalLock::release();
    } else {
        commit_in_engine(exception);
    }
    end_committed();
}

void Transaction::commit_in_engine(void* exception)
{
    if (is_direct_ && !finds_plain_stores.load(std::memory_order_relaxed)) {
        for (std::size_t i = 0; i < undo_.size(); ++i) {
            if (stillpoint_is_persistent(undo_[i].place) &&
                sp_spht_write(handle_, undo_[i].place, undo_[i].place, undo_[i].size) != SP_OK) {
                meet_conflict(exception);
            }
        }
    }
    for (void* const block : durable_freed_) {
        if (sp_spht_free(handle_, block) != SP_OK) {
            end_process(sp_last_error());
        }
    }
    const int code = sp_spht_commit(handle_);
    if (code == SP_E_CONFLICT) {
        roll_back(exception);
        start_again();
    }
    if (code == SP_E_TRANSACTION_TOO_LARGE) {
        end_refused(code, exception);
    }
    if (code != SP_OK) {
        note_failure(code);
    }
}

void Transaction::end_committed()
{
    depth_ = 0;
    handle_ = nullptr;
    undo_.shrink(0);
    checkpoints_.clear();
    private_.clear();
    exceptions_.forget();
    allocated_.clear();
    durable_allocated_.clear();
    durable_freed_.clear();
    undo_actions_.clear();
    for (const Block& freed : freed_) {
        freed.release(freed.block);
    }
    freed_.clear();
    if (!commit_actions_.empty()) {
        // An action may begin a transaction.
        const std::vector<ActionRecord> actions = std::exchange(commit_actions_, {});
        for (const ActionRecord& action : actions) {
            action.call(action.argument);
        }
    }
}

/// All but the part of the engine.
void Transaction::roll_back(void* exception)
{
    depth_ = 0;
    restore(0, start_.stack);
    checkpoints_.clear();
    private_.clear();
    exceptions_.roll_back(exception);
    handle_ = nullptr;
    freed_.clear();
    commit_actions_.clear();
    durable_allocated_.clear();
    durable_freed_.clear();
    for (const Block& block : std::exchange(allocated_, {})) {
        block.release(block.block);
    }
    const std::vector<ActionRecord> actions = std::exchange(undo_actions_, {});
    for (auto action = actions.rbegin(); action != actions.rend(); ++action) {
        action->call(action->argument);
    }
}

void Transaction::abort(std::uint32_t reason)
{
    if ((reason & user_retry) == 0 && (reason & outer_abort) == 0 && !checkpoints_.empty()) {
        cancel_nested();
    }
    if (is_irrevocable_) {
        end_process("a transaction was cancelled after it had called what cannot be undone");
    }
    sp_spht_transaction* const handle = handle_;
    roll_back();
    ended_by_ = SP_E_ABORTED;
    if (handle == nullptr) {
        GlobalLock::release();
    } else {
        sp_spht_abort(handle, (reason & user_retry) != 0 ? 1 : 0);
    }
    if ((reason & user_retry) != 0) {
        start_again();
    }
    stillpoint_itm_return_again(skip_transaction | restore_live_variables, &start_);
}

bool Transaction::roll_back_but_exception()
{
    if (is_irrevocable_) {
        return false;
    }
    sp_spht_transaction* const handle = handle_;
    keeps_private_ = true;
    restore(0, start_.stack);
    keeps_private_ = false;
    exceptions_.forget();
    std::erase_if(allocated_, [this](const Block& block) {
        return std::none_of(freed_.begin(), freed_.end(), [&](const Block& freed) { return freed.block == block.block; });
    });
    roll_back();
    if (handle == nullptr) {
        GlobalLock::release();
    } else {
        sp_spht_abort(handle, 0);
    }
    return true;
}

void Transaction::cancel_nested()
{
    static Registers thread_local start [[gnu::tls_model("initial-exec")]];
    const Checkpoint checkpoint = checkpoints_.back();
    restore(checkpoint.undo, checkpoint.start.stack);
    while (durable_allocated_.size() > checkpoint.durable_allocated) {
        if (sp_spht_free(handle_, durable_allocated_.back()) != SP_OK) {
            end_process(sp_last_error());
        }
        durable_allocated_.pop_back();
    }
    durable_freed_.resize(checkpoint.durable_freed);
    // Blocks of the nested transaction are freed at either end of the outermost one: until then no other thread may have them.
    freed_.resize(checkpoint.freed);
    freed_.insert(freed_.end(), allocated_.begin() + static_cast<std::ptrdiff_t>(checkpoint.allocated), allocated_.end());
    commit_actions_.resize(checkpoint.commit_actions);
    while (undo_actions_.size() > checkpoint.undo_actions) {
        const ActionRecord action = undo_actions_.back();
        undo_actions_.pop_back();
        action.call(action.argument);
    }
    depth_ = checkpoint.depth;
    id_ = checkpoint.id;
    start = checkpoint.start;
    checkpoints_.pop_back();
    set_ways();
    stillpoint_itm_return_again(skip_transaction | restore_live_variables, &start);
}

// ---- Blocks -----------------------------------------------------------------------------------

void Transaction::note_allocated(void* block, std::size_t bytes, Release release)
{
    allocated_.push_back({block, release});
    private_.add(block, bytes);
    is_plain_ = false;
}

void* Transaction::allocate_exception(std::size_t bytes)
{
    void* const object = exceptions_.allocate(bytes);
    is_plain_ = false;
    return object;
}

void* Transaction::allocate_durable(std::size_t bytes, std::size_t alignment_bytes)
{
    if (handle_ == nullptr) {
        void* const block = sp_aligned_alloc(alignment_bytes, bytes);
        if (block != nullptr) {
            note_allocated(block, bytes, sp_free);
        }
        return block;
    }
    void* const block = sp_spht_aligned_alloc(handle_, alignment_bytes, bytes);
    if (block != nullptr) {
        durable_allocated_.push_back(block);
    }
    return block;
}

void Transaction::free_durable(void* block)
{
    if (block == nullptr) {
        return;
    }
    if (handle_ == nullptr) {
        free_later(block, sp_free);
    } else {
        durable_freed_.push_back(block);
    }
}

}  // namespace stillpoint::itm
