#pragma once
// For tests only: a pool file in memory that is damaged in one place, recovered, and put back as it was, many thousand
// times a second. What recovery writes is undone too.

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "media/medium.hpp"
#include "support/room_on_disk.hpp"

namespace stillpoint::testing {

class PatchedFile {
public:
    explicit PatchedFile(std::vector<std::byte> content) : bytes_(std::move(content)) {}

    [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

    /// Overwrites; undo() takes it back. The file grows where it must.
    void patch(std::uint64_t offset, const std::byte* data, std::size_t size)
    {
        resize(std::max<std::uint64_t>(bytes_.size(), offset + size));
        if (is_unreadable(offset, size)) {
            make_unreadable(0, 0);  // A disk writes elsewhere what it cannot write in its place.
        }
        writes_without_room_ += room_.is_there_for(offset, size) ? 0u : 1u;
        saved_.push_back(
            {offset, {bytes_.begin() + static_cast<std::ptrdiff_t>(offset), bytes_.begin() + static_cast<std::ptrdiff_t>(offset + size)}});
        std::memcpy(bytes_.data() + offset, data, size);
    }
    void flip_bit(std::uint64_t bit)
    {
        const std::byte changed = bytes_[bit / 8] ^ std::byte(1U << (bit % 8));
        patch(bit / 8, &changed, 1);
    }
    void resize(std::uint64_t size)
    {
        if (size > bytes_.size()) {
            size_before_ = size_before_ == 0 ? bytes_.size() : size_before_;
            bytes_.resize(size);
        }
    }
    /// Reads of these bytes fail, until something is written there or undo().
    void make_unreadable(std::uint64_t offset, std::uint64_t size)
    {
        unreadable_begin_ = offset;
        unreadable_end_ = offset + size;
    }
    [[nodiscard]] bool is_unreadable(std::uint64_t offset, std::uint64_t size) const noexcept
    {
        return offset < unreadable_end_ && offset + size > unreadable_begin_;
    }

    /// The disk has no room for these bytes yet: what is written there is counted.
    void leave_without_room(const TwoFileRanges& ranges) { room_.leave_without(ranges); }
    /// The first of them. False: the disk is full.
    [[nodiscard]] bool take_room(FileRange range) noexcept
    {
        if (disk_is_full && !room_.is_there_for(range.begin, range.end - range.begin)) {
            return false;
        }
        room_.take(range);
        return true;
    }
    /// The bytes read as zeroes.
    void release_room(FileRange range)
    {
        std::fill(bytes_.begin() + static_cast<std::ptrdiff_t>(range.begin), bytes_.begin() + static_cast<std::ptrdiff_t>(range.end),
                  std::byte{});
        room_.leave_without(range);
    }
    [[nodiscard]] std::uint64_t bytes_without_room() const noexcept { return room_.bytes_without(); }
    [[nodiscard]] std::uint64_t writes_without_room() const noexcept { return writes_without_room_; }
    bool disk_is_full = false;
    bool is_memory = false;  ///< Medium::room()

    /// A moment to which undo_to() returns.
    [[nodiscard]] std::size_t patches() const noexcept { return saved_.size(); }
    void undo_to(std::size_t patches)
    {
        for (; saved_.size() > patches; saved_.pop_back()) {
            const auto& [offset, old] = saved_.back();
            std::memcpy(bytes_.data() + offset, old.data(), old.size());
        }
    }
    void undo()
    {
        undo_to(0);
        make_unreadable(0, 0);
        if (size_before_ != 0) {
            bytes_.resize(size_before_);
            size_before_ = 0;
        }
    }

private:
    std::vector<std::byte> bytes_;
    std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> saved_;
    std::uint64_t size_before_ = 0;  ///< 0: not resized
    std::uint64_t unreadable_begin_ = 0;
    std::uint64_t unreadable_end_ = 0;
    RoomOnDisk room_;
    std::uint64_t writes_without_room_ = 0;
};

class PatchedMedium final : public Medium {
public:
    /// A `mapped` one is byte-addressable; it does not grow.
    explicit PatchedMedium(std::shared_ptr<PatchedFile> file, bool mapped = false) : file_(std::move(file)), mapped_(mapped) {}

    std::string_view path() const noexcept override { return "patched.pool"; }
    Durability durability() const noexcept override { return durability_; }
    void set_durability(Durability durability) noexcept override { durability_ = durability; }
    std::uint64_t size_bytes() const noexcept override { return file_->bytes().size(); }
    std::string_view mechanism() const noexcept override { return "memory of a test"; }
    MediumCounters counters() const noexcept override { return {}; }

    Result<void> resize(std::uint64_t size) override
    {
        if (size > size_limit || (mapped_ && !file_->is_memory)) {
            return fail(SP_E_NO_SPACE, ENOSPC, "patched.pool: no space for {} bytes", size);
        }
        file_->resize(size);
        return {};
    }
    Result<void> resize_with_room(std::uint64_t size, std::uint64_t room_end) override
    {
        const std::uint64_t begin = std::max<std::uint64_t>(file_->bytes().size(), room_end);
        auto resized = resize(size);
        if (resized && begin < size) {
            file_->release_room({begin, size});
        }
        return resized;
    }
    Room room() const noexcept override { return file_->is_memory ? Room::in_memory : Room::on_disk; }
    Result<void> allocate(FileRange range) override
    {
        if (!file_->take_room(range)) {
            return fail(SP_E_NO_SPACE, ENOSPC, "patched.pool: no space for {} bytes", range.end - range.begin);
        }
        return {};
    }
    void release(FileRange range) noexcept override { file_->release_room(range); }
    Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const override
    {
        const std::uint64_t size = file_->bytes().size();
        if (offset > size || destination.size() > size - offset) {
            return fail(SP_E_POOL_TRUNCATED, 0, "patched.pool: read at {} beyond the end", offset);
        }
        if (file_->is_unreadable(offset, destination.size())) {
            return fail(SP_E_IO, EIO, "patched.pool: read at {}", offset);
        }
        std::memcpy(destination.data(), file_->bytes().data() + offset, destination.size());
        return {};
    }
    Result<void> write(std::span<const BlockWrite> batch) override
    {
        for (const BlockWrite& one : batch) {
            if (one.offset > file_->bytes().size() || one.size > file_->bytes().size() - one.offset) {
                return fail(SP_E_INVALID_ARGUMENT, 0, "patched.pool: a write at {} beyond the end", one.offset);
            }
            file_->patch(one.offset, one.data, one.size);
        }
        return {};
    }
    Result<void> sync() override { return {}; }

    bool byte_addressable() const noexcept override { return mapped_; }
    const std::byte* mapping() const noexcept override { return mapped_ ? file_->bytes().data() : nullptr; }
    void store(std::uint64_t offset, const void* data, std::size_t size) noexcept override
    {
        file_->patch(offset, static_cast<const std::byte*>(data), size);
    }
    void store_nontemporal(std::uint64_t offset, const void* data, std::size_t size) noexcept override { store(offset, data, size); }
    void write_back(std::uint64_t, std::size_t) noexcept override {}
    void fence() noexcept override {}

    static constexpr std::uint64_t size_limit = std::uint64_t{1} << 30;

private:
    std::shared_ptr<PatchedFile> file_;
    bool mapped_ = false;
    Durability durability_ = Durability::power;
};

}  // namespace stillpoint::testing
