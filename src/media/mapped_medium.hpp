#pragma once
// The common part of the byte-addressable media: a file mapped at an address that does not change, written
// by stores, write backs and fences.

#include <algorithm>

#include "arch/native.hpp"
#include "media/counter.hpp"
#include "media/medium.hpp"
#include "media/open.hpp"
#include "media/pool_file.hpp"
#include "os/file_mapping.hpp"
#include "os/futex.hpp"

namespace stillpoint {

class MappedMedium : public Medium {
public:
    [[nodiscard]] std::string_view path() const noexcept final { return file_.path(); }
    [[nodiscard]] Durability durability() const noexcept final { return file_.durability(); }
    void set_durability(Durability durability) noexcept final;
    /// The mapped bytes: less than the file has after a growth that found no memory for the mapping.
    [[nodiscard]] std::uint64_t size_bytes() const noexcept final { return std::min(file_.size_bytes(), mapping_.size()); }
    [[nodiscard]] std::string_view mechanism() const noexcept final { return mechanism_; }
    [[nodiscard]] MediumCounters counters() const noexcept final;
    [[nodiscard]] Result<void> publish() final { return file_.publish(); }
    void honour_holds() noexcept final { file_.honour_holds(); }
    void begin_turn() noexcept final { file_.turns().begin(); }
    void end_turn() noexcept final { file_.turns().end(); }
    [[nodiscard]] Result<void> resize(std::uint64_t size) final { return resize_with_room(size, size); }
    [[nodiscard]] Result<void> resize_with_room(std::uint64_t size, std::uint64_t room_end) final;
    [[nodiscard]] Room room() const noexcept final { return file_.room(); }
    [[nodiscard]] Result<void> allocate(FileRange range) final { return file_.allocate(range); }
    void release(FileRange range) noexcept final { file_.release(range); }
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const final;
    [[nodiscard]] Result<void> write(std::span<const BlockWrite> batch) final;
    [[nodiscard]] Result<void> sync() final;
    [[nodiscard]] Result<void> check_intact() final { return file_.check_intact(); }
    [[nodiscard]] bool absorb_lost_page(void* address) noexcept final;
    void detach_after_fork() noexcept final;

    [[nodiscard]] bool byte_addressable() const noexcept final { return true; }
    [[nodiscard]] const std::byte* mapping() const noexcept final { return mapping_.base(); }
    void store(std::uint64_t offset, const void* data, std::size_t size) noexcept final;
    void store_nontemporal(std::uint64_t offset, const void* data, std::size_t size) noexcept final;
    void append_lines(std::uint64_t offset, const void* data, std::size_t size) noexcept final;
    void append_each(std::span<const LineWrite> lines) noexcept final;
    [[nodiscard]] bool compare_exchange_word(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired) noexcept final;
    void store_word(std::uint64_t offset, std::uint64_t value) noexcept final;
    void write_back_line(std::uint64_t offset) noexcept final;
    [[nodiscard]] bool has_lost_pages() const noexcept final { return file_.has_lost_pages(); }
    void write_back(std::uint64_t offset, std::size_t size) noexcept final;
    void fence() noexcept final;
    [[nodiscard]] Result<void> map_at(std::byte* address, std::uint64_t offset, std::uint64_t size) final;
    [[nodiscard]] Result<void> map_copy_at(std::byte* address, std::uint64_t offset, std::uint64_t size) noexcept final;
    void write_back_lines(std::span<const std::uintptr_t> line_addresses) noexcept final;

protected:
    MappedMedium(PoolFile file, const MediumOptions& options, os::FileMapping::Mode mode);

    /// Maps the whole file: before anything else. Errors: unsupported, no_memory, io.
    [[nodiscard]] Result<void> map();

    /// The delay that the medium charges for lines and bytes that reached it: nothing, or an emulated delay. Any thread.
    virtual void charge_lines(std::size_t lines) noexcept = 0;
    virtual void charge_pages(std::size_t bytes) noexcept = 0;
    /// Writes the medium's words before the instruction's name into mechanism().
    virtual std::string_view mechanism_prefix() const noexcept = 0;

    void describe_mechanism() noexcept;
    /// A persist point of such a member.
    void pass_persist_points(std::uint64_t count) noexcept;
    void pass_persist_point() noexcept { pass_persist_points(1); }

private:
    PoolFile file_;
    os::FileMapping mapping_;
    os::FileMapping::Mode mode_;
    arch::Native arch_;
    bool caches_are_persistent_;
    bool needs_write_back_ = true;
    char mechanism_[96] = {};
    Counter bytes_written_;
    Counter write_calls_;
    Counter syncs_;
    Counter lines_written_back_;
    enum Shared : std::size_t { bytes_appended, lines_of_any_thread, fences, persist_points, shared_figures };
    SharedCounters<shared_figures> shared_;  ///< of the members that any number of threads may call
    os::FutexLock observed_lock_;  ///< keeps observed stores of words in their order
};

}  // namespace stillpoint
