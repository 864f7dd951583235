#pragma once
// The states that a crash may leave of a mapped pool: for each cache line, the bytes that were durable last, or any that it has held
// since. Lines become durable in any order; a line that was written back is durable once its thread has fenced.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "undo_machine.hpp"

namespace stillpoint::undo {

/// Cache lines of an image are those of the pool.
template <class T>
struct PageAligned {
    using value_type = T;
    static constexpr std::align_val_t page{4096};

    PageAligned() = default;
    template <class U>
    explicit(false) PageAligned(const PageAligned<U>&) noexcept
    {
    }
    T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), page)); }
    void deallocate(T* items, std::size_t) noexcept { ::operator delete(items, page); }
    bool operator==(const PageAligned&) const = default;
};

class CrashModel final : public Listener {
public:
    using Image = std::vector<std::byte, PageAligned<std::byte>>;
    /// Called with each image of a crash.
    using Judge = std::function<void(Image&)>;

    /// The pool's `size` bytes at `base` are durable as they are.
    CrashModel(const std::byte* base, std::size_t size, std::uint64_t seed, Judge judge)
        : base_(base), durable_(base, base + size), seen_(durable_), judge_(std::move(judge)), random_(seed)
    {
    }

    void wrote_back(const void* line) override
    {
        const std::lock_guard locked(lock_);
        observe();
        const auto number = static_cast<std::size_t>(static_cast<const std::byte*>(line) - base_) / line_bytes;
        if (const auto found = held_.find(number); found != held_.end()) {
            written_back_[std::this_thread::get_id()][number] = found->second.back();
        }
    }
    /// A crash just before the fence, and one just after it.
    void fenced() override
    {
        const std::lock_guard locked(lock_);
        observe();
        crash_here();
        for (const auto& [number, line] : written_back_[std::this_thread::get_id()]) {
            settle(number, line);
        }
        written_back_[std::this_thread::get_id()].clear();
        crash_here();
    }
    /// A crash at this point.
    void crash()
    {
        const std::lock_guard locked(lock_);
        observe();
        crash_here();
    }
    [[nodiscard]] std::size_t images() const { return images_; }

private:
    static constexpr std::size_t line_bytes = 64;
    static constexpr std::size_t all_images_max = 64;
    static constexpr std::size_t random_images = 12;

    struct Line {
        std::byte bytes[line_bytes];
        std::uint64_t version;
    };

    /// Looks for lines that have changed since. Several words of one may have been stored since: each prefix of some
    /// order of them is a state that the line may be caught in.
    void observe()
    {
        constexpr std::size_t step = 4096;
        for (std::size_t page = 0; page < seen_.size(); page += step) {
            if (std::memcmp(seen_.data() + page, base_ + page, step) == 0) {
                continue;
            }
            for (std::size_t at = page; at < page + step; at += line_bytes) {
                if (std::memcmp(seen_.data() + at, base_ + at, line_bytes) != 0) {
                    observe_line(at);
                }
            }
        }
    }
    void observe_line(std::size_t at)
    {
        std::vector<std::size_t> words;
        for (std::size_t word = 0; word < line_bytes; word += 8) {
            if (std::memcmp(seen_.data() + at + word, base_ + at + word, 8) != 0) {
                words.push_back(word);
            }
        }
        std::shuffle(words.begin(), words.end(), random_);
        for (const std::size_t word : words) {
            std::memcpy(seen_.data() + at + word, base_ + at + word, 8);
            Line line;
            std::memcpy(line.bytes, seen_.data() + at, line_bytes);
            line.version = ++versions_;
            held_[at / line_bytes].push_back(line);
        }
    }
    /// `line` is durable: what the line held before is no longer possible, what it has held since is.
    void settle(std::size_t number, const Line& line)
    {
        const auto found = held_.find(number);
        if (found == held_.end() || found->second.front().version > line.version) {
            return;  // a later state is durable already
        }
        std::memcpy(durable_.data() + number * line_bytes, line.bytes, line_bytes);
        std::erase_if(found->second, [&](const Line& held) { return held.version <= line.version; });
        if (found->second.empty()) {
            held_.erase(found);
        }
    }

    /// Every image where there are few; else none of the lines, all, each alone, each missing, and some at random.
    void crash_here()
    {
        std::size_t combinations = 1;
        for (const auto& [number, states] : held_) {
            combinations = std::min(combinations * (states.size() + 1), all_images_max + 1);
        }
        if (combinations <= all_images_max) {
            for (std::size_t chosen = 0; chosen < combinations; ++chosen) {
                std::size_t rest = chosen;
                make_image([&](std::size_t, std::size_t states) {
                    const std::size_t state = rest % (states + 1);
                    rest /= states + 1;
                    return state;
                });
            }
            return;
        }
        make_image([](std::size_t, std::size_t) { return std::size_t{0}; });
        make_image([](std::size_t, std::size_t states) { return states; });
        for (std::size_t one = 0; one < held_.size(); ++one) {
            make_image([&](std::size_t index, std::size_t states) { return index == one ? states : 0; });
            make_image([&](std::size_t index, std::size_t states) { return index == one ? 0 : states; });
        }
        for (std::size_t i = 0; i < random_images; ++i) {
            make_image([&](std::size_t, std::size_t states) { return random_() % (states + 1); });
        }
    }
    /// `choose(index, states)`: 0 leaves the line as it was durable last, otherwise the state of that number.
    template <class Choose>
    void make_image(Choose choose)
    {
        Image& image = image_;  // kept: a new one would be a mebibyte of page faults
        image = durable_;
        std::size_t index = 0;
        for (const auto& [number, states] : held_) {
            const std::size_t state = choose(index++, states.size());
            if (state > 0) {
                std::memcpy(image.data() + number * line_bytes, states[state - 1].bytes, line_bytes);
            }
        }
        ++images_;
        judge_(image);
    }

    const std::byte* base_;
    Image durable_;
    Image seen_;
    Image image_;
    std::map<std::size_t, std::vector<Line>> held_;  ///< by line: its states since it was durable last, oldest first
    std::map<std::thread::id, std::map<std::size_t, Line>> written_back_;
    Judge judge_;
    std::mt19937_64 random_;
    std::uint64_t versions_ = 0;
    std::size_t images_ = 0;
    std::mutex lock_;
};

}  // namespace stillpoint::undo
