#pragma once
// An open pool: its parts, its transactions, and how it is opened and closed.

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "engines/breeze/collection.hpp"
#include "engines/breeze/pool_parts.hpp"
#include "engines/breeze/transaction.hpp"
#include "engines/breeze/transaction_gate.hpp"
#include "os/futex.hpp"
#include "pool/pool.hpp"
#include "runtime/pool_services.hpp"

namespace stillpoint::breeze {

/// EngineFormat of breeze's pools: of mapped ones, and of those on a file, with a journal.
[[nodiscard]] const EngineFormat& pool_format(bool is_journaled = false) noexcept;
[[nodiscard]] bool is_journaled(const Pool& pool) noexcept;

struct OpenOptions {
    std::uintptr_t base_address = 0;  ///< 0: where the pool lay last, else another place
    unsigned threads = 0;             ///< of the scan; 0: one for each CPU, at most rewriters_max
    bool collect = false;
    bool stays = false;               ///< at no other place
    bool is_checked = false;          ///< freed objects are overwritten, and their blocks kept: see Zones::keep_freed()
    std::uint64_t journal_round_bytes = 0;  ///< on a file pages are brought up to date after so much; 0: as good
    bool counts_in_background = true;  ///< false: reference counts change in passes that the caller makes
    Findings* findings = nullptr;      ///< gets the damaged objects; nullptr: they are logged
    bool salvages = false;  ///< for SoundObjects: see PoolParts::is_salvaged; with `findings`
};

/// The figures of an opening.
struct OpenFigures {
    std::uint64_t objects = 0;
    std::uint64_t transactions_undone = 0;
    std::uint64_t pointers_rewritten = 0;
    std::uint64_t opening_ns = 0;
};

class BreezePool {
public:
    /// The header of a new pool's image.
    [[nodiscard]] static PoolHeader new_header(const Pool& pool) noexcept;
    /// Pool::CreateOptions::write_image of breeze's pools: the header alone. Errors: io.
    [[nodiscard]] static Result<void> format(Pool& pool);
    /// Compares the header of the pool's image with its checksum and with the pool. Errors: pool_corrupt.
    [[nodiscard]] static Result<void> check_header(const PoolHeader& header, const Pool& pool);
    /// Maps and recovers. Errors: those of nvm_pool_open.
    [[nodiscard]] static Result<std::unique_ptr<BreezePool>> open(Pool pool, const OpenOptions& options);
    ~BreezePool();
    BreezePool(const BreezePool&) = delete;
    BreezePool& operator=(const BreezePool&) = delete;

    /// Marks the pool as closed in an orderly way. No transaction runs.
    [[nodiscard]] Result<void> close();
    /// In a child made by fork: the pool is the parent's.
    void detach_after_fork() noexcept;

    /// A log, and its transaction, for the calling thread. Waits while all are in use.
    [[nodiscard]] Transaction& begin() noexcept;
    void end(Transaction& transaction) noexcept;
    [[nodiscard]] bool is_busy() const noexcept { return gate_.is_busy(); }

    [[nodiscard]] PoolParts& parts() noexcept { return parts_; }
    [[nodiscard]] const OpenFigures& figures() const noexcept { return figures_; }
    [[nodiscard]] Result<CollectionFigures> collect();
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    std::atomic<bool> detached{false};

private:
    explicit BreezePool(Pool pool) : pool_(std::move(pool)) {}
    [[nodiscard]] Result<void> map(const OpenOptions& options);
    [[nodiscard]] Result<void> begin_run();
    [[nodiscard]] Result<void> prepare_parts(const OpenOptions& options);
    [[nodiscard]] Result<void> recover(unsigned threads);
    [[nodiscard]] Result<void> undo_transactions();
    void end_old_transactions() noexcept;
    /// Into the page of statistics; `self`: the pool.
    static void publish_figures(void* self) noexcept;

    Pool pool_;
    std::string path_;
    PoolParts parts_;
    std::array<Transaction, logs_max> transactions_;
    TransactionGate gate_;
    os::FutexLock collection_lock_;
    OpenFigures figures_;
    PoolFigures page_;
};

}  // namespace stillpoint::breeze
