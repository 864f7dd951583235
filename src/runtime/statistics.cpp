#include "runtime/statistics.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "core/units.hpp"
#include "os/clock.hpp"
#include "os/file_size_limit.hpp"
#include "os/own_descriptors.hpp"
#include "runtime/engine.hpp"
#include "runtime/histogram.hpp"

namespace stillpoint {

namespace {

constexpr const char* memfd_name = "stillpoint-statistics";
constexpr std::string_view memfd_link = "/memfd:stillpoint-statistics";
/// Nobody can shrink the page under a reader (SIGBUS) or write to it from outside.
constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE;
constexpr std::size_t shared_bytes = round_up(sizeof(Statistics), page_bytes);

/// All rows in one place.
struct AllRows {
    std::array<StatisticRow, 128> rows{};
    std::size_t count = 0;

    void add(const StatisticRow& row)
    {
        if (count == rows.size() || row.engine_word >= Statistics::engine_words_max) {
            std::abort();  // At the first start of a build with too many statistics.
        }
        rows[count++] = row;
    }
};

AllRows collect_rows()
{
    constexpr StatisticRow general[] = {
#define STATISTIC(name, unit, sentence) {#name, unit, sentence, &Statistics::name},
#include "runtime/statistics.inc"
#undef STATISTIC
    };
    AllRows all;
    for (const StatisticRow& row : general) {
        all.add(row);
    }
    for (const EngineDriver& driver : engine_drivers()) {
        for (std::size_t word = 0; word < driver.statistics.size(); ++word) {
            StatisticRow row = driver.statistics[word];
            row.engine = driver.format.name;
            row.engine_word = word;
            all.add(row);
        }
    }
    return all;
}

std::uint64_t fingerprint() noexcept
{
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const auto& row : statistic_rows()) {
        for (const char c : row.name) {
            hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
        }
        hash = (hash ^ 0xffu) * 0x100000001b3u;
    }
    return hash;
}

constinit Statistics private_words{};
constinit std::atomic<Statistics*> current{&private_words};
constinit int shared_file = -1;
constinit LogHistogram stop_times{};

template <std::size_t Size>
void copy_text(std::array<char, Size>& to, std::string_view from) noexcept
{
    const std::size_t length = std::min(from.size(), Size - 1);
    std::memcpy(to.data(), from.data(), length);
    to[length] = '\0';
}

template <std::size_t Size>
std::string_view terminated(const std::array<char, Size>& text) noexcept
{
    return {text.data(), strnlen(text.data(), Size - 1)};
}

Result<Statistics*> map_fresh_page(int file)
{
    const os::FileSizeSignalHeld held;
    if (fchmod(file, 0600) != 0 || ftruncate(file, static_cast<off_t>(shared_bytes)) != 0) {
        return fail(SP_E_IO, errno, "the statistics page cannot be sized: {}", strerror(errno));
    }
    void* page = mmap(nullptr, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "the statistics page cannot be mapped: {}",
                    strerror(errno));
    }
    // Kernels before 5.1 lack FUTURE_WRITE; the other seals are what readers insist on.
    if (fcntl(file, F_ADD_SEALS, wanted_seals) != 0) {
        fcntl(file, F_ADD_SEALS, wanted_seals & ~F_SEAL_FUTURE_WRITE);
    }
    return static_cast<Statistics*>(page);
}

/// Opens the descriptor of `process` that is its statistics page; -1: it has none, -2: no permission.
int find_page_of(pid_t process, int& os_error)
{
    char folder[64];
    *fmt::format_to_n(folder, sizeof folder - 1, "/proc/{}/fd", process).out = '\0';
    DIR* entries = opendir(folder);
    if (entries == nullptr) {
        os_error = errno;
        return errno == EACCES || errno == EPERM ? -2 : -1;
    }
    int found = -1;
    while (const dirent* entry = readdir(entries)) {
        char target[128];
        const ssize_t length = readlinkat(dirfd(entries), entry->d_name, target, sizeof target);
        if (length > 0 &&
            std::string_view{target, static_cast<std::size_t>(length)}.starts_with(memfd_link)) {
            // The process may put something else under that number meanwhile: a FIFO must not hold the reader up.
            found = openat(dirfd(entries), entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
            os_error = errno;
            if (found < 0) {
                found = -2;
            }
            break;
        }
    }
    closedir(entries);
    return found;
}

Result<const Statistics*> map_foreign_page(int file, pid_t process)
{
    struct stat facts{};
    const int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(file, &facts) != 0 ||
        facts.st_size < static_cast<off_t>(sizeof(Statistics::magic) + 8)) {
        return fail(SP_E_POOL_CORRUPT, 0, "process {}: its statistics page is not a sealed one",
                    process);
    }
    if (facts.st_size != static_cast<off_t>(shared_bytes)) {
        return fail(SP_E_POOL_VERSION, 0,
                    "process {}: its statistics have another size; use the stillpoint command of "
                    "the version it runs with",
                    process);
    }
    void* mapped = mmap(nullptr, shared_bytes, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        return fail(SP_E_IO, errno, "process {}: its statistics cannot be mapped: {}", process,
                    strerror(errno));
    }
    const auto* page = static_cast<const Statistics*>(mapped);
    if (page->magic != Statistics::expected_magic) {
        munmap(mapped, shared_bytes);
        return fail(SP_E_POOL_CORRUPT, 0, "process {}: its statistics page has no magic", process);
    }
    if (page->version != Statistics::expected_version || page->row_count != statistic_rows().size() ||
        page->table_fingerprint != fingerprint()) {
        munmap(mapped, shared_bytes);
        return fail(SP_E_POOL_VERSION, 0,
                    "process {}: another version of Stillpoint writes its statistics; use the "
                    "stillpoint command of that version",
                    process);
    }
    return page;
}

}  // namespace

std::span<const StatisticRow> statistic_rows() noexcept
{
    static const AllRows all = collect_rows();
    return {all.rows.data(), all.count};
}

Statistics& statistics() noexcept { return *current.load(std::memory_order_acquire); }

Result<void> statistics_open(std::string_view pool_path,
                             const std::array<std::uint8_t, 16>& pool_uuid, std::string_view engine_name)
{
    statistics_close();
    const int file = os::claim_descriptor(memfd_create(memfd_name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
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
    page.row_count = static_cast<std::uint32_t>(statistic_rows().size());
    page.table_fingerprint = fingerprint();
    page.process_id = static_cast<std::uint64_t>(getpid());
    page.started_ns = os::monotonic_ns();
    page.pool_uuid = pool_uuid;
    copy_text(page.engine_name, engine_name);
    copy_text(page.program_name, program_invocation_short_name);
    char absolute[PATH_MAX];
    const std::string path{pool_path};
    copy_text(page.pool_path,
              realpath(path.c_str(), absolute) != nullptr ? std::string_view{absolute} : pool_path);
    std::atomic_thread_fence(std::memory_order_release);
    page.magic = Statistics::expected_magic;  // Last: a reader that sees it sees the rest.
    shared_file = file;
    stop_times = {};
    current.store(&page, std::memory_order_release);
    return {};
}

void statistics_close() noexcept
{
    // The page stays mapped: another thread may be about to store into it. One per sp_open.
    current.store(&private_words, std::memory_order_release);
    if (shared_file >= 0) {
        os::close_descriptor(std::exchange(shared_file, -1));
    }
}

void record_stop_time(std::uint64_t stop_ns) noexcept
{
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

std::uint64_t read_statistic(const Statistics& page, const StatisticRow& row) noexcept
{
    if (row.field != nullptr) {
        return (page.*row.field).load(std::memory_order_acquire);
    }
    return row.engine == terminated(page.engine_name) ? page.engine_words[row.engine_word].load(std::memory_order_acquire) : 0;
}

std::vector<std::uint64_t> read_statistics(const Statistics& page)
{
    const auto rows = statistic_rows();
    std::vector<std::uint64_t> values(rows.size());
    for (std::size_t row = rows.size(); row-- > 0;) {
        values[row] = read_statistic(page, rows[row]);
    }
    return values;
}

StatisticsView::StatisticsView(StatisticsView&& other) noexcept
    : page_(std::exchange(other.page_, nullptr))
{
}

StatisticsView& StatisticsView::operator=(StatisticsView&& other) noexcept
{
    std::swap(page_, other.page_);
    return *this;
}

StatisticsView::~StatisticsView()
{
    if (page_ != nullptr) {
        munmap(const_cast<Statistics*>(page_), shared_bytes);
    }
}

std::string_view StatisticsView::program_name() const noexcept
{
    return terminated(page_->program_name);
}

std::string_view StatisticsView::pool_path() const noexcept { return terminated(page_->pool_path); }

std::string_view StatisticsView::engine_name() const noexcept { return terminated(page_->engine_name); }

Result<StatisticsView> open_statistics(pid_t process)
{
    int os_error = 0;
    const int file = find_page_of(process, os_error);
    if (file == -2) {
        return fail(SP_E_POOL_READ_ONLY, os_error,
                    "process {}: its statistics cannot be read ({}); only its own user can",
                    process, strerror(os_error));
    }
    if (file < 0) {
        return fail(SP_E_NOT_OPEN, os_error, "process {} has no pool open", process);
    }
    auto page = map_foreign_page(file, process);
    close(file);
    if (!page) {
        return pass_on(page.error());
    }
    return StatisticsView{*page};
}

}  // namespace stillpoint
