#pragma once
// CrashModel: what a crash may leave of the events of a trace. docs/internals/crash-model.md states the
// rules and their sources; crash_model_test.cpp shows each as a litmus test.
//
// The model keeps what is certainly durable, what a process reads, and, for each unit that lands on its
// own (a cache line, a sector, the file's size, its name), the list of what may have landed beyond the
// certain. A crash takes one version of each unit, independently.

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "sim/page_map.hpp"
#include "sim/stored_objects.hpp"
#include "sim/trace.hpp"

namespace stillpoint::sim {

enum class Profile : std::uint8_t {
    process,            ///< the process dies, the machine does not: what was handed over stays
    persistent_caches,  ///< power fails; caches are durable (eADR, GPF), non-temporal stores once fenced
    cache_line,         ///< power fails; a line is durable once written back and fenced
    page,               ///< power fails; a sector is durable once synced
    rados,              ///< the client ends; each object has a prefix of the operations that are not acknowledged
};

[[nodiscard]] std::string_view to_text(Profile profile) noexcept;

inline constexpr std::size_t sector_bytes = 512;

/// How a page of a mapped file, which the program stores into meanwhile, gets to the disk (profile `page`).
enum class PageCopy : std::uint8_t {
    at_one_instant,  ///< each sector as it was at some instant after the last sync
    word_by_word,    ///< copied while it changes: each word as it was at an instant of its own
};

/// The possible contents, after a power cut, of a sector that was handed to a disk and not synced (profile `page`).
enum class CutSector : std::uint8_t {
    old_or_new,   ///< one of the contents that it has had since the last sync
    or_nonsense,  ///< or bytes that were never written
};

/// A file as a crash leaves it.
struct CrashImage {
    static constexpr std::uint64_t none = UINT64_MAX;

    PageMap content;
    bool named = true;  ///< false: there is no file of that name
    std::uint64_t unreadable_sector = none;  ///< offset of one that a read fails on

    [[nodiscard]] std::uint64_t digest() const noexcept { return named ? content.digest() : 0; }
};

class CrashModel {
public:
    /// The units that can be in several states after a crash now, independently of the others.
    struct Unit {
        enum class Kind : std::uint8_t { line, sector, word, object, size, name };
        Kind kind;
        std::uint64_t offset;    ///< in the file; 0 for size and name
        std::uint64_t versions;  ///< 0: nothing beyond the certain; versions - 1: all of it
        std::uint64_t newest;    ///< number of the event that touched it last
    };

    /// A file whose present content is durable.
    CrashModel(Profile profile, CrashImage durable, PageCopy page_copy = PageCopy::at_one_instant,
               CutSector cut_sector = CutSector::old_or_new);

    [[nodiscard]] Profile profile() const noexcept { return profile_; }
    [[nodiscard]] CutSector cut_sector() const noexcept { return cut_sector_; }

    /// Takes the next event of a trace. Events that do not concern the medium do nothing.
    void apply(const Event& event);

    /// The process dies: what it stored stays readable, and what is not durable stays so. Write backs
    /// that no fence followed are not counted on.
    void kill();

    /// The bytes that a process reads now, and would find after a kill.
    [[nodiscard]] const CrashImage& visible() const noexcept { return visible_; }

    /// All units with more than one version.
    [[nodiscard]] std::vector<Unit> units() const;
    /// The image that takes versions[i] of units[i]; the units are those of units() now.
    [[nodiscard]] CrashImage image(std::span<const Unit> units, std::span<const std::uint64_t> versions) const;

private:
    static constexpr std::size_t line_bytes = 64;
    using LineBytes = std::array<std::byte, line_bytes>;

    /// A store, or the part of one that concerns one line.
    struct Store {
        std::uint64_t number;  ///< of the event
        std::uint32_t thread;
        bool ordered;          ///< persists after the stores before it to its line
        std::uint64_t mask;    ///< bit i: byte i of the line
        LineBytes bytes;
    };
    struct Line {
        std::vector<Store> stores;
    };
    /// The contents that the disk may have of a run of bytes.
    template <std::size_t size>
    struct OnDisk {
        using Bytes = std::array<std::byte, size>;
        std::vector<Bytes> versions;
        bool newest_is_lost = false;  ///< by a failed sync: no later sync makes it certain
        std::uint64_t newest = 0;
    };
    using Sector = OnDisk<sector_bytes>;
    using Word = OnDisk<sizeof(std::uint64_t)>;

    void store(const Event& event, bool ordered);
    void store_to_page(const Event& event);
    void note_sectors(const Event& event);
    template <std::size_t size>
    void note_version(std::map<std::uint64_t, OnDisk<size>>& all, std::uint64_t offset);
    template <std::size_t size>
    void sync(std::map<std::uint64_t, OnDisk<size>>& all);
    void block_write(const Event& event);
    void fence(std::uint32_t thread);
    void settle(std::uint64_t line_offset, Line& line, std::size_t index);
    void settle_stores(std::uint64_t last_number);
    void settle_all_but_unfenced();
    void head_changed();
    void apply_to_objects(const Event& event);
    void sync();
    [[nodiscard]] std::uint64_t versions_of(const Line& line) const noexcept;
    /// Version 1 of a sector, where there is one: it comes before what was written.
    [[nodiscard]] std::uint64_t nonsense_versions() const noexcept { return cut_sector_ == CutSector::or_nonsense ? 1 : 0; }
    void put_version(PageMap& content, std::uint64_t offset, const Sector& sector, std::uint64_t version) const;
    void put_version(PageMap& content, std::uint64_t offset, const Line& line, std::uint64_t version) const;

    Profile profile_;
    CrashImage durable_;  ///< its content is as long as the visible one: durable_size_ counts
    CrashImage visible_;
    std::uint64_t durable_size_;
    std::map<std::uint64_t, Line> lines_;
    std::map<std::uint64_t, Sector> sectors_;
    StoredObjects objects_;
    PageCopy page_copy_;
    CutSector cut_sector_;
    std::map<std::uint64_t, Word> words_;  ///< where pages are copied word by word
    std::vector<std::uint64_t> sizes_;  ///< since the last sync
    bool name_pending_ = false;
    std::uint64_t events_ = 0;
    /// By thread: line and number of the newest store that its write backs cover.
    std::map<std::uint32_t, std::map<std::uint64_t, std::uint64_t>> written_back_;
};

}  // namespace stillpoint::sim
