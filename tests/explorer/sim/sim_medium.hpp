#pragma once
// The simulated medium, as a program sees it, and as an offline tool does.
//
// A Stage takes the place of every path while it is set: create_medium() and open_medium() then give a
// SimMedium over its file. The program reads the file through a view that it cannot write, so a
// store that does not go through the medium's calls, and would escape the trace, faults. Where the program asks for the bytes
// as its own memory (map_at), its stores there are traced one by one (store_tracer.hpp).

#include <cstdint>
#include <memory>

#include "media/counter.hpp"
#include "media/medium.hpp"
#include "media/open.hpp"
#include "os/futex.hpp"
#include "sim/crash_model.hpp"
#include "sim/trace.hpp"
#include "support/room_on_disk.hpp"

namespace stillpoint::sim {

/// The one file of a simulated machine. One program at a time, one pool.
class Stage final : public MediumOpener {
public:
    /// `byte_addressable`: what the medium offers; `file`: what it holds.
    Stage(bool byte_addressable, CrashImage file);
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    ~Stage() override;

    [[nodiscard]] Result<std::unique_ptr<Medium>> create(const MediumOptions& options, std::uint64_t size) override;
    [[nodiscard]] Result<std::unique_ptr<Medium>> open(const MediumOptions& options) override;

    [[nodiscard]] bool byte_addressable() const noexcept { return byte_addressable_; }
    [[nodiscard]] Room room() const noexcept { return byte_addressable_ && !primitive ? Room::in_memory : Room::on_disk; }

    /// The file's bytes, for all readers.
    [[nodiscard]] const std::byte* visible_bytes() const noexcept { return readable_; }

    /// The operations on objects that a sync waits for. All but `everything` are defects, which the explorer must notice.
    enum class SyncWaitsFor : std::uint8_t { everything, first_object, nothing };

    /// The bytes lie in objects of RADOS (stored_objects.hpp). Set before the pool is made or opened.
    bool in_objects = false;
    SyncWaitsFor sync_waits_for = SyncWaitsFor::everything;
    /// false, a defect: operations of a former owner are applied.
    bool fences_owners = true;
    /// Another client becomes the owner, as the block list and the head's new generation do it: what was applied of the former one's
    /// operations is in `applied`, and no other of them will ever be.
    void take_over(const CrashImage& applied);

    /// The sync with this number, counted from 0, fails. Later ones would succeed, as a kernel's do.
    std::uint64_t failing_sync = UINT64_MAX;
    /// A sync takes so long: what others do meanwhile is not in it.
    std::uint32_t sync_us = 0;
    /// A fence takes up to so long, each another time: other threads' stores and fences come between.
    std::uint32_t fence_us_max = 0;
    /// A file system without unnamed files, on which a file has its name as soon as it is made, and a new
    /// file's pages 2 to 5 hold something; a file that is opened is longer than its pool, as after a growth that was cut off.
    bool primitive = false;
    /// Besides that, a stranger has written after the pool's end.
    bool stranger = false;
    /// In the trace, of what happens to this file, where a machine has several.
    std::uint8_t number = 0;
    /// In objects: the process that has claimed the pool last (Medium::claim).
    std::uint64_t writer = 0;

    [[nodiscard]] bool named() const noexcept { return named_; }

private:
    friend class SimMedium;
    static constexpr std::uint64_t reserved_bytes = 1 * gib;

    bool byte_addressable_;
    bool named_;
    std::uint64_t size_bytes_;
    testing::RoomOnDisk room_;  ///< of a pool that this run has made
    std::uint64_t owners_ = 0;  ///< how many there were
    int fd_;
    std::byte* writable_;        ///< of the medium alone
    const std::byte* readable_;  ///< the same memory, for all readers
};

/// Set by a test program before it opens its pool; nullptr: paths are paths. Not thread-safe.
void set_stage(Stage* stage) noexcept;
[[nodiscard]] Stage* stage() noexcept;

class SimMedium final : public Medium {
public:
    [[nodiscard]] static Result<std::unique_ptr<Medium>> create(Stage& stage, const MediumOptions& options, std::uint64_t size);
    [[nodiscard]] static Result<std::unique_ptr<Medium>> open(Stage& stage, const MediumOptions& options);

    [[nodiscard]] std::string_view path() const noexcept override { return path_; }
    [[nodiscard]] Durability durability() const noexcept override { return durability_; }
    void set_durability(Durability durability) noexcept override { durability_ = durability; }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return stage_.size_bytes_; }
    [[nodiscard]] std::string_view mechanism() const noexcept override { return "simulated"; }
    [[nodiscard]] MediumCounters counters() const noexcept override;
    [[nodiscard]] Result<void> publish() override;
    [[nodiscard]] Result<void> claim(std::uint64_t writer) override;
    [[nodiscard]] std::uint64_t last_writer() const noexcept override { return last_writer_; }
    [[nodiscard]] Result<void> resize(std::uint64_t size) override;
    [[nodiscard]] Result<void> resize_with_room(std::uint64_t size, std::uint64_t room_end) override;
    [[nodiscard]] Room room() const noexcept override { return stage_.room(); }
    [[nodiscard]] Result<void> allocate(FileRange range) override;
    void release(FileRange range) noexcept override;
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const override;
    [[nodiscard]] Result<void> write(std::span<const BlockWrite> batch) override;
    [[nodiscard]] Result<void> sync() override;
    [[nodiscard]] bool byte_addressable() const noexcept override { return stage_.byte_addressable_; }
    [[nodiscard]] const std::byte* mapping() const noexcept override;
    void store(std::uint64_t offset, const void* data, std::size_t size) noexcept override;
    void store_nontemporal(std::uint64_t offset, const void* data, std::size_t size) noexcept override;
    void write_back(std::uint64_t offset, std::size_t size) noexcept override;
    void fence() noexcept override;
    [[nodiscard]] Result<void> map_at(std::byte* address, std::uint64_t offset, std::uint64_t size) override;
    [[nodiscard]] Result<void> map_copy_at(std::byte* address, std::uint64_t offset, std::uint64_t size) noexcept override;
    void write_back_lines(std::span<const std::uintptr_t> line_addresses) noexcept override;
    [[nodiscard]] bool compare_exchange_word(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired) noexcept override;
    void store_word(std::uint64_t offset, std::uint64_t value) noexcept override;
    void write_back_line(std::uint64_t offset) noexcept override;

private:
    SimMedium(Stage& stage, const MediumOptions& options);
    /// Into the trace, as an event of this file.
    void record(EventKind kind, std::uint64_t offset = 0, const void* data = nullptr, std::uint64_t size = 0,
                std::uint64_t value = 0) const noexcept
    {
        sim::record(kind, offset, data, size, value, stage_.number);
    }
    void leave_noise(std::uint64_t offset, std::size_t size);
    void put(EventKind kind, std::uint64_t offset, const void* data, std::size_t size, std::uint64_t value = 0) noexcept;
    [[nodiscard]] Result<void> sync_file();
    [[nodiscard]] Result<void> check_owner();
    [[nodiscard]] Result<void> change_head();
    void write_operations(std::span<const BlockWrite> batch);

    Stage& stage_;
    std::string path_;
    Durability durability_;
    bool metadata_is_durable_ = false;  ///< this run has synced size and name
    bool frozen_ = false;
    std::uint64_t owner_;
    std::uint64_t last_writer_ = 0;
    std::uint64_t syncs_begun_ = 0;
    os::FutexLock exchange_lock_;  ///< traced in the order in which they take effect
    Counter bytes_written_;
    Counter write_calls_;
    Counter syncs_;
    Counter lines_written_back_;
    Counter fences_;
};

/// A crash image for an offline look: reads only.
class ImageMedium final : public Medium {
public:
    /// `content` outlives the medium.
    ImageMedium(const PageMap& content, bool byte_addressable, std::uint64_t unreadable_sector = CrashImage::none) noexcept
        : content_(content), byte_addressable_(byte_addressable), unreadable_sector_(unreadable_sector)
    {
    }

    [[nodiscard]] std::string_view path() const noexcept override { return "crash image"; }
    [[nodiscard]] Durability durability() const noexcept override { return durability_; }
    void set_durability(Durability durability) noexcept override { durability_ = durability; }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return content_.size_bytes(); }
    [[nodiscard]] std::string_view mechanism() const noexcept override { return "simulated"; }
    [[nodiscard]] MediumCounters counters() const noexcept override { return {}; }
    [[nodiscard]] Result<void> resize(std::uint64_t) override { return refuse(); }
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const override;
    [[nodiscard]] Result<void> write(std::span<const BlockWrite>) override { return refuse(); }
    [[nodiscard]] Result<void> sync() override { return refuse(); }
    [[nodiscard]] bool byte_addressable() const noexcept override { return byte_addressable_; }
    [[nodiscard]] const std::byte* mapping() const noexcept override { return nullptr; }
    void store(std::uint64_t, const void*, std::size_t) noexcept override {}
    void store_nontemporal(std::uint64_t, const void*, std::size_t) noexcept override {}
    void write_back(std::uint64_t, std::size_t) noexcept override {}
    void fence() noexcept override {}

private:
    [[nodiscard]] static tl::unexpected<Failure> refuse();

    const PageMap& content_;
    bool byte_addressable_;
    std::uint64_t unreadable_sector_;
    Durability durability_ = Durability::power;
};

}  // namespace stillpoint::sim
