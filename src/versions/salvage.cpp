#include "versions/salvage.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "pool/commit_record.hpp"
#include "pool/image_header.hpp"
#include "versions/recovered_state.hpp"

namespace stillpoint::versions {

namespace {

/// Damage that the salvage finds by itself, page by page.
class Unheard final : public Findings {
    void tell(const Failure&, bool) override {}
};

/// How a page was judged.
struct Judgement {
    VersionSlot slot{};     ///< to keep; epoch 0: none
    bool is_sound = true;   ///< else `slot` is older, or the page is lost
    bool has_lines = false; ///< the page is to be written again, with them
};

class Salvage {
public:
    Salvage(Pool& pool, const CommitRecord& record) : pool_(pool), record_(record) {}

    Result<SalvageReport> run(bool has_delta_log);

private:
    /// The four copies of one table page.
    struct TableView {
        TablePage other;              ///< the newest sound copy that is not in force; all zero: there is none
        bool may_be_stale = false;    ///< a place has no sound copy
    };

    [[nodiscard]] Result<void> load_tables();
    [[nodiscard]] Result<void> load_lines();
    [[nodiscard]] Result<void> view_table_page(const Segment& segment, std::uint64_t index, TableView& view);
    [[nodiscard]] Result<bool> find_suspects();
    [[nodiscard]] Result<void> judge_segment(const Segment& segment, bool suspects_known);
    [[nodiscard]] Result<Judgement> judge(std::uint64_t image_page, const VersionSlot& older, bool is_suspect);
    [[nodiscard]] Result<bool> verifies(std::uint64_t image_page, const VersionSlot& slot);
    [[nodiscard]] bool is_data_page(std::uint64_t location) const noexcept;
    [[nodiscard]] Result<void> keep(std::uint64_t image_page, Judgement judgement);
    void note(std::uint64_t image_page, const Judgement& judgement);
    [[nodiscard]] Result<VersionSlot> remake_header();
    [[nodiscard]] Result<void> write_page(std::uint64_t file_page, const void* bytes);
    [[nodiscard]] Result<void> write_tables();
    [[nodiscard]] Result<void> write_records();

    Pool& pool_;
    CommitRecord record_;
    VersionTable table_;
    Deltas deltas_;
    Unheard unheard_;
    SalvageReport report_;
    bool has_lines_ = false;
    std::uint64_t lines_whole_from_ = 0;  ///< a page whose copy is of this epoch or later lacks no lines
    alignas(page_bytes) std::array<std::byte, page_bytes> bytes_{};
    alignas(page_bytes) std::array<std::byte, page_bytes> with_lines_{};
};

Result<void> Salvage::load_tables()
{
    if (auto done = table_.reserve(pool_.facts().image_bytes_max / page_bytes, pool_.facts().uuid); !done) {
        return done;
    }
    return table_.load(pool_.medium(), pool_.segments(), record_.epoch, &unheard_);
}

/// Decides whether the record's digest proves the tables, and loads what can be read of the delta log.
Result<void> Salvage::load_lines()
{
    const std::uint64_t beside_table = record_.table_digest - table_.digest();
    report_.tables_proved = beside_table == 0;
    if (beside_table == 0 || !has_lines_) {
        return {};
    }
    if (auto done = deltas_.log.reserve(pool_.facts().image_bytes_max / page_bytes, table_.hash_seed()); !done) {
        return done;
    }
    for (const Segment& segment : pool_.segments()) {
        deltas_.log.add_segment(segment);
    }
    const auto head = deltas_.log.newest_head(pool_.medium(), record_.epoch);
    if (!head) {
        return pass_on(head.error());
    }
    report_.tables_proved = head->weight == beside_table;
    if (!report_.tables_proved && !head->is_certain) {
        lines_whole_from_ = record_.epoch;
        report_.lines_whole = false;
        return {};
    }
    if (head->weight == 0) {
        return {};
    }
    deltas_.log.leave_out_lines_of_no_page();
    const auto loaded = deltas_.log.load(pool_.medium(), table_, record_.epoch, head->weight, deltas_.replay);
    if (!loaded && loaded.error().code != SP_E_POOL_CORRUPT) {
        return pass_on(loaded.error());
    }
    if (!loaded) {
        lines_whole_from_ = deltas_.log.whole_from();
        report_.lines_whole = false;
    }
    return {};
}

bool Salvage::is_data_page(std::uint64_t location) const noexcept
{
    return std::any_of(pool_.segments().begin(), pool_.segments().end(), [location](const Segment& segment) {
        const std::uint64_t first = first_data_page(segment);
        return location >= first && location - first < data_pages_per_image_page * segment.image_pages;
    });
}

Result<void> Salvage::view_table_page(const Segment& segment, std::uint64_t index, TableView& view)
{
    static constexpr TablePage zero{};
    const std::uint64_t first_image_page = segment.first_image_page + index * slots_per_table_page;
    std::array<TablePage, table_places> of_place{};
    view.may_be_stale = false;
    for (std::uint64_t place = 0; place < table_places; ++place) {
        bool has_sound = false;
        for (std::uint64_t copy = 0; copy < table_copies; ++copy) {
            TablePage page;
            const std::uint64_t offset = byte_offset(FilePage{table_file_page(segment, index, place) + copy});
            if (auto read = pool_.medium().read(offset, std::as_writable_bytes(std::span(&page, 1))); !read) {
                return read;
            }
            const bool is_sound = std::memcmp(&page, &zero, sizeof page) == 0 ||
                                  page.checksum == table_page_checksum(page, first_image_page, table_.hash_seed());
            has_sound = has_sound || is_sound;
            if (is_sound && page.epoch <= record_.epoch && page.epoch >= of_place[place].epoch) {
                of_place[place] = page;
            }
        }
        view.may_be_stale = view.may_be_stale || !has_sound;
    }
    view.other = of_place[0].epoch > of_place[1].epoch ? of_place[1] : of_place[0];
    return {};
}

/// Whether damage in the tables says which of them may be stale. False: any may.
Result<bool> Salvage::find_suspects()
{
    TableView view;
    for (const Segment& segment : pool_.segments()) {
        for (std::uint64_t index = 0; index < table_pages_for(segment.image_pages); ++index) {
            if (auto done = view_table_page(segment, index, view); !done) {
                return pass_on(done.error());
            }
            if (view.may_be_stale) {
                return true;
            }
        }
    }
    return false;
}

/// Leaves the copy's bytes in bytes_.
Result<bool> Salvage::verifies(std::uint64_t image_page, const VersionSlot& slot)
{
    if (slot.epoch == 0 || slot.epoch > record_.epoch || !is_data_page(slot.location)) {
        return false;
    }
    if (auto read = pool_.medium().read(byte_offset(FilePage{slot.location}), bytes_); !read) {
        return pass_on(read.error());
    }
    return page_checksum(content_hash(bytes_.data(), table_.hash_seed()), image_page, slot.epoch) == slot.checksum;
}

Result<Judgement> Salvage::judge(std::uint64_t image_page, const VersionSlot& older, bool is_suspect)
{
    const VersionSlot newest = table_.consistent(image_page);
    if (newest.epoch == 0) {
        return Judgement{{}, !is_suspect, false};
    }
    const auto holds = verifies(image_page, newest);
    if (!holds) {
        return pass_on(holds.error());
    }
    if (*holds) {
        Judgement judgement{newest, !is_suspect && newest.epoch >= lines_whole_from_, false};
        // Over a copy that may be stale they could make bytes that the page never had.
        if (judgement.is_sound && deltas_.replay.has(image_page)) {
            with_lines_ = bytes_;
            judgement.has_lines = deltas_.replay.apply(image_page, with_lines_.data()).has_value();
            judgement.is_sound = judgement.has_lines;
            report_.lines_whole = report_.lines_whole && judgement.has_lines;
        }
        return judgement;
    }
    const auto older_holds = verifies(image_page, older);
    if (!older_holds) {
        return pass_on(older_holds.error());
    }
    return Judgement{*older_holds ? older : VersionSlot{}, false, false};
}

void Salvage::note(std::uint64_t image_page, const Judgement& judgement)
{
    if (judgement.is_sound) {
        report_.pages_sound += judgement.slot.epoch != 0 ? 1 : 0;
        return;
    }
    const std::uint64_t epoch = judgement.slot.epoch;
    ++(epoch != 0 ? report_.pages_older : report_.pages_lost);
    if (!report_.unsound.empty()) {
        UnsoundPages& last = report_.unsound.back();
        if (last.epoch == epoch && last.first_page + last.pages == image_page) {
            ++last.pages;
            return;
        }
    }
    report_.unsound.push_back({image_page, 1, epoch});
}

/// The pool is private: a page with lines is written where its copy lies.
Result<void> Salvage::keep(std::uint64_t image_page, Judgement judgement)
{
    if (judgement.has_lines) {
        judgement.slot.epoch = record_.epoch;
        judgement.slot.checksum = page_checksum(content_hash(with_lines_.data(), table_.hash_seed()), image_page, judgement.slot.epoch);
        if (auto written = write_page(judgement.slot.location, with_lines_.data()); !written) {
            return written;
        }
    }
    note(image_page, judgement);
    if (image_page == 0 && !judgement.is_sound && judgement.slot.epoch == 0) {
        const auto made = remake_header();
        if (!made) {
            return pass_on(made.error());
        }
        judgement.slot = *made;
    }
    const VersionSlot& before = table_.consistent(image_page);
    if (std::memcmp(&before, &judgement.slot, sizeof before) != 0) {
        table_.switch_copy(image_page, judgement.slot);
    }
    return {};
}

/// In the place of the damaged copy, which no other page has where the tables are proved. Epoch 0: it cannot be made.
Result<VersionSlot> Salvage::remake_header()
{
    const PoolFacts& facts = pool_.facts();
    VersionSlot slot = table_.consistent(0);
    if (slot.epoch == 0 || !report_.tables_proved || !is_data_page(slot.location) || facts.image_bytes_max != facts.image_bytes_first_max) {
        return VersionSlot{};
    }
    with_lines_.fill(std::byte{0});
    make_image_header(with_lines_.data(), facts.base_address, facts.image_bytes_max, layout::TableFormat::plain);
    slot.epoch = record_.epoch;
    slot.checksum = page_checksum(content_hash(with_lines_.data(), table_.hash_seed()), 0, slot.epoch);
    if (auto written = write_page(slot.location, with_lines_.data()); !written) {
        return pass_on(written.error());
    }
    return slot;
}

Result<void> Salvage::judge_segment(const Segment& segment, bool suspects_known)
{
    TableView view;
    for (std::uint64_t i = 0; i < segment.image_pages; ++i) {
        if (i % slots_per_table_page == 0) {
            if (auto done = view_table_page(segment, i / slots_per_table_page, view); !done) {
                return done;
            }
        }
        const bool is_suspect = !report_.tables_proved && (view.may_be_stale || !suspects_known);
        const auto judgement = judge(segment.first_image_page + i, view.other.slots[i % slots_per_table_page], is_suspect);
        if (!judgement) {
            return pass_on(judgement.error());
        }
        if (auto kept = keep(segment.first_image_page + i, *judgement); !kept) {
            return kept;
        }
    }
    return {};
}

Result<void> Salvage::write_page(std::uint64_t file_page, const void* bytes)
{
    const BlockWrite write{byte_offset(FilePage{file_page}), static_cast<const std::byte*>(bytes), page_bytes};
    return pool_.medium().write({&write, 1});
}

Result<void> Salvage::write_tables()
{
    const auto page = std::make_unique<std::array<std::byte, 2 * page_bytes>>();
    auto* const aligned = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(page->data()), page_bytes));
    for (const Segment& segment : pool_.segments()) {
        for (std::uint64_t index = 0; index < table_pages_for(segment.image_pages); ++index) {
            table_.compose(segment.first_image_page + index * slots_per_table_page, record_.epoch, *reinterpret_cast<TablePage*>(aligned));
            for (std::uint64_t copy = 0; copy < table_places * table_copies; ++copy) {
                const std::uint64_t file_page = table_file_page(segment, index, copy / table_copies) + copy % table_copies;
                if (auto written = write_page(file_page, aligned); !written) {
                    return written;
                }
            }
        }
    }
    return {};
}

/// The pair of the epoch before is zeroed: its tables are not there any more.
Result<void> Salvage::write_records()
{
    with_lines_.fill(std::byte{0});
    const std::uint64_t pair = pool_.facts().engine_area_first_page + (1 - record_.epoch % 2) * 2;
    for (std::uint64_t copy = 0; copy < 2; ++copy) {
        if (auto written = write_page(pair + copy, with_lines_.data()); !written) {
            return written;
        }
    }
    if (auto dropped = drop_epochs_from(pool_, record_.epoch + 1); !dropped) {
        return dropped;
    }
    record_.table_digest = table_.digest();
    if (auto stored = store_commit_record(pool_, record_); !stored) {
        return stored;
    }
    return pool_.medium().sync();
}

Result<SalvageReport> Salvage::run(bool has_delta_log)
{
    has_lines_ = has_delta_log;
    report_.epoch = record_.epoch;
    if (auto loaded = load_tables(); !loaded) {
        return pass_on(loaded.error());
    }
    if (auto loaded = load_lines(); !loaded) {
        return pass_on(loaded.error());
    }
    const auto suspects_known = find_suspects();
    if (!suspects_known) {
        return pass_on(suspects_known.error());
    }
    for (const Segment& segment : pool_.segments()) {
        if (auto judged = judge_segment(segment, *suspects_known); !judged) {
            return pass_on(judged.error());
        }
    }
    if (auto written = write_tables(); !written) {
        return pass_on(written.error());
    }
    if (auto written = write_records(); !written) {
        return pass_on(written.error());
    }
    return std::move(report_);
}

}  // namespace

Result<SalvageReport> salvage_pool(Pool& pool, bool has_delta_log)
{
    auto record = load_commit_record(pool);
    if (!record && record.error().code == SP_E_POOL_CORRUPT) {
        pool.leave_out_epochs_from(newest_epoch_named(pool));
        record = load_commit_record(pool);
    }
    if (!record) {
        return pass_on(record.error());
    }
    if (!*record) {
        return SalvageReport{};
    }
    return std::make_unique<Salvage>(pool, **record)->run(has_delta_log);
}

}  // namespace stillpoint::versions
