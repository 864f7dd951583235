#pragma once
// A byte-addressable medium in memory that knows which bytes a crash cannot lose. A line that was written back has, after the fence of the
// same thread, at least the bytes that it had when it was written back; any other line that differs may have reached the memory or not.

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "media/medium.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::test {

/// The memory that survives the death of everything else.
class CrashMemory {
public:
    explicit CrashMemory(std::vector<std::byte> content) : durable_(std::move(content))
    {
        file_ = memfd_create("crash-memory", MFD_CLOEXEC);
        if (file_ < 0 || ftruncate(file_, static_cast<off_t>(durable_.size())) != 0) {
            std::abort();
        }
        void* const mapped = mmap(nullptr, durable_.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
        if (mapped == MAP_FAILED) {
            std::abort();
        }
        now_ = static_cast<std::byte*>(mapped);
        std::memcpy(now_, durable_.data(), durable_.size());
    }
    explicit CrashMemory(std::uint64_t size) : CrashMemory(std::vector<std::byte>(size)) {}
    CrashMemory(const CrashMemory&) = delete;
    CrashMemory& operator=(const CrashMemory&) = delete;
    ~CrashMemory()
    {
        munmap(now_, durable_.size());
        close(file_);
    }

    [[nodiscard]] std::uint64_t size() const noexcept { return durable_.size(); }
    [[nodiscard]] std::byte* now() const noexcept { return now_; }
    [[nodiscard]] int file() const noexcept { return file_; }

    void write_back(std::uint64_t offset, std::uint64_t size)
    {
        if (before_write_back) {
            before_write_back();
        }
        const std::lock_guard hold(lock_);
        auto& pending = pending_[std::this_thread::get_id()];
        for (std::uint64_t line = offset / cache_line_bytes; line * cache_line_bytes < offset + size; ++line) {
            Line& captured = pending.emplace_back();
            captured.number = line;
            std::memcpy(captured.bytes, now_ + line * cache_line_bytes, cache_line_bytes);
        }
    }
    void fence()
    {
        if (before_fence) {
            before_fence();
        }
        const std::lock_guard hold(lock_);
        ++fences;
        auto& pending = pending_[std::this_thread::get_id()];
        if (fences != fence_left_out) {
            for (const Line& line : pending) {
                std::memcpy(durable_.data() + line.number * cache_line_bytes, line.bytes, cache_line_bytes);
            }
        }
        pending.clear();
    }

    /// Which of the lines that may have reached the memory have: none, all, or by chance.
    enum class Lines { none, all, some };
    [[nodiscard]] std::vector<std::byte> crash(Lines lines, std::mt19937_64& random)
    {
        const std::lock_guard hold(lock_);
        std::vector<std::byte> left = durable_;
        for (std::uint64_t offset = 0; lines != Lines::none && offset < left.size(); offset += page_bytes) {
            if (std::memcmp(left.data() + offset, now_ + offset, page_bytes) == 0) {
                continue;
            }
            for (std::uint64_t line = offset; line < offset + page_bytes; line += cache_line_bytes) {
                if (lines == Lines::all || random() % 2 == 0) {
                    std::memcpy(left.data() + line, now_ + line, cache_line_bytes);
                }
            }
        }
        return left;
    }

    std::function<void()> before_write_back;
    std::function<void()> before_fence;    ///< what it had been told to write back is not durable yet
    std::uint64_t fences = 0;
    std::uint64_t fence_left_out = 0;      ///< one that does nothing: a mistake that tests must notice

private:
    struct Line {
        std::uint64_t number;
        std::byte bytes[cache_line_bytes];
    };
    std::vector<std::byte> durable_;
    std::byte* now_ = nullptr;
    int file_ = -1;
    std::mutex lock_;
    std::map<std::thread::id, std::vector<Line>> pending_;
};

class CrashMedium : public Medium {
public:
    explicit CrashMedium(std::shared_ptr<CrashMemory> memory) : memory_(std::move(memory)) {}

    [[nodiscard]] std::string_view path() const noexcept override { return "crash-memory"; }
    [[nodiscard]] Durability durability() const noexcept override { return Durability::power; }
    void set_durability(Durability) noexcept override {}
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return memory_->size(); }
    [[nodiscard]] std::string_view mechanism() const noexcept override { return "simulated"; }
    [[nodiscard]] MediumCounters counters() const noexcept override { return {}; }
    [[nodiscard]] Result<void> resize(std::uint64_t) override { return fail(SP_E_NO_SPACE, 0, "the memory does not grow"); }
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const override
    {
        std::memcpy(destination.data(), memory_->now() + offset, destination.size());
        return {};
    }
    [[nodiscard]] Result<void> write(std::span<const BlockWrite> batch) override
    {
        for (const BlockWrite& write : batch) {
            store(write.offset, write.data, write.size);
            write_back(write.offset, write.size);
        }
        fence();
        return {};
    }
    [[nodiscard]] Result<void> sync() override
    {
        fence();
        return {};
    }
    [[nodiscard]] bool byte_addressable() const noexcept override { return true; }
    [[nodiscard]] const std::byte* mapping() const noexcept override { return memory_->now(); }
    void store(std::uint64_t offset, const void* data, std::size_t size) noexcept override
    {
        std::memcpy(memory_->now() + offset, data, size);
    }
    void store_nontemporal(std::uint64_t offset, const void* data, std::size_t size) noexcept override
    {
        store(offset, data, size);
        write_back(offset, size);
    }
    void write_back(std::uint64_t offset, std::size_t size) noexcept override { memory_->write_back(offset, size); }
    void fence() noexcept override { memory_->fence(); }
    [[nodiscard]] Result<void> map_at(std::byte* address, std::uint64_t offset, std::uint64_t size) override
    {
        if (os::map_own(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory_->file(), static_cast<off_t>(offset)) ==
            MAP_FAILED) {
            return fail(SP_E_NO_MEMORY, errno, "cannot map");
        }
        mapped_at_ = reinterpret_cast<std::uintptr_t>(address);
        mapped_offset_ = offset;
        return {};
    }
    void write_back_lines(std::span<const std::uintptr_t> line_addresses) noexcept override
    {
        for (const std::uintptr_t line : line_addresses) {
            memory_->write_back(line - mapped_at_ + mapped_offset_, cache_line_bytes);
        }
    }

private:
    std::shared_ptr<CrashMemory> memory_;
    std::uintptr_t mapped_at_ = 0;  ///< the last range; pools of one segment have one
    std::uint64_t mapped_offset_ = 0;
};

}  // namespace stillpoint::test
