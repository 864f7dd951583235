#include "api/statistics.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "api/registry.hpp"
#include "os/same_file.hpp"
#include "runtime/engine.hpp"
#include "runtime/pool_services.hpp"

namespace stillpoint {

namespace {

constexpr std::string_view memfd_link = "/memfd:stillpoint-statistics";

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
#define STATISTIC(name, unit, sentence) {#name, unit, sentence, false, &Statistics::name},
#define COUNTER(name, unit, sentence) {#name, unit, sentence, true, &Statistics::name},
#include "runtime/statistics.inc"
#undef COUNTER
#undef STATISTIC
    };
    AllRows all;
    for (const StatisticRow& row : general) {
        all.add(row);
    }
    for (const EngineDriver& driver : every_engine_driver()) {
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

template <std::size_t Size>
std::string_view terminated(const std::array<char, Size>& text) noexcept
{
    return {text.data(), strnlen(text.data(), Size - 1)};
}

/// The descriptors of `process` that are its statistics pages, opened here: one for each pool that it has open.
class PagesOf {
public:
    explicit PagesOf(pid_t process)
    {
        char folder[64];
        *fmt::format_to_n(folder, sizeof folder - 1, "/proc/{}/fd", process).out = '\0';
        DIR* const entries = opendir(folder);
        if (entries == nullptr) {
            os_error_ = errno;
            denied_ = errno == EACCES || errno == EPERM;
            return;
        }
        while (const dirent* entry = readdir(entries)) {
            add(dirfd(entries), entry->d_name);
        }
        closedir(entries);
    }
    ~PagesOf()
    {
        for (const int file : files_) {
            close(file);
        }
    }
    PagesOf(const PagesOf&) = delete;
    PagesOf& operator=(const PagesOf&) = delete;

    [[nodiscard]] std::span<const int> files() const noexcept { return files_; }
    [[nodiscard]] bool denied() const noexcept { return files_.empty() && denied_; }
    [[nodiscard]] int os_error() const noexcept { return os_error_; }

private:
    void add(int folder, const char* name)
    {
        char target[128];
        const ssize_t length = readlinkat(folder, name, target, sizeof target);
        if (length <= 0 || !std::string_view{target, static_cast<std::size_t>(length)}.starts_with(memfd_link)) {
            return;
        }
        // The process may put something else under that number meanwhile: a FIFO must not hold the reader up.
        const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file < 0) {
            os_error_ = errno;
            denied_ = true;
            return;
        }
        files_.push_back(file);
    }

    std::vector<int> files_;
    int os_error_ = 0;
    bool denied_ = false;
};

Result<const Statistics*> map_foreign_page(int file, pid_t process)
{
    struct stat facts{};
    const int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(file, &facts) != 0 ||
        facts.st_size < static_cast<off_t>(sizeof(Statistics::magic) + 8)) {
        return fail(SP_E_POOL_CORRUPT, 0, "process {}: its statistics page is not a sealed one", process);
    }
    if (facts.st_size != static_cast<off_t>(statistics_file_bytes)) {
        return fail(SP_E_POOL_VERSION, 0,
                    "process {}: its statistics have another size; use the stillpoint command of "
                    "the version it runs with",
                    process);
    }
    void* mapped = mmap(nullptr, statistics_file_bytes, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        return fail(SP_E_IO, errno, "process {}: its statistics cannot be mapped: {}", process, strerror(errno));
    }
    const auto* page = static_cast<const Statistics*>(mapped);
    if (page->magic != Statistics::expected_magic) {
        munmap(mapped, statistics_file_bytes);
        return fail(SP_E_POOL_CORRUPT, 0, "process {}: its statistics page has no magic", process);
    }
    if (page->version != Statistics::expected_version || page->row_count != statistic_rows().size() ||
        page->table_fingerprint != fingerprint()) {
        munmap(mapped, statistics_file_bytes);
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

namespace {
/// For engines whose pools programs open themselves.
[[maybe_unused]] const bool table_is_set = [] {
    statistics_table_of_program = &statistics_table;
    return true;
}();
}  // namespace

StatisticsTable statistics_table() noexcept { return {static_cast<std::uint32_t>(statistic_rows().size()), fingerprint()}; }

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

StatisticsView::StatisticsView(StatisticsView&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}

StatisticsView& StatisticsView::operator=(StatisticsView&& other) noexcept
{
    std::swap(page_, other.page_);
    return *this;
}

StatisticsView::~StatisticsView()
{
    if (page_ != nullptr) {
        munmap(const_cast<Statistics*>(page_), statistics_file_bytes);
    }
}

std::string_view StatisticsView::program_name() const noexcept { return terminated(page_->program_name); }

std::string_view StatisticsView::pool_path() const noexcept { return terminated(page_->pool_path); }

std::string_view StatisticsView::engine_name() const noexcept { return terminated(page_->engine_name); }

Result<StatisticsView> open_statistics(pid_t process, const std::string& pool_path)
{
    const PagesOf pages(process);
    if (pages.denied()) {
        return fail(SP_E_POOL_READ_ONLY, pages.os_error(), "process {}: its statistics cannot be read ({}); only its own user can", process,
                    strerror(pages.os_error()));
    }
    if (pages.files().empty()) {
        return fail(SP_E_NOT_OPEN, pages.os_error(), "process {} has no pool open", process);
    }
    const bool chooses = pages.files().size() > 1 && !pool_path.empty();
    for (const int file : pages.files()) {
        auto page = map_foreign_page(file, process);
        if (!page) {
            return pass_on(page.error());
        }
        StatisticsView view{*page};
        if (!chooses || os::is_same_file(std::string(view.pool_path()), pool_path)) {
            return view;
        }
    }
    return fail(SP_E_NOT_OPEN, 0, "process {} has {} pools open, and {} is none of them", process, pages.files().size(), pool_path);
}

}  // namespace stillpoint
