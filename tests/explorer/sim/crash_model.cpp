#include "sim/crash_model.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "arch/checksum.hpp"

namespace stillpoint::sim {

namespace {

constexpr std::size_t words_per_line = 8;
/// A line with more unordered words than this is counted as if it had so many.
constexpr unsigned unordered_words_max = 40;

/// Bit w: word w of the line has a byte in the mask.
unsigned words_of(std::uint64_t mask) noexcept
{
    unsigned words = 0;
    for (unsigned word = 0; word < words_per_line; ++word) {
        words |= ((mask >> (8 * word)) & 0xffu) != 0 ? 1u << word : 0u;
    }
    return words;
}

/// The bytes of `mask` that lie in the words of `chosen`, where bit i means the i-th word that `mask` touches.
std::uint64_t part_of(std::uint64_t mask, std::uint64_t chosen) noexcept
{
    std::uint64_t part = 0;
    unsigned index = 0;
    for (unsigned word = 0; word < words_per_line; ++word) {
        const std::uint64_t bytes = mask & (std::uint64_t{0xff} << (8 * word));
        if (bytes != 0 && ((chosen >> index++) & 1u) != 0) {
            part |= bytes;
        }
    }
    return part;
}

void put_bytes(std::array<std::byte, 64>& line, const std::array<std::byte, 64>& from, std::uint64_t mask) noexcept
{
    for (; mask != 0; mask &= mask - 1) {
        const auto at = static_cast<std::size_t>(std::countr_zero(mask));
        line[at] = from[at];
    }
}

}  // namespace

std::string_view to_text(Profile profile) noexcept
{
    switch (profile) {
    case Profile::process: return "process";
    case Profile::persistent_caches: return "persistent-caches";
    case Profile::cache_line: return "line";
    case Profile::page: return "page";
    case Profile::rados: return "rados";
    }
    return "?";
}

CrashModel::CrashModel(Profile profile, CrashImage durable, PageCopy page_copy, CutSector cut_sector)
    : profile_(profile), durable_(durable), visible_(std::move(durable)), durable_size_(durable_.content.size_bytes()),
      page_copy_(page_copy), cut_sector_(cut_sector)
{
}

void CrashModel::apply(const Event& event)
{
    ++events_;
    const bool settles = profile_ == Profile::process || profile_ == Profile::persistent_caches;
    if (settles) {
        settle_all_but_unfenced();  // Only the newest store can be torn.
    }
    switch (event.kind) {
    case EventKind::store:
        if (profile_ == Profile::page) {
            store_to_page(event);
        } else {
            store(event, !settles);
        }
        break;
    case EventKind::nontemporal_store: store(event, false); break;
    case EventKind::hand_over: apply_to_objects(event); break;
    case EventKind::head_changed: head_changed(); break;
    case EventKind::block_write:
        if (profile_ == Profile::rados) {
            apply_to_objects(event);
        } else {
            block_write(event);
        }
        break;
    case EventKind::write_back:
        for (auto it = lines_.lower_bound(event.offset / line_bytes * line_bytes);
             it != lines_.end() && it->first < event.offset + event.size; ++it) {
            written_back_[event.thread][it->first] = it->second.stores.back().number;
        }
        break;
    case EventKind::fence: fence(event.thread); break;
    case EventKind::sync: sync(); break;
    case EventKind::sync_failed:
        for (auto& [offset, sector] : sectors_) {
            sector.newest_is_lost = true;
        }
        for (auto& [offset, word] : words_) {
            word.newest_is_lost = true;
        }
        break;
    case EventKind::resize:
        visible_.content.resize(event.value);
        durable_.content.resize(std::max(event.value, durable_.content.size_bytes()));
        sizes_.push_back(event.value);
        if (profile_ == Profile::process) {
            sync();
        }
        break;
    case EventKind::name:
        visible_.named = true;
        name_pending_ = profile_ != Profile::process;
        durable_.named = !name_pending_;
        break;
    case EventKind::name_sync:
        durable_.named = visible_.named;
        name_pending_ = false;
        break;
    default: break;
    }
}

/// The present contents of the caches of a machine whose caches are durable, or of a kernel that lives on.
void CrashModel::settle_all_but_unfenced()
{
    for (auto it = lines_.begin(); it != lines_.end();) {
        Line& line = it->second;
        for (std::size_t i = 0; i < line.stores.size();) {
            const bool unfenced = profile_ == Profile::persistent_caches && !line.stores[i].ordered && line.stores[i].thread != 0;
            if (unfenced) {
                ++i;
            } else {
                settle(it->first, line, i);
            }
        }
        it = line.stores.empty() ? lines_.erase(it) : std::next(it);
    }
    if (profile_ == Profile::process) {
        sync();
    }
}

void CrashModel::store(const Event& event, bool ordered)
{
    // In a profile that settles, thread 0 marks a store through the caches: torn while it is the newest.
    const bool through_caches = event.kind == EventKind::store;
    const std::uint32_t thread = through_caches && !ordered ? 0 : event.thread;
    std::uint64_t done = 0;
    while (done < event.size) {
        const std::uint64_t at = event.offset + done;
        const std::uint64_t line_offset = at / line_bytes * line_bytes;
        const std::size_t inside = at % line_bytes;
        const std::size_t piece = std::min<std::size_t>(line_bytes - inside, event.size - done);
        Store store{events_, thread, ordered, 0, {}};
        std::memcpy(store.bytes.data() + inside, event.data + done, piece);
        store.mask = (piece == line_bytes ? ~std::uint64_t{0} : ((std::uint64_t{1} << piece) - 1)) << inside;
        done += piece;
        // A word that is durable as it is, and not pending, cannot change by being stored again.
        std::uint64_t pending = 0;
        const auto found = lines_.find(line_offset);
        if (found != lines_.end()) {
            for (const Store& earlier : found->second.stores) {
                pending |= earlier.mask;
            }
        }
        for (std::size_t word = 0; word < words_per_line; ++word) {
            const std::uint64_t bytes = std::uint64_t{0xff} << (8 * word);
            if ((store.mask & bytes) == bytes && (pending & bytes) == 0 &&
                durable_.content.equals(line_offset + 8 * word, store.bytes.data() + 8 * word, 8)) {
                store.mask &= ~bytes;
            }
        }
        if (store.mask != 0) {
            lines_[line_offset].stores.push_back(store);
        }
    }
    visible_.content.write(event.offset, event.data, event.size);
}

/// The bytes as a process reads them now are one more thing that the disk may have.
template <std::size_t size>
void CrashModel::note_version(std::map<std::uint64_t, OnDisk<size>>& all, std::uint64_t offset)
{
    OnDisk<size>& unit = all[offset];
    visible_.content.read(offset, unit.versions.emplace_back().data(), size);
    unit.newest_is_lost = false;
    unit.newest = events_;
}

void CrashModel::note_sectors(const Event& event)
{
    for (std::uint64_t at = event.offset / sector_bytes * sector_bytes; at < event.offset + event.size; at += sector_bytes) {
        note_version(sectors_, at);
    }
}

/// A store to a mapped page of a file: the kernel may take the page to the disk at any time. A store that is wider than a word
/// is there, at an instant, from either end up to some word.
void CrashModel::store_to_page(const Event& event)
{
    constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);
    if (page_copy_ == PageCopy::word_by_word) {
        visible_.content.write(event.offset, event.data, event.size);
        for (std::uint64_t at = event.offset / word_bytes * word_bytes; at < event.offset + event.size; at += word_bytes) {
            note_version(words_, at);
        }
        return;
    }
    const PageMap before = visible_.content;
    const std::uint64_t end = event.offset + event.size;
    for (std::uint64_t at = end / word_bytes * word_bytes; at > event.offset; at -= std::min(at, word_bytes)) {
        if (at < end) {
            visible_.content.write(at, event.data + (at - event.offset), end - at);
            note_sectors(event);
        }
    }
    visible_.content = before;
    for (std::uint64_t at = event.offset; at < end;) {
        const std::uint64_t next = std::min((at / word_bytes + 1) * word_bytes, end);
        visible_.content.write(at, event.data + (at - event.offset), next - at);
        note_sectors(event);
        at = next;
    }
}

void CrashModel::block_write(const Event& event)
{
    for (std::uint64_t done = 0; done < event.size; done += sector_bytes) {
        const std::uint64_t offset = event.offset + done;
        if (!sectors_.contains(offset) && durable_.content.equals(offset, event.data + done, sector_bytes)) {
            continue;
        }
        Sector& sector = sectors_[offset];
        std::memcpy(sector.versions.emplace_back().data(), event.data + done, sector_bytes);
        sector.newest_is_lost = false;
        sector.newest = events_;
    }
    visible_.content.write(event.offset, event.data, event.size);
}

/// A write outside any operation counts as an operation of its own on each object that it touches.
void CrashModel::apply_to_objects(const Event& event)
{
    if (event.kind == EventKind::hand_over) {
        objects_.hand_over(event.value, events_, visible_.content);
        return;
    }
    objects_.fill(event.offset, event.data, event.size);
    if (event.value == 0 && event.size != 0) {
        for (std::uint64_t object = event.offset / object_bytes; object * object_bytes < event.offset + event.size; ++object) {
            objects_.hand_over(object, events_, visible_.content);
        }
    }
}

/// The head is an attribute of the first object: its operations are applied in order.
void CrashModel::head_changed()
{
    objects_.settle(0, durable_.content);
    if (!sizes_.empty()) {
        durable_size_ = sizes_.back();
        sizes_.clear();
    }
    durable_.named = visible_.named;
    name_pending_ = false;
}

void CrashModel::settle(std::uint64_t line_offset, Line& line, std::size_t index)
{
    const Store store = line.stores[index];
    LineBytes bytes;
    durable_.content.read(line_offset, bytes.data(), line_bytes);
    put_bytes(bytes, store.bytes, store.mask);
    durable_.content.write(line_offset, bytes.data(), line_bytes);
    line.stores.erase(line.stores.begin() + static_cast<std::ptrdiff_t>(index));
    // An older store to the same bytes cannot overwrite it again.
    for (std::size_t i = 0; i < index; ++i) {
        line.stores[i].mask &= ~store.mask;
    }
    std::erase_if(line.stores, [](const Store& left) { return left.mask == 0; });
}

/// Non-temporal stores of the thread become durable, and stores that its write backs cover.
void CrashModel::fence(std::uint32_t thread)
{
    auto& covered = written_back_[thread];
    for (auto it = lines_.begin(); it != lines_.end();) {
        Line& line = it->second;
        const auto mark = covered.find(it->first);
        const std::uint64_t covered_number = mark != covered.end() ? mark->second : 0;
        bool again = true;
        while (again) {
            again = false;
            for (std::size_t i = 0; i < line.stores.size(); ++i) {
                const Store& store = line.stores[i];
                const bool own_nontemporal = !store.ordered && store.thread == thread;
                if (store.number <= covered_number || own_nontemporal) {
                    settle(it->first, line, i);
                    again = true;
                    break;
                }
            }
        }
        it = line.stores.empty() ? lines_.erase(it) : std::next(it);
    }
    covered.clear();
}

template <std::size_t size>
void CrashModel::sync(std::map<std::uint64_t, OnDisk<size>>& all)
{
    for (auto it = all.begin(); it != all.end();) {
        if (it->second.newest_is_lost) {
            ++it;
            continue;
        }
        durable_.content.write(it->first, it->second.versions.back().data(), size);
        it = all.erase(it);
    }
}

void CrashModel::sync()
{
    sync(sectors_);
    sync(words_);
    objects_.settle_all(durable_.content);
    if (!sizes_.empty()) {
        durable_size_ = sizes_.back();
        sizes_.clear();
    }
}

void CrashModel::kill()
{
    ++events_;
    written_back_.clear();
    if (!visible_.named) {
        *this = CrashModel(profile_, CrashImage{{}, false}, page_copy_, cut_sector_);  // A file without a name goes with its process.
        return;
    }
    if (profile_ == Profile::process) {
        settle_all_but_unfenced();
    } else if (profile_ == Profile::rados) {
        sync();  // The agent outlives the process until all that it was handed is written.
        head_changed();
        objects_ = {};  // An operation that was not handed over goes with the process.
    }
}

std::uint64_t CrashModel::versions_of(const Line& line) const noexcept
{
    std::uint64_t in_order = 1;
    unsigned unordered_words = 0;
    for (const Store& store : line.stores) {
        const auto words = static_cast<unsigned>(std::popcount(words_of(store.mask)));
        if (store.ordered) {
            in_order += (std::uint64_t{1} << words) - 1;
        } else {
            unordered_words += words;
        }
    }
    return in_order << std::min(unordered_words, unordered_words_max);
}

std::vector<CrashModel::Unit> CrashModel::units() const
{
    std::vector<Unit> units;
    for (const auto& [offset, line] : lines_) {
        units.push_back({Unit::Kind::line, offset, versions_of(line), line.stores.back().number});
    }
    for (const auto& [offset, sector] : sectors_) {
        units.push_back({Unit::Kind::sector, offset, sector.versions.size() + 1 + nonsense_versions(), sector.newest});
    }
    for (const auto& [offset, word] : words_) {
        units.push_back({Unit::Kind::word, offset, word.versions.size() + 1, word.newest});
    }
    for (const StoredObjects::Object& object : objects_.under_way()) {
        units.push_back({Unit::Kind::object, object.number * object_bytes, object.operations + 1, object.newest});
    }
    if (!sizes_.empty()) {
        units.push_back({Unit::Kind::size, 0, sizes_.size() + 1, events_});
    }
    if (name_pending_) {
        units.push_back({Unit::Kind::name, 0, 2, events_});
    }
    return units;
}

/// Version numbers of a line: the low part counts how far its ordered stores came, a torn one
/// between two whole ones; the high part has a bit for each word stored without order.
void CrashModel::put_version(PageMap& content, std::uint64_t offset, const Line& line, std::uint64_t version) const
{
    std::uint64_t in_order = 1;
    for (const Store& store : line.stores) {
        if (store.ordered) {
            in_order += (std::uint64_t{1} << std::popcount(words_of(store.mask))) - 1;
        }
    }
    std::uint64_t ordered_left = version % in_order;
    std::uint64_t unordered_bits = version / in_order;
    LineBytes bytes;
    content.read(offset, bytes.data(), line_bytes);
    for (const Store& store : line.stores) {
        const auto words = static_cast<unsigned>(std::popcount(words_of(store.mask)));
        const std::uint64_t all = (std::uint64_t{1} << words) - 1;
        std::uint64_t chosen = 0;
        if (store.ordered) {
            chosen = std::min(ordered_left, all);
            // Less than the whole store: nothing that is ordered follows it.
            ordered_left = ordered_left > all ? ordered_left - all : 0;
        } else {
            chosen = unordered_bits & all;
            unordered_bits >>= words;
        }
        put_bytes(bytes, store.bytes, part_of(store.mask, chosen));
    }
    content.write(offset, bytes.data(), line_bytes);
}

void CrashModel::put_version(PageMap& content, std::uint64_t offset, const Sector& sector, std::uint64_t version) const
{
    if (version > nonsense_versions()) {
        content.write(offset, sector.versions[version - 1 - nonsense_versions()].data(), sector_bytes);
    } else if (version != 0) {
        std::array<std::uint64_t, sector_bytes / sizeof(std::uint64_t)> nonsense;
        for (std::size_t word = 0; word < nonsense.size(); ++word) {
            nonsense[word] = mix64(offset, word);
        }
        content.write(offset, nonsense.data(), sector_bytes);
    }
}

CrashImage CrashModel::image(std::span<const Unit> units, std::span<const std::uint64_t> versions) const
{
    CrashImage image = durable_;
    std::uint64_t size = durable_size_;  // In full length first, so that every unit lies inside it.
    for (std::size_t i = 0; i < units.size(); ++i) {
        const Unit& unit = units[i];
        const std::uint64_t version = versions[i];
        switch (unit.kind) {
        case Unit::Kind::line: put_version(image.content, unit.offset, lines_.at(unit.offset), version); break;
        case Unit::Kind::sector: put_version(image.content, unit.offset, sectors_.at(unit.offset), version); break;
        case Unit::Kind::word:
            if (version != 0) {
                const Word& word = words_.at(unit.offset);
                image.content.write(unit.offset, word.versions[version - 1].data(), word.versions[version - 1].size());
            }
            break;
        case Unit::Kind::object: objects_.put(unit.offset / object_bytes, version, image.content); break;
        case Unit::Kind::size: size = version != 0 ? sizes_[version - 1] : durable_size_; break;
        case Unit::Kind::name: image.named = version != 0; break;
        }
    }
    image.content.resize(size);
    return image;
}

}  // namespace stillpoint::sim
