#pragma once
// PoolFile: the locked file under every medium: creation, locking, allocation, reading and
// syncing. How pages are written is the media's business; that a call can fail is this file's.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <sys/stat.h>
#include <sys/uio.h>

#include "core/result.hpp"
#include "media/fault_plan.hpp"
#include "media/open.hpp"
#include "media/write_turns.hpp"
#include "os/descriptor.hpp"

namespace stillpoint {

class PoolFile {
public:
    enum class Access { write, read_locked, read_unlocked };

    /// See create_medium. The new file is removed again on every error but pool_exists.
    [[nodiscard]] static Result<PoolFile> create(const MediumOptions& options, std::uint64_t size);
    /// See open_medium and open_medium_read_only.
    [[nodiscard]] static Result<PoolFile> open(const MediumOptions& options, Access access);

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] int fd() const noexcept { return file_.get(); }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
    [[nodiscard]] bool writable() const noexcept { return access_ == Access::write; }
    [[nodiscard]] Durability durability() const noexcept { return durability_; }
    void set_durability(Durability durability) noexcept { durability_ = durability; }
    /// True where the page cache is the file's only home (tmpfs, ramfs).
    [[nodiscard]] bool lives_in_memory() const noexcept { return lives_in_memory_; }
    [[nodiscard]] Room room() const noexcept { return lives_in_memory_ ? Room::in_memory : Room::on_disk; }

    /// Grows the file with all space allocated, durable at durability(). Errors: no_space and
    /// unsupported (nothing changed), pool_read_only, invalid_argument, io.
    /// With room up to `room_end`, where the file system can allocate.
    [[nodiscard]] Result<void> grow(std::uint64_t size, std::uint64_t room_end);

    /// See Medium::allocate.
    [[nodiscard]] Result<void> allocate(FileRange range);
    /// See Medium::release.
    void release(FileRange range) noexcept;

    /// False between a creation with publish_later and publish().
    [[nodiscard]] bool named() const noexcept { return !unnamed_; }
    /// See Medium::publish.
    [[nodiscard]] Result<void> publish();

    /// See Medium::read. Any thread.
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const;

    /// One pwritev as the system does it: may be short, may fail with any errno. `fd` is fd() or
    /// another descriptor of the same file. Takes part in fault injection.
    [[nodiscard]] ssize_t write_once(int fd, const iovec* vectors, int count, std::uint64_t offset) noexcept;

    /// fdatasync, which takes the size along; the first one of a run is sync_metadata(). Nothing under
    /// Durability::process. A failure freezes the file. Returns whether a system call was made. Errors: no_space, io,
    /// pool_read_only (frozen, or opened for reading).
    [[nodiscard]] Result<bool> sync();

    /// fsync of the file, and of the directory that has its name, once in a run: an earlier run may have been killed
    /// between making or growing the file and syncing that, and what this run makes durable would go with the name
    /// or the size. Other calls do nothing. Errors as sync().
    [[nodiscard]] Result<void> sync_metadata();

    /// ok, or why nothing may be written: opened for reading, or frozen by an earlier failure.
    [[nodiscard]] Result<void> check_writable() const;
    /// See Medium::check_intact. One fstat for each descriptor; `other` is one more of this file, or -1. Freezes the
    /// file where it is not intact.
    [[nodiscard]] Result<void> check_intact(int other = -1);
    /// Whether `fd` is this file, by device and inode.
    [[nodiscard]] bool is_same_file(int fd) const noexcept
    {
        struct stat facts{};
        return is_descriptor_of_this(fd, facts);
    }
    /// A page of the file's mapping was lost: check_intact() fails from here on. Async-signal-safe.
    [[nodiscard]] bool has_lost_pages() const noexcept { return lost_page_.load(std::memory_order_acquire); }
    void note_lost_page() noexcept { lost_page_.store(true, std::memory_order_release); }

    /// ok if `offset` and `size` name whole pages inside the file.
    [[nodiscard]] Result<void> check_range(std::uint64_t offset, std::uint64_t size) const;

    /// Turns a refused write into a Failure and freezes the file: what a failed write left on the
    /// disk is unknown, and the kernel may forget the error, so that no later sync() may succeed.
    [[nodiscard]] tl::unexpected<Failure> fail_write(int error, std::uint64_t offset, std::uint64_t size) noexcept;

    /// The file honours holds of copiers from here on.
    void honour_holds() noexcept { turns_.honour_holds(fd()); }
    [[nodiscard]] WriteTurns& turns() noexcept { return turns_; }

    [[nodiscard]] FaultPlan& faults() const noexcept { return faults_; }

    /// In a child after fork: closes the descriptors. The lock stays with the parent.
    void detach_after_fork() noexcept;

private:
    /// Which file it is, whatever number its descriptor has.
    struct Identity {
        dev_t device = 0;
        ino_t inode = 0;
    };
    /// An atomic that moves with its owner, before any thread can share it.
    struct LostPage : std::atomic<bool> {
        LostPage() noexcept : std::atomic<bool>(false) {}
        LostPage(LostPage&& other) noexcept : std::atomic<bool>(other.load()) {}
        LostPage& operator=(LostPage&& other) noexcept
        {
            store(other.load());
            return *this;
        }
    };

    PoolFile() = default;
    [[nodiscard]] bool is_descriptor_of_this(int fd, struct stat& facts) const noexcept;
    [[nodiscard]] Result<void> lock_and_inspect();
    [[nodiscard]] int open_new(bool unnamed) noexcept;
    [[nodiscard]] Result<void> allocate_new(std::uint64_t size, const TwoFileRanges& without_room);
    /// The end of the file, which gives it its size: bytes from `room_end` on get no room.
    [[nodiscard]] Result<void> allocate_tail(FileRange range, std::uint64_t room_end);
    /// Bytes that hold nothing: they are filled with zeroes where the file system cannot allocate.
    [[nodiscard]] Result<void> allocate_fresh(FileRange range);
    [[nodiscard]] Result<void> outcome_of_allocation(int error, FileRange range) const;
    /// errno, or 0.
    [[nodiscard]] int reserve(FileRange range) noexcept;
    [[nodiscard]] int allocate_once(std::uint64_t begin, std::uint64_t size) noexcept;
    [[nodiscard]] int fill_with_zeroes(std::uint64_t begin, std::uint64_t end) noexcept;
    void open_directory();
    [[nodiscard]] int sync_name() noexcept;
    [[nodiscard]] tl::unexpected<Failure> fail_sync(int error) noexcept;

    std::string path_;
    os::Descriptor file_;
    os::Descriptor directory_;  ///< that has the file's name, until this run has synced it
    std::uint64_t size_bytes_ = 0;
    Access access_ = Access::write;
    Durability durability_ = Durability::power;
    bool lives_in_memory_ = false;
    bool metadata_is_durable_ = true;  ///< this run has synced size and name
    bool unnamed_ = false;  ///< created without a name, until publish()
    bool frozen_ = false;
    Identity identity_;
    LostPage lost_page_;
    WriteTurns turns_;
    mutable FaultPlan faults_;
};

}  // namespace stillpoint
