// Every function of the C API that can fail says why in sp_last_error(), each time: no caller reads the reason of an older failure.
// A table of failures; and a comparison of the table with the headers, so that a new function is not forgotten.

#include <cerrno>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "open_pool.hpp"
#include "stillpoint/nvthreads.h"
#include "stillpoint/pronto.h"
#include "stillpoint/breeze.h"
#include "stillpoint/respct.h"
#include "stillpoint/spht.h"

namespace {

/// A failure whose text no other call has.
void leave_an_older_text()
{
    ASSERT_EQ(sp_open("/nowhere", "option_of_the_older_text=1"), SP_E_INVALID_ARGUMENT);
    ASSERT_NE(std::string(sp_last_error()).find("option_of_the_older_text"), std::string::npos);
}

sp_respct_layout layout_of(std::uint32_t size_bytes) { return {"thing", size_bytes, 16, nullptr, 0, 0, 0}; }

struct Failing {
    const char* function;
    const char* text;          ///< regular expression
    std::function<int()> call; ///< its error; -1: a pointer that is not NULL, or no error
    int error;                 ///< sp_error, or errno where a pointer is returned
};

int errno_of(const void* result) { return result == nullptr ? errno : -1; }

constexpr std::size_t huge = SIZE_MAX / 2;
std::uint64_t number = 0;
int error_code = 0;
sp_respct_layout layout = layout_of(64);

/// Failures of arguments: the same with and without a pool.
std::vector<Failing> failures_of_arguments()
{
    static const std::string long_name(80, 'n');
    return {
        {"sp_open", "needs a path", [] { return sp_open(nullptr, nullptr); }, SP_E_INVALID_ARGUMENT},
        {"sp_copy", "needs a path", [] { return sp_copy(nullptr); }, SP_E_INVALID_ARGUMENT},
        {"sp_copy_since", "that of a base", [] { return sp_copy_since("new.increment", nullptr); }, SP_E_INVALID_ARGUMENT},
        {"sp_open", "no option 'trucker'", [] { return sp_open("x", "trucker=1"); }, SP_E_INVALID_ARGUMENT},
        {"sp_lock_ignore", "needs a lock", [] { return sp_lock_ignore(nullptr); }, SP_E_INVALID_ARGUMENT},
        {"sp_calloc", "objects of", [] { return errno_of(sp_calloc(huge, 3)); }, ENOMEM},
        {"sp_malloc", "bytes", [] { return errno_of(sp_malloc(huge)); }, ENOMEM},
        {"sp_realloc", "bytes",
         [] {
             void* const block = sp_malloc(8);
             const int code = errno_of(sp_realloc(block, huge));
             sp_free(block);  // A block that cannot be made larger stays as it is.
             return code;
         },
         ENOMEM},
        {"sp_aligned_alloc", "alignment of 3 ", [] { return errno_of(sp_aligned_alloc(3, 8)); }, EINVAL},
        {"sp_aligned_alloc", "alignment of 131072 ", [] { return errno_of(sp_aligned_alloc(131072, 8)); }, EINVAL},
        {"sp_aligned_alloc", "bytes", [] { return errno_of(sp_aligned_alloc(64, huge)); }, ENOMEM},
        {"sp_root", "1 to 79 bytes", [] { return errno_of(sp_root("", 8)); }, EINVAL},
        {"sp_root", "has 8 bytes, not 16", [] { return sp_root("eight", 8) == nullptr ? -1 : errno_of(sp_root("eight", 16)); }, EINVAL},
        {"sp_root", "huge|bytes", [] { return errno_of(sp_root("huge", huge)); }, ENOMEM},
        {"sp_root_find", "1 to 79 bytes", [] { return errno_of(sp_root_find(long_name.c_str(), nullptr)); }, EINVAL},
        {"sp_root_find", "no durable object named \"missing\"", [] { return errno_of(sp_root_find("missing", nullptr)); }, ENOENT},
        {"sp_root_delete", "1 to 79 bytes", [] { return sp_root_delete(nullptr); }, SP_E_INVALID_ARGUMENT},
        {"sp_root_delete", "no durable object named \"missing\"", [] { return sp_root_delete("missing"); }, SP_E_HANDLE_MISSING},
        {"sp_heap_stats", "place", [] { return sp_heap_stats(nullptr); }, SP_E_INVALID_ARGUMENT},
        {"sp_statistic", "place", [] { return sp_statistic("epoch", nullptr); }, SP_E_INVALID_ARGUMENT},
        {"nvmalloc", "1 to 79 bytes", [] { return errno_of(nvmalloc(8, "")); }, EINVAL},
        {"nvmalloc", "bytes", [] { return errno_of(nvmalloc(huge, nullptr)); }, ENOMEM},
        {"nvmalloc", "bytes", [] { return errno_of(nvmalloc(huge, "named")); }, ENOMEM},
        {"nvrecover", "no durable object named \"missing\"", [] { return errno_of(nvrecover(nullptr, 0, "missing")); }, ENOENT},
        {"sp_respct_allocate", "needs a layout", [] { return errno_of(sp_respct_allocate(nullptr, 1)); }, EINVAL},
        {"sp_respct_allocate", "objects of", [] { return errno_of(sp_respct_allocate(&layout, huge)); }, ENOMEM},
        {"sp_respct_allocate_zeroed", "needs a layout", [] { return errno_of(sp_respct_allocate_zeroed(nullptr, 1)); }, EINVAL},
        {"sp_respct_root", "needs a layout", [] { return errno_of(sp_respct_root("r", nullptr, 1)); }, EINVAL},
        {"sp_respct_root", "objects of", [] { return errno_of(sp_respct_root("r", &layout, huge)); }, ENOMEM},
        {"sp_respct_root", "1 to 79 bytes", [] { return errno_of(sp_respct_root("", &layout, 1)); }, EINVAL},
        {"sp_pronto_group_end", "no group", [] { return sp_pronto_group_end(nullptr); }, SP_E_INVALID_ARGUMENT},
        {"sp_pronto_register", "no type", [] { return sp_pronto_register(nullptr); }, SP_E_INVALID_ARGUMENT},
        {"sp_spht_begin", "unknown flags", [] { return sp_spht_begin(1024, &error_code) == nullptr ? error_code : -1; },
         SP_E_INVALID_ARGUMENT},
        {"sp_spht_run", "unknown flags", [] { return sp_spht_run(nullptr, nullptr, 1024); }, SP_E_INVALID_ARGUMENT},
        {"sp_spht_commit", "not inside a transaction", [] { return sp_spht_commit(nullptr); }, SP_E_NO_TRANSACTION},
        {"sp_spht_abort", "not inside a transaction", [] { return sp_spht_abort(nullptr, 0); }, SP_E_NO_TRANSACTION},
        {"sp_spht_aligned_alloc", "alignment of 3 ", [] { return errno_of(sp_spht_aligned_alloc(nullptr, 3, 8)); }, EINVAL},
    };
}

/// Failures of calls that take a pool, with a pointer that is not an open one.
std::vector<Failing> failures_of_a_foreign_pool()
{
    static int other = 0;
    static auto* const pool = reinterpret_cast<sp_pool*>(&other);
    static sp_heap_statistics figures;
    constexpr const char* text = "is not an open pool";
    return {
        {"sp_pool_open", "needs a path", [] { return sp_pool_open("", nullptr) == nullptr ? 1 : -1; }, 1},
        {"sp_pool_open", "no option 'trucker'", [] { return sp_pool_open("x", "trucker=1") == nullptr ? 1 : -1; }, 1},
        {"sp_pool_close", text, [] { return sp_pool_close(pool); }, SP_E_NOT_OPEN},
        {"sp_pool_close", text, [] { return sp_pool_close(nullptr); }, SP_E_NOT_OPEN},
        {"sp_pool_use", text, [] { return sp_pool_use(pool, nullptr); }, SP_E_NOT_OPEN},
        {"sp_pool_start_kind", text, [] { return static_cast<int>(sp_pool_start_kind(pool)); }, SP_START_VOLATILE},
        {"sp_pool_malloc", text, [] { return errno_of(sp_pool_malloc(pool, 8)); }, EINVAL},
        {"sp_pool_calloc", text, [] { return errno_of(sp_pool_calloc(pool, 1, 8)); }, EINVAL},
        {"sp_pool_aligned_alloc", text, [] { return errno_of(sp_pool_aligned_alloc(pool, 64, 8)); }, EINVAL},
        {"sp_pool_root", text, [] { return errno_of(sp_pool_root(pool, "r", 8)); }, EINVAL},
        {"sp_pool_root_find", text, [] { return errno_of(sp_pool_root_find(pool, "r", nullptr)); }, EINVAL},
        {"sp_pool_root_delete", text, [] { return sp_pool_root_delete(pool, "r"); }, SP_E_NOT_OPEN},
        {"sp_pool_epoch", text, [] { return static_cast<int>(sp_pool_epoch(pool)); }, 0},
        {"sp_pool_durable_epoch", text, [] { return static_cast<int>(sp_pool_durable_epoch(pool)); }, 0},
        {"sp_pool_wait_durable", text, [] { return sp_pool_wait_durable(pool, 1, 0); }, SP_E_NOT_OPEN},
        {"sp_pool_checkpoint", text, [] { return sp_pool_checkpoint(pool); }, SP_E_NOT_OPEN},
        {"sp_pool_copy", text, [] { return sp_pool_copy(pool, "new.pool"); }, SP_E_NOT_OPEN},
        {"sp_pool_copy_since", text, [] { return sp_pool_copy_since(pool, "new.increment", "base.pool"); }, SP_E_NOT_OPEN},
        {"sp_pool_heap_stats", text, [] { return sp_pool_heap_stats(pool, &figures); }, SP_E_NOT_OPEN},
        {"sp_pool_statistic", text, [] { return sp_pool_statistic(pool, "epoch", &number); }, SP_E_NOT_OPEN},
    };
}

/// Failures of calls that take a pool of objects with types, with a pointer that is not an open one.
std::vector<Failing> failures_of_a_foreign_object_pool()
{
    static int other = 0;
    static auto* const pool = reinterpret_cast<NVM_POOL*>(&other);
    static nvm_object_facts object;
    static nvm_pool_facts facts;
    static nvm_weak weak;
    constexpr const char* text = "is not an open pool";
    const auto is_null = [](const void* result) { return result == nullptr ? 1 : -1; };
    return {
        {"nvm_pool_create", "needs a path", [=] { return is_null(nvm_pool_create("", 1)); }, 1},
        {"nvm_pool_create_with", "cannot create", [=] { return is_null(nvm_pool_create_with("/nowhere/x", 8 << 20, nullptr)); }, 1},
        {"nvm_pool_open", "needs a path", [=] { return is_null(nvm_pool_open(nullptr)); }, 1},
        {"nvm_pool_open_with", "cannot open", [=] { return is_null(nvm_pool_open_with("/nowhere/x", nullptr)); }, 1},
        {"nvm_pool_obtain", "needs a path", [=] { return is_null(nvm_pool_obtain("", 8 << 20)); }, 1},
        {"nvm_pool_obtain_root", text, [=] { return is_null(nvm_pool_obtain_root(pool, 1, 8)); }, 1},
        {"nvm_pool_close", text, [] { return nvm_pool_close(pool); }, SP_E_NOT_OPEN},
        {"nvm_pool_close", text, [] { return nvm_pool_close(nullptr); }, SP_E_NOT_OPEN},
        {"nvm_pool_set_root", text, [] { return nvm_pool_set_root(pool, nullptr); }, SP_E_NOT_OPEN},
        {"nvm_pool_root", text, [=] { return is_null(nvm_pool_root(pool)); }, 1},
        {"nvm_alloc", text, [=] { return is_null(nvm_alloc(pool, 1, 8)); }, 1},
        {"nvm_free", text, [] { return nvm_free(pool, &other); }, SP_E_NOT_OPEN},
        {"nvm_object", text, [] { return nvm_object(pool, &other, &object); }, SP_E_NOT_OPEN},
        {"nvm_weak_set", text, [] { return nvm_weak_set(pool, &weak, &other); }, SP_E_NOT_OPEN},
        {"nvm_tx_begin", text, [] { return nvm_tx_begin(pool); }, SP_E_NOT_OPEN},
        {"nvm_tx_commit", text, [] { return nvm_tx_commit(pool); }, SP_E_NOT_OPEN},
        {"nvm_tx_commit_early", text, [] { return nvm_tx_commit_early(pool); }, SP_E_NOT_OPEN},
        {"nvm_wait_durable", text, [] { return nvm_wait_durable(pool); }, SP_E_NOT_OPEN},
        {"nvm_tx_abort", text, [] { return nvm_tx_abort(pool); }, SP_E_NOT_OPEN},
        {"nvm_drain", text, [] { return nvm_drain(pool); }, SP_E_NOT_OPEN},
        {"nvm_collect", text, [] { return nvm_collect(pool, nullptr); }, SP_E_NOT_OPEN},
        {"nvm_facts", text, [] { return nvm_facts(pool, &facts); }, SP_E_NOT_OPEN},
        {"nvm_type_register", "needs a type", [] { return nvm_type_register(nullptr); }, SP_E_INVALID_ARGUMENT},
    };
}

/// One failure of each call that needs a log of operations.
std::vector<Failing> failures_without_a_log(int error, const char* text)
{
    static sp_pronto_operation operation;
    static sp_pronto_ticket ticket;
    ticket = {&number, 1};
    return {
        {"sp_pronto_object", text, [] { return sp_pronto_object(nullptr, "o", 0, nullptr, 0, &error_code) == nullptr ? error_code : -1; },
         error},
        {"sp_pronto_delete", text, [] { return sp_pronto_delete("o"); }, error},
        {"sp_pronto_begin", text, [] { return sp_pronto_begin(&operation, nullptr, 0, 0, &error_code) == nullptr ? error_code : -1; },
         error},
        {"sp_pronto_commit", text, [] { return sp_pronto_commit(&operation); }, error},
        {"sp_pronto_commit_early", text, [] { return sp_pronto_commit_early(&operation); }, error},
        {"sp_pronto_commit_async", text, [] { return sp_pronto_commit_async(&operation, &ticket); }, error},
        {"sp_pronto_wait", text, [] { return sp_pronto_wait(&ticket, 0); }, error},
        {"sp_pronto_wait_or_defer", text, [] { return sp_pronto_wait_or_defer(&ticket); }, error},
        {"sp_pronto_end", text, [] { return sp_pronto_end(&operation, 0); }, error},
        {"sp_pronto_commit_current", text, [] { return sp_pronto_commit_current(); }, error},
        {"sp_pronto_wait_read", text, [] { return sp_pronto_wait_read(&number); }, error},
        {"sp_pronto_numbers", text, [] { return sp_pronto_numbers(&number, &number, &number); }, error},
    };
}

/// One failure of each call that needs a pool with transactions.
std::vector<Failing> failures_without_transactions(int error, const char* text)
{
    return {
        {"sp_spht_begin", text, [] { return sp_spht_begin(0, &error_code) == nullptr ? error_code : -1; }, error},
        {"sp_spht_run", text, [] { return sp_spht_run(nullptr, nullptr, 0); }, error},
    };
}

/// Failures inside the calling thread's transaction, and of one that has ended.
std::vector<Failing> failures_of_transactions()
{
    constexpr int actions_max = 1 << 20;
    sp_spht_transaction* const ended = sp_spht_current();
    return {
        {"sp_spht_malloc", "bytes", [] { return errno_of(sp_spht_malloc(sp_spht_current(), huge)); }, ENOMEM},
        {"sp_spht_aligned_alloc", "alignment of 131072 ", [] { return errno_of(sp_spht_aligned_alloc(sp_spht_current(), 131072, 8)); },
         EINVAL},
        {"sp_spht_free", "no live block", [] { return sp_spht_free(sp_spht_current(), &number); }, SP_E_INVALID_ARGUMENT},
        {"sp_spht_on_commit", "too many actions",
         [] {
             int error = SP_OK;
             for (int i = 0; i <= actions_max && error == SP_OK; ++i) {
                 error = sp_spht_on_commit(sp_spht_current(), [](void*) {}, nullptr);
             }
             return error;
         },
         SP_E_NO_MEMORY},
        {"sp_spht_on_abort", "too many actions", [] { return sp_spht_on_abort(sp_spht_current(), [](void*) {}, nullptr); }, SP_E_NO_MEMORY},
        {"sp_spht_abort", "not inside a transaction",
         [ended] {
             EXPECT_EQ(sp_spht_abort(sp_spht_current(), 0), SP_OK);
             return sp_spht_abort(ended, 0);
         },
         SP_E_NO_TRANSACTION},
        {"sp_spht_commit", "not inside a transaction", [ended] { return sp_spht_commit(ended); }, SP_E_NO_TRANSACTION},
    };
}

/// Failures of calls that need a pool, in a process that has none, or none any more.
std::vector<Failing> failures_of_waits(int error, const char* text)
{
    return {
        {"sp_close", text, [] { return sp_close(); }, error},
        {"sp_wait_durable", text, [] { return sp_wait_durable(1, 0); }, error},
        {"sp_wait_durable_at", text, [] { return sp_wait_durable_at(1, SP_LEVEL_LOCAL, 0); }, error},
        {"sp_checkpoint", text, [] { return sp_checkpoint(); }, error},
        {"sp_copy", text, [] { return sp_copy("new.pool"); }, error},
        {"sp_copy_since", text, [] { return sp_copy_since("new.increment", "base.pool"); }, error},
        {"sp_pronto_snapshot", text, [] { return sp_pronto_snapshot(); }, error},
    };
}

std::vector<Failing> failures_without_a_pool()
{
    return {
        {"sp_heap_stats", "no pool is open",
         [] {
             sp_heap_statistics figures;
             return sp_heap_stats(&figures);
         },
         SP_E_NOT_OPEN},
        {"sp_statistic", "no pool is open", [] { return sp_statistic("epoch", &number); }, SP_E_NOT_OPEN},
    };
}

std::vector<Failing> failures_with_a_pool()
{
    return {
        {"sp_open", "open already", [] { return sp_open("x", nullptr); }, SP_E_ALREADY_OPEN},
        {"sp_statistic", "\"nonsense\" is not a statistic", [] { return sp_statistic("nonsense", &number); }, SP_E_INVALID_ARGUMENT},
        {"sp_wait_durable", "epoch|deadline|ms", [] { return sp_wait_durable(sp_epoch() + 1000, 0); }, SP_E_TIMED_OUT},
        {"sp_wait_durable_at", "no replica", [] { return sp_wait_durable_at(1, SP_LEVEL_REMOTE, 0); }, SP_E_UNSUPPORTED},
        {"sp_malloc", "never grows beyond", [] { return errno_of(sp_malloc(9 << 20)); }, ENOMEM},
    };
}

void expect_own_text(const std::vector<Failing>& table)
{
    for (const Failing& failing : table) {
        leave_an_older_text();
        errno = 0;
        const int error = failing.call();
        EXPECT_EQ(error, failing.error) << failing.function << ": " << sp_last_error();
        EXPECT_TRUE(std::regex_search(sp_last_error(), std::regex(failing.text)))
            << failing.function << " leaves the text \"" << sp_last_error() << "\", which has no \"" << failing.text << '"';
    }
}

TEST(LastError, every_failure_without_a_pool_has_a_text_of_its_own)
{
    expect_own_text(failures_of_arguments());
    expect_own_text(failures_of_a_foreign_pool());
    expect_own_text(failures_of_a_foreign_object_pool());
    expect_own_text(failures_without_a_pool());
    expect_own_text(failures_of_waits(SP_E_NOT_OPEN, "no pool is open"));
    expect_own_text(failures_without_a_log(SP_E_NOT_OPEN, "need a pool"));
    expect_own_text(failures_without_transactions(SP_E_NOT_OPEN, "need a pool"));
}

class LastErrorWith : public ::testing::TestWithParam<const char*> {};

TEST_P(LastErrorWith, every_failure_has_a_text_of_its_own)
{
    const std::string engine = GetParam();
    const OpenPool pool("interval_ms=3600000 engine=" + engine);
    expect_own_text(failures_of_arguments());
    expect_own_text(failures_of_a_foreign_pool());
    expect_own_text(failures_of_a_foreign_object_pool());
    expect_own_text(failures_with_a_pool());
    if (engine != "pronto") {
        expect_own_text(failures_without_a_log(SP_E_POOL_ENGINE, "need a pool of the engine"));
    }
    if (engine == "spht") {
        ASSERT_NE(sp_spht_begin(0, nullptr), nullptr) << sp_last_error();
        expect_own_text(failures_of_transactions());
    } else {
        expect_own_text(failures_without_transactions(SP_E_POOL_ENGINE, "need a pool of the engine"));
    }
    sp_fase_begin();
    expect_own_text(failures_of_waits(SP_E_INSIDE_FASE, "holds a lock"));
    sp_fase_end();
}

TEST_P(LastErrorWith, every_failure_in_a_child_of_fork_has_a_text_of_its_own)
{
    const std::string engine = GetParam();
    const OpenPool pool("interval_ms=3600000 engine=" + engine);
    const pid_t child = fork();
    if (child == 0) {
        expect_own_text(failures_of_waits(SP_E_DETACHED, "made by fork"));
        expect_own_text(failures_without_a_log(SP_E_DETACHED, "made by fork"));
        expect_own_text(failures_without_transactions(SP_E_DETACHED, "made by fork"));
        _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

INSTANTIATE_TEST_SUITE_P(Engines, LastErrorWith, ::testing::Values("pmthreads", "respct", "pronto", "spht"));

/// Functions that leave no text: they return no error, or no other than SP_E_CONFLICT. nvm_log, nvm_log_ahead and nvm_weak_get fail on
/// memory of an open pool of objects alone: src/engines/breeze/api_test.cpp. sp_set_log_callback fails without memory only.
// clang-format off
const std::set<std::string> cannot_fail = {
    "sp_start_kind", "sp_last_error", "sp_free", "sp_usable_size", "sp_fase_begin", "sp_fase_end", "sp_fase_pause", "sp_fase_resume",
    "sp_epoch", "sp_durable_epoch", "sp_pool_default", "sp_pool_current", "sp_pool_of", "sp_version", "sp_set_log_callback",
    "sp_sections_are_atomic",
    "sp_error_string", "crashed", "nvfree", "sp_pronto_is_object", "sp_pronto_defer_begin", "sp_pronto_defer_end",
    "sp_pronto_group_begin", "sp_pronto_inside_operation",
    "sp_pronto_start_logging", "sp_respct_first_update", "sp_respct_add_modified", "sp_respct_restart_point", "sp_respct_bind_frame",
    "sp_respct_checkpoint_allow", "sp_respct_checkpoint_prevent", "sp_respct_lock_slowly", "sp_respct_try_lock_slowly",
    "sp_respct_unlock_slowly", "sp_respct_wait", "sp_respct_notify_one", "sp_respct_notify_all", "sp_respct_check_wait",
    "sp_mark_written", "sp_spht_current", "sp_spht_read_word", "sp_spht_write_word", "sp_spht_read", "sp_spht_write",
    "nvm_pool_of", "nvm_log", "nvm_log_at", "nvm_log_ahead", "nvm_log_wait", "nvm_weak_get"};
// clang-format on

std::set<std::string> declared_functions()
{
    const std::regex declaration(R"(\n(?!static|typedef|#)(?:NVM_)?[a-zP][a-zA-Z_0-9 *]*[ *]((?:sp_|nv(?!hooks))\w+|crashed)\([^;{]*\);)");
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(STILLPOINT_HEADERS)) {
        // The functions of itm.h are libstillpoint-itm's: tests/itm and tests/spht have what they return.
        if (entry.path().extension() != ".h" || entry.path().filename() == "itm.h") {
            continue;
        }
        std::ostringstream all;
        all << std::ifstream(entry.path()).rdbuf();
        const std::string text = all.str();
        for (auto found = std::sregex_iterator(text.begin(), text.end(), declaration); found != std::sregex_iterator(); ++found) {
            names.insert((*found)[1]);
        }
    }
    return names;
}

TEST(LastError, the_table_has_every_function_of_the_headers)
{
    std::set<std::string> known = cannot_fail;
    for (const auto& table : {failures_of_arguments(), failures_of_a_foreign_pool(), failures_of_a_foreign_object_pool(),
                              failures_without_a_pool(), failures_of_waits(0, ""), failures_without_a_log(0, ""),
                              failures_without_transactions(0, ""), failures_of_transactions(), failures_with_a_pool()}) {
        for (const Failing& failing : table) {
            known.insert(failing.function);
        }
    }
    EXPECT_EQ(known, declared_functions());
}

}  // namespace
