#include "runtime/statistics.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "os/clock.hpp"
#include "os/file_size_limit.hpp"
#include "os/own_descriptors.hpp"
#include "runtime/histogram.hpp"
#include "runtime/pool_services.hpp"

namespace stillpoint {

namespace {

/// No process can shrink the page under a reader (SIGBUS) or write to it from outside.
constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE;

/// The place for figures of pools that have no shared page: they are not read.
constinit Statistics private_words{};

struct Page {
    std::atomic<Statistics*> words{&private_words};
    int shared_file = -1;
    LogHistogram stop_times{};
};
constinit std::array<Page, statistics_pages_max> pages{};

[[gnu::tls_model("initial-exec")]] constinit thread_local unsigned own_number = 0;

Page& own_page() noexcept { return pages[own_number]; }

template <std::size_t Size>
void copy_text(std::array<char, Size>& to, std::string_view from) noexcept
{
    const std::size_t length = std::min(from.size(), Size - 1);
    std::memcpy(to.data(), from.data(), length);
    to[length] = '\0';
}

Result<Statistics*> map_fresh_page(int file)
{
    const os::FileSizeSignalHeld held;
    if (fchmod(file, 0600) != 0 || ftruncate(file, static_cast<off_t>(statistics_file_bytes)) != 0) {
        return fail(SP_E_IO, errno, "the statistics page cannot be sized: {}", strerror(errno));
    }
    void* page = mmap(nullptr, statistics_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "the statistics page cannot be mapped: {}", strerror(errno));
    }
    // Kernels before 5.1 lack FUTURE_WRITE; the other seals are what readers insist on.
    if (fcntl(file, F_ADD_SEALS, wanted_seals) != 0) {
        fcntl(file, F_ADD_SEALS, wanted_seals & ~F_SEAL_FUTURE_WRITE);
    }
    return static_cast<Statistics*>(page);
}

struct SharedPage {
    Statistics* words;
    int file;
};

/// Errors: io, no_memory.
Result<SharedPage> make_page(std::string_view pool_path, const std::array<std::uint8_t, 16>& pool_uuid, std::string_view engine_name,
                             const StatisticsTable& table)
{
    const int file = os::claim_descriptor(memfd_create(Statistics::file_name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file < 0) {
        return fail(SP_E_IO, errno, "the statistics page cannot be made: {}", strerror(errno));
    }
    auto mapped = map_fresh_page(file);
    if (!mapped) {
        os::close_descriptor(file);
        return pass_on(mapped.error());
    }
    Statistics& page = **mapped;
    page.version = Statistics::expected_version;
    page.row_count = table.row_count;
    page.table_fingerprint = table.fingerprint;
    page.process_id = static_cast<std::uint64_t>(getpid());
    page.started_ns = os::monotonic_ns();
    page.pool_uuid = pool_uuid;
    copy_text(page.engine_name, engine_name);
    copy_text(page.program_name, program_invocation_short_name);
    char absolute[PATH_MAX];
    const std::string path{pool_path};
    copy_text(page.pool_path, realpath(path.c_str(), absolute) != nullptr ? std::string_view{absolute} : pool_path);
    std::atomic_thread_fence(std::memory_order_release);
    page.magic = Statistics::expected_magic;  // Last: a reader that sees it sees the rest.
    return SharedPage{&page, file};
}

}  // namespace

constinit StatisticsTableOfProgram statistics_table_of_program = nullptr;
constinit Statistics PoolFigures::private_words{};

Result<void> PoolFigures::open(std::string_view pool_path, const std::array<std::uint8_t, 16>& pool_uuid, std::string_view engine_name)
{
    if (statistics_table_of_program == nullptr) {
        return {};
    }
    const auto page = make_page(pool_path, pool_uuid, engine_name, statistics_table_of_program());
    if (!page) {
        return pass_on(page.error());
    }
    words_ = page->words;
    file_ = page->file;
    return {};
}

void PoolFigures::close() noexcept
{
    if (file_ >= 0) {
        os::close_descriptor(std::exchange(file_, -1));
        munmap(std::exchange(words_, &private_words), statistics_file_bytes);
    }
}

Statistics& statistics() noexcept { return statistics_of(own_number); }

Statistics& statistics_of(unsigned number) noexcept { return *pages[number].words.load(std::memory_order_acquire); }

StatisticsScope::StatisticsScope(unsigned number) noexcept : before_(std::exchange(own_number, number)) {}

StatisticsScope::~StatisticsScope() { own_number = before_; }

unsigned StatisticsScope::current() noexcept { return own_number; }

Result<void> statistics_open(std::string_view pool_path, const std::array<std::uint8_t, 16>& pool_uuid, std::string_view engine_name,
                             const StatisticsTable& table)
{
    statistics_close();
    const auto page = make_page(pool_path, pool_uuid, engine_name, table);
    if (!page) {
        return pass_on(page.error());
    }
    Page& own = own_page();
    own.shared_file = page->file;
    own.stop_times = {};
    own.words.store(page->words, std::memory_order_release);
    return {};
}

void statistics_close() noexcept
{
    // The page stays mapped: another thread may be about to store into it. One per sp_open.
    Page& own = own_page();
    own.words.store(&private_words, std::memory_order_release);
    if (own.shared_file >= 0) {
        os::close_descriptor(std::exchange(own.shared_file, -1));
    }
}

void record_stop_time(std::uint64_t stop_ns) noexcept
{
    LogHistogram& stop_times = own_page().stop_times;
    stop_times.record(stop_ns);
    Statistics& words = statistics();
    if (stop_ns > words.stop_ns_max.load(std::memory_order_relaxed)) {
        words.stop_ns_max.store(stop_ns, std::memory_order_relaxed);
    }
    // The larger first: read_statistics() takes them in the other order.
    words.stop_ns_p99.store(stop_times.quantile(990), std::memory_order_release);
    words.stop_ns_p50.store(stop_times.quantile(500), std::memory_order_release);
    words.stop_ns_last.store(stop_ns, std::memory_order_release);
}

}  // namespace stillpoint
