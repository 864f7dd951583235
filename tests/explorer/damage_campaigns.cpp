// Damage: one sector of a pool at rest holds something else, or cannot be read. It is noticed, or it does not matter; where the pool
// keeps a second copy, it does not matter.

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "api/registry.hpp"
#include "campaign.hpp"
#include "engines/spht.hpp"
#include "objects/object_workload.hpp"
#include "pool/commit_layout.hpp"
#include "pool/image.hpp"
#include "pool/pool.hpp"
#include "runtime/engine.hpp"
#include "sim/sim_medium.hpp"
#include "transactions/programs.hpp"
#include "versions/delta_layout.hpp"
#include "versions/page_layout.hpp"

namespace stillpoint::explorer {

namespace {

/// Traces of the same pool: what it held at the end, and at a moment before, for stale bytes.
struct Pool {
    sim::CrashImage now;
    sim::CrashImage before;
    History history;
};

enum class Kind { zeroes, noise, one_bit, stale, other_sector, unreadable, stale_twins, noisy_twins };
constexpr Kind kinds[] = {Kind::zeroes,       Kind::noise,      Kind::one_bit,     Kind::stale,
                          Kind::other_sector, Kind::unreadable, Kind::stale_twins, Kind::noisy_twins};
constexpr const char* kind_names[] = {
    "zeroed", "noise", "one bit flipped", "stale", "a copy of another", "unreadable", "stale, and its twin too", "noise, and its twin too"};

using Sector = std::array<std::byte, sim::sector_bytes>;

/// A byte of a line that holds something: most of a sector may be zero, and not looked at.
std::size_t byte_in_use(const Sector& sector, Random& random)
{
    static constexpr std::byte zeroes[cache_line_bytes] = {};
    for (;;) {
        const std::size_t byte = random() % sector.size();
        if (std::memcmp(&sector[byte / cache_line_bytes * cache_line_bytes], zeroes, sizeof zeroes) != 0) {
            return byte;
        }
    }
}

Sector damaged(const Pool& pool, std::uint64_t offset, Kind kind, std::uint64_t other, Random& random)
{
    Sector sector{};
    pool.now.content.read(offset, sector.data(), sector.size());
    switch (kind) {
    case Kind::zeroes: sector.fill(std::byte{0}); break;
    case Kind::noise:
    case Kind::noisy_twins:
        for (std::byte& byte : sector) {
            byte = static_cast<std::byte>(random());
        }
        break;
    case Kind::one_bit: sector[byte_in_use(sector, random)] ^= static_cast<std::byte>(1u << (random() % 8)); break;
    case Kind::stale:
    case Kind::stale_twins:
        if (offset + sector.size() <= pool.before.content.size_bytes()) {
            pool.before.content.read(offset, sector.data(), sector.size());
        }
        break;
    case Kind::unreadable: break;
    case Kind::other_sector: pool.now.content.read(other, sector.data(), sector.size()); break;
    }
    return sector;
}

/// The first and the last byte of the sector that another one has in its place.
std::pair<std::size_t, std::size_t> changed_bytes(const sim::CrashImage& sound, std::uint64_t offset, const Sector& damaged, Kind kind)
{
    Sector before{};
    sound.content.read(offset, before.data(), before.size());
    if (kind == Kind::unreadable || before == damaged) {
        return {0, before.size() - 1};
    }
    std::size_t first = 0;
    std::size_t last = before.size() - 1;
    while (before[first] == damaged[first]) {
        ++first;
    }
    while (before[last] == damaged[last]) {
        --last;
    }
    return {first, last};
}

/// Sectors that are not all zero now.
std::vector<std::uint64_t> used_sectors(const sim::PageMap& content)
{
    static constexpr Sector zeroes{};
    std::vector<std::uint64_t> offsets;
    content.for_each_page([&](std::uint64_t page, const std::byte* bytes) {
        for (std::size_t at = 0; at < page_bytes; at += sim::sector_bytes) {
            if (std::memcmp(bytes + at, zeroes.data(), sim::sector_bytes) != 0) {
                offsets.push_back(page * page_bytes + at);
            }
        }
    });
    return offsets;
}

Pool make_pool(const ProgramPlan& plan, ProgramRunner& runner, CampaignResult& result)
{
    Pool pool;
    pool.history = history_for(plan);
    const ProgramRun run = runner.run(plan, sim::CrashImage{{}, false});
    if (!run.problem.empty()) {
        result.violations.push_back({"damage", "making the pool", run.problem});
        ++result.figures.violations;
        return pool;
    }
    sim::CrashModel model(plan.profile, sim::CrashImage{{}, false});
    std::uint64_t acknowledged = 0;
    for (const sim::Event& event : run.events) {
        model.apply(event);
        pool.history.apply(event);
        if (event.kind == sim::EventKind::acknowledge && ++acknowledged == 3) {
            pool.before = model.visible();
        }
    }
    pool.now = model.visible();
    return pool;
}

/// Where the engine promises to notice damage: everywhere, or in what it keeps beside the program's bytes. That is its area, and in an
/// image with logged tables all that comes before the heap.
class NoticedPlaces {
public:
    NoticedPlaces(const EngineDriver& driver, const ProgramPlan& plan, const sim::CrashImage& sound)
        : everywhere_(driver.sums_program_bytes), area_end_((superblock_pages + driver.format.area_pages) * page_bytes)
    {
        auto medium = std::make_unique<sim::ImageMedium>(sound.content, byte_addressable(plan));
        auto pool = stillpoint::Pool::open(std::move(medium), driver.format, true);
        twins_end_ = (superblock_pages + commit_area_pages) * page_bytes;
        for (const Segment& segment : pool&& driver.sums_program_bytes ? pool->segments() : std::span<const Segment>()) {
            version_tables_.push_back(segment);
        }
        if (!version_tables_.empty() && driver.format.segment_file_pages == &versions::segment_file_pages_with_deltas) {
            delta_heads_ = versions::first_delta_page(version_tables_.front()) * page_bytes;
        }
        if (pool && driver.table_format == layout::TableFormat::logged) {
            tables_begin_ = pool->segments().front().first_file_page * page_bytes;
            tables_end_ = tables_begin_ + ImageGeometry::for_image(pool->facts().image_bytes_first_max, driver.table_format).heap_offset;
        }
        if (pool && operations_are_durable(plan)) {
            if (byte_addressable(plan)) {
                marker_ = spht_places::marker_offset(*pool);
                log_ends_ = spht_places::ends_of_logs(*pool, recover(plan, sound).epoch);
            }
            transactions_.emplace(std::move(*pool));
        }
    }

    [[nodiscard]] bool hold(std::uint64_t offset) const noexcept
    {
        return everywhere_ || offset < area_end_ || (offset >= tables_begin_ && offset < tables_end_);
    }

    /// The sector at `offset` has the end of a log, and so its newest record, or the end of that.
    [[nodiscard]] bool end_a_log(std::uint64_t offset) const noexcept
    {
        return std::any_of(log_ends_.begin(), log_ends_.end(),
                           [=](std::uint64_t end) { return end / sim::sector_bytes == offset / sim::sector_bytes; });
    }

    /// Damage of this kind in the sector leaves what may have been so: an older marker, or logs that end earlier.
    [[nodiscard]] bool may_be_missed(std::uint64_t offset, Kind kind) const noexcept
    {
        return (kind != Kind::one_bit && end_a_log(offset)) || (kind == Kind::stale && offset == marker_);
    }

    /// The parts that the pool has twice there: superblocks, commit records, version tables, heads of a delta log. One bad sector must
    /// not cost anything.
    [[nodiscard]] bool have_twins(std::uint64_t offset) const noexcept { return offset < twins_end_ || twin_of(offset) != 0; }
    /// That sector of the other commit record of its pair, of which there is a third copy; 0: it is of none.
    [[nodiscard]] std::uint64_t other_record_of(std::uint64_t offset) const noexcept
    {
        const std::uint64_t begin = superblock_pages * page_bytes;
        return offset >= begin && offset < twins_end_ ? begin + ((offset - begin) ^ page_bytes) : 0;
    }
    /// The engine has another copy, and tells which of the two is damaged, unless it is sound and belongs elsewhere.
    [[nodiscard]] bool have_copies(std::uint64_t offset) const noexcept
    {
        return transactions_ && spht_places::has_copy(*transactions_, offset);
    }

    /// Where the other copy of that sector of a version table, or of a head of the delta log, is; 0: it is of none.
    [[nodiscard]] std::uint64_t twin_of(std::uint64_t offset) const noexcept
    {
        for (const Segment& segment : version_tables_) {
            const std::uint64_t begin = segment.first_file_page * page_bytes;
            if (offset >= begin && offset < versions::first_data_page(segment) * page_bytes) {
                return begin + ((offset - begin) ^ page_bytes);
            }
        }
        if (delta_heads_ != 0 && offset >= delta_heads_ && offset < delta_heads_ + versions::delta_head_pages * page_bytes) {
            return delta_heads_ + ((offset - delta_heads_) ^ page_bytes);
        }
        return 0;
    }

    /// The part of the file at `offset`: its head, a version table, page copies, or the engine's own after them, where heads begin pages,
    /// and what logs end in, since a damaged record that stands last must not pass for a torn one.
    [[nodiscard]] std::size_t part_of_file(std::uint64_t offset) const noexcept
    {
        if (end_a_log(offset)) {
            return 5;
        }
        if (offset < area_end_ || twin_of(offset) != 0) {
            return offset < area_end_ ? 0 : 1;
        }
        const bool of_copies = std::any_of(version_tables_.begin(), version_tables_.end(), [&](const Segment& segment) {
            const std::uint64_t first = versions::first_data_page(segment);
            return offset / page_bytes - first < versions::data_pages_per_image_page * segment.image_pages;
        });
        return of_copies ? 2 : offset % page_bytes == 0 ? 3 : 4;
    }
    static constexpr std::size_t parts_of_file = 6;

private:
    static constexpr std::uint64_t superblock_pages = 2;
    bool everywhere_;
    std::uint64_t twins_end_ = 0;
    std::uint64_t marker_ = UINT64_MAX;
    std::vector<std::uint64_t> log_ends_;
    std::optional<stillpoint::Pool> transactions_;  ///< the pool, where the engine has transactions
    std::vector<Segment> version_tables_;
    std::uint64_t delta_heads_ = 0;  ///< 0: there is no log
    std::uint64_t area_end_;
    std::uint64_t tables_begin_ = 0;
    std::uint64_t tables_end_ = 0;
};

double seconds_since(std::chrono::steady_clock::time_point begun)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

struct Damage {
    std::uint64_t offset;
    Kind kind;
};

/// In random order, one of each part of the file after the other: most sectors are page copies. Where logs end each kind of damage comes
/// once, and single bits some times, since few of them are of the newest record's header.
std::vector<Damage> damages_in_turns(std::vector<std::uint64_t> sectors, const NoticedPlaces& places, Random& random)
{
    constexpr std::size_t bits_where_logs_end = 12;
    std::shuffle(sectors.begin(), sectors.end(), random);
    std::array<std::size_t, NoticedPlaces::parts_of_file> taken{};
    std::vector<std::pair<std::size_t, std::uint64_t>> turns;
    for (const std::uint64_t offset : sectors) {
        turns.emplace_back(taken[places.part_of_file(offset)]++, offset);
    }
    std::stable_sort(turns.begin(), turns.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Damage> damages;
    for (const auto& [turn, offset] : turns) {
        for (const Kind kind : kinds) {
            const std::size_t times = kind == Kind::one_bit && places.end_a_log(offset) ? bits_where_logs_end : 1;
            damages.insert(damages.end(), times, Damage{offset, kind});
        }
    }
    return damages;
}

/// The newest entries of a log may be what a crash has torn: as many as the damage hits. A marker that says which transactions were
/// acknowledged tells damage from that; a group's marker is a part of what is torn, with one transaction of each thread.
std::size_t newest_that_may_be_lost(const ProgramPlan& plan, std::size_t hit) noexcept
{
    if (operations_are_durable(plan)) {
        constexpr std::size_t threads_max = 3;
        return byte_addressable(plan) ? 0 : plan.objects != nullptr ? threads_max : 1;
    }
    return hit;
}

/// Adds what one program's pool comes to.
void damage_pool(const std::string& name, const ProgramPlan& plan, const CampaignSettings& settings, ProgramRunner& runner,
                 std::chrono::steady_clock::time_point begun, CampaignResult& result)
{
    ++result.figures.runs;
    const Pool pool = make_pool(plan, runner, result);
    if (!result.violations.empty()) {
        return;
    }
    const EngineDriver& driver = *find_engine(plan.engine);
    const Recovered sound = recover(plan, pool.now);
    const NoticedPlaces noticed(driver, plan, pool.now);
    Random random(plan.seed);
    const std::vector<std::uint64_t> all = used_sectors(pool.now.content);
    History without_newest = pool.history;
    without_newest.forgive_newest(newest_that_may_be_lost(plan, 1));
    History without_last_sector = pool.history;
    without_last_sector.forgive_newest(newest_that_may_be_lost(plan, sim::sector_bytes / cache_line_bytes));
    const std::uint64_t states_end = std::min(settings.limits.states, result.figures.states + settings.limits.program_states);
    for (const auto& [offset, kind] : damages_in_turns(all, noticed, random)) {
        const History& history = kind == Kind::one_bit ? without_newest : without_last_sector;
        if (result.figures.states >= states_end || seconds_since(begun) > settings.limits.seconds) {
            return;
        }
        sim::CrashImage image = pool.now;
        const Sector sector = damaged(pool, offset, kind, all[random() % all.size()], random);
        image.content.write(offset, sector.data(), sector.size());
        if (kind == Kind::stale_twins || kind == Kind::noisy_twins) {
            const std::uint64_t twin = kind == Kind::stale_twins ? noticed.twin_of(offset) : noticed.other_record_of(offset);
            if (twin == 0) {
                continue;
            }
            image.content.write(twin, sector.data(), sector.size());
        }
        image.unreadable_sector = kind == Kind::unreadable ? offset : sim::CrashImage::none;
        ++result.figures.states;
        ++result.figures.recoveries;
        const Recovered recovered = recover(plan, image);
        if (!noticed.hold(offset)) {
            continue;  // Recovery has come to an end with it, whatever it says.
        }
        if (noticed.may_be_missed(offset, kind)) {
            continue;
        }
        const auto [first, last] = changed_bytes(pool.now, offset, sector, kind);
        const bool harmless = recovered.kind == Recovered::Kind::state && recovered.epoch == sound.epoch &&
                              judge(recovered, history).empty();
        const bool has_twins = noticed.have_twins(offset) ||
                               (kind != Kind::other_sector && noticed.have_copies(offset + first) && noticed.have_copies(offset + last));
        const bool may_refuse = kind == Kind::stale_twins || !has_twins;
        if (!harmless && !(may_refuse && recovered.kind == Recovered::Kind::refused)) {
            ++result.figures.violations;
            result.violations.push_back({name,
                                         "sector at offset " + std::to_string(offset) + " " + kind_names[static_cast<std::size_t>(kind)],
                                         "recovered epoch " + std::to_string(recovered.epoch) + " of " + std::to_string(sound.epoch) +
                                             ": " + judge(recovered, history)});
            return;
        }
    }
}

CampaignResult run_damage(const std::string& name, ProgramPlan plan, const CampaignSettings& settings)
{
    const auto begun = std::chrono::steady_clock::now();
    CampaignResult result;
    ProgramRunner runner(settings.scratch);
    plan.seed = settings.seed;
    while (result.violations.empty() && result.figures.states < settings.limits.states) {
        damage_pool(name, plan, settings, runner, begun, result);
        plan.seed = plan.seed * 31 + result.figures.runs;
        result.figures.seconds = seconds_since(begun);
        if (result.figures.seconds > settings.limits.seconds) {
            result.figures.cut_short = true;
            break;
        }
    }
    return result;
}

}  // namespace

std::vector<Campaign> damage_campaigns()
{
    std::vector<Campaign> campaigns;
    const auto add = [&](const char* what, const ProgramPlan& plan) {
        const std::string name = plan.engine + what + std::string(to_text(plan.profile));
        campaigns.push_back({name, [name, plan](const CampaignSettings& settings) { return run_damage(name, plan, settings); }});
    };
    for (const EngineDriver& driver : engine_drivers()) {
        for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
            ProgramPlan plan;
            plan.workload = &workloads().front();
            plan.engine = driver.format.name;
            plan.tracker = "auto";
            plan.profile = profile;
            plan.operations = 16;
            // A record that stands alone is like one that a crash has torn, if it is damaged.
            if (driver.programs == Programs::transactions) {
                plan.more_options = " markers=always";
            } else if (driver.programs == Programs::critical_sections) {
                plan.more_options = " section_markers=always";
            }
            add("/damage/", plan);
            if (std::find(driver.trackers.begin(), driver.trackers.end(), "hooks") != driver.trackers.end()) {
                plan.tracker = "hooks";  // Such pools have lines in a log.
                add("/hooks/damage/", plan);
                plan.tracker = "auto";
            }
            if (driver.programs == Programs::operations) {
                plan.objects = &object_workloads().front();
                add("/objects-damage/", plan);
            }
            if (driver.programs == Programs::transactions) {
                plan.objects = &transaction_program_called("several");
                plan.operations = plan.objects->operations;
                add("/transactions-damage/", plan);
            }
        }
    }
    return campaigns;
}

}  // namespace stillpoint::explorer
