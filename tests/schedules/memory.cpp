#include "tests/schedules/memory.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stillpoint::schedules {

namespace {

std::uint64_t read_raw(const void* address, unsigned bytes) noexcept
{
    std::uint64_t value = 0;
    std::memcpy(&value, address, bytes);
    return value;
}

void write_raw(void* address, std::uint64_t value, unsigned bytes) noexcept { std::memcpy(address, &value, bytes); }

std::uint64_t cut(std::uint64_t value, unsigned bytes) noexcept
{
    return bytes >= 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

std::uint64_t combine(const Operation& operation, std::uint64_t old) noexcept
{
    switch (operation.kind) {
    case Kind::add: return cut(old + operation.operand, operation.bytes);
    case Kind::bit_or: return old | operation.operand;
    case Kind::bit_and: return old & operation.operand;
    default: return operation.operand;
    }
}

std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

}  // namespace

void perform_alone(Operation& operation) noexcept
{
    if (operation.address == nullptr || operation.kind >= Kind::fence) {
        return;
    }
    const std::uint64_t old = read_raw(operation.address, operation.bytes);
    operation.succeeded = operation.kind != Kind::compare_exchange || old == operation.expected;
    operation.result = old;
    if (operation.kind != Kind::load && operation.succeeded) {
        write_raw(operation.address, combine(operation, old), operation.bytes);
    }
}

void View::join_words(const View& other) noexcept
{
    for (std::size_t i = 0; i < word.size(); ++i) {
        word[i] = std::max(word[i], other.word[i]);
    }
}

void View::join_clocks(const View& other) noexcept
{
    for (std::size_t i = 0; i < clock.size(); ++i) {
        clock[i] = std::max(clock[i], other.clock[i]);
    }
}

void Memory::begin(Model model, int threads) noexcept
{
    model_ = model;
    threads_ = threads;
    for (int i = 0; i < words_used_; ++i) {
        Word& word = words_[at(i)];
        word.live = false;
        word.stores.clear();
        word.queue_lock = {};
    }
    views_ = {};
    fences_ = {};
    sequential_ = {};
    for (auto& buffer : buffers_) {
        buffer.clear();
    }
    plains_ = {};
    plains_used_ = 0;
    for (int t = 0; t < threads_; ++t) {
        views_[at(t)].now.clock[at(t)] = 1;
    }
}

void Memory::forget_numbers() noexcept
{
    for (int i = 0; i < words_used_; ++i) {
        words_[at(i)] = {};
    }
    numbers_.clear();
    words_used_ = 0;
}

void Memory::end_thread(int thread) noexcept
{
    settle(thread);
    views_[at(thread)].ended = true;
}

int Memory::word_at(const void* address) noexcept
{
    const auto found = numbers_.find(address);
    if (found != numbers_.end()) {
        return found->second;
    }
    if (words_used_ == words_max) {
        std::fprintf(stderr, "schedules: more than %d shared words in a scenario\n", words_max);
        std::abort();
    }
    words_[at(words_used_)].address = address;
    return numbers_[address] = words_used_++;
}

Memory::Word& Memory::live_word(const Operation& operation) noexcept
{
    Word& word = words_[at(word_at(operation.address))];
    if (!word.live) {
        word.live = true;
        word.stores.push_back({read_raw(operation.address, operation.bytes), {}});
    }
    return word;
}

bool Memory::needs_flush(int thread, const Operation& operation) const noexcept
{
    switch (operation.kind) {
    case Kind::load: return false;
    case Kind::store: return operation.order == std::memory_order_seq_cst && has_buffered(thread);
    case Kind::membarrier:
        for (int t = 0; t < threads_; ++t) {
            if (buffers_[at(t)].size() > (t == thread ? 0 : views_[at(t)].floating)) {
                return true;
            }
        }
        return false;
    default: return has_buffered(thread);
    }
}

void Memory::flush(int thread) noexcept
{
    const Buffered first = buffers_[at(thread)].front();
    buffers_[at(thread)].pop_front();
    Word& word = words_[at(first.word)];
    word.stores.clear();
    word.stores.push_back({first.value, first.view});
    write_raw(const_cast<void*>(word.address), first.value, first.bytes);
}

unsigned Memory::choices(int thread, const Operation& operation) noexcept
{
    if (model_ != Model::weak || (operation.kind != Kind::load && operation.kind != Kind::futex_wait)) {
        return 1;
    }
    const Word& word = live_word(operation);
    const int number = word_at(operation.address);
    unsigned oldest = views_[at(thread)].now.word[at(number)];
    if (operation.kind == Kind::futex_wait) {
        oldest = std::max<unsigned>(oldest, word.queue_lock.word[at(number)]);
    }
    if (operation.order == std::memory_order_seq_cst) {
        oldest = std::max<unsigned>(oldest, sequential_.word[at(number)]);
    }
    return static_cast<unsigned>(word.stores.size()) - oldest;
}

void Memory::see(int thread, int number, const Store& store, unsigned index, std::memory_order order) noexcept
{
    ThreadView& view = views_[at(thread)];
    view.now.word[at(number)] = std::max(view.now.word[at(number)], static_cast<std::uint16_t>(index));
    if (acquires(order)) {
        view.now.join(store.view);
    }
    view.on_acquire_fence.join(store.view);
}

void Memory::append(Word& word, int number, int thread, std::uint64_t value, std::memory_order order, const View* read_view) noexcept
{
    ThreadView& view = views_[at(thread)];
    const auto index = model_ == Model::weak ? word.stores.size() : 0;
    view.now.word[at(number)] = static_cast<std::uint16_t>(index);
    Store store{value, releases(order) ? view.now : view.since_release_fence};
    store.view.word[at(number)] = static_cast<std::uint16_t>(index);
    if (read_view != nullptr) {
        store.view.join(*read_view);  // A read-modify-write continues the release sequence.
    }
    if (model_ != Model::weak) {
        word.stores.clear();
    }
    word.stores.push_back(store);
    if (order == std::memory_order_seq_cst) {
        sequential_.word[at(number)] = static_cast<std::uint16_t>(index);
    }
}

void Memory::read_modify_write(int thread, Operation& operation) noexcept
{
    Word& word = live_word(operation);
    const int number = word_at(operation.address);
    const Store seen = word.stores.back();
    const auto index = static_cast<unsigned>(word.stores.size()) - 1;
    operation.result = seen.value;
    const bool writes = operation.kind != Kind::compare_exchange || seen.value == operation.expected;
    operation.succeeded = writes;
    see(thread, number, seen, index, writes ? operation.order : operation.order_of_failure);
    if (writes) {
        const std::uint64_t value = combine(operation, seen.value);
        append(word, number, thread, value, operation.order, &seen.view);
        write_raw(operation.address, value, operation.bytes);
    }
    settle(thread);
}

void Memory::settle(int thread) noexcept
{
    ThreadView& view = views_[at(thread)];
    view.now.join_words(view.on_compiler_fence);
    view.solid = view.now;
    view.floating = 0;
}

void Memory::access(int thread, Operation& operation, unsigned choice) noexcept
{
    ThreadView& view = views_[at(thread)];
    switch (operation.kind) {
    case Kind::load: {
        Word& word = live_word(operation);
        const int number = word_at(operation.address);
        auto& buffer = buffers_[at(thread)];
        const auto own = std::find_if(buffer.rbegin(), buffer.rend(), [number](const Buffered& entry) { return entry.word == number; });
        if (own != buffer.rend()) {
            operation.result = own->value;
            break;
        }
        const auto index = static_cast<unsigned>(word.stores.size()) - 1 - choice;
        const Store seen = word.stores[index];
        operation.result = seen.value;
        see(thread, number, seen, index, operation.order);
        break;
    }
    case Kind::store: {
        Word& word = live_word(operation);
        const int number = word_at(operation.address);
        if (model_ == Model::tso && operation.order != std::memory_order_seq_cst) {
            buffers_[at(thread)].push_back(
                {number, operation.bytes, operation.operand, releases(operation.order) ? view.now : view.since_release_fence});
        } else {
            append(word, number, thread, operation.operand, operation.order, nullptr);
            write_raw(operation.address, operation.operand, operation.bytes);
        }
        ++view.floating;
        break;
    }
    case Kind::fence: fence(thread, operation.order); break;
    case Kind::compiler_fence: settle(thread); break;
    default: read_modify_write(thread, operation);
    }
}

void Memory::fence(int thread, std::memory_order order) noexcept
{
    ThreadView& view = views_[at(thread)];
    settle(thread);
    if (acquires(order)) {
        view.now.join(view.on_acquire_fence);
    }
    if (order == std::memory_order_seq_cst) {
        view.now.join_words(fences_);
        fences_.join_words(view.now);
    }
    if (releases(order)) {
        view.since_release_fence = view.now;
    }
    view.solid = view.now;
}

void Memory::membarrier(int thread) noexcept
{
    fence(thread, std::memory_order_seq_cst);
    for (int t = 0; t < threads_; ++t) {
        if (t != thread && views_[at(t)].floating == 0) {
            fence(t, std::memory_order_seq_cst);
        } else if (t != thread) {
            fences_.join_words(views_[at(t)].solid);
            views_[at(t)].on_compiler_fence.join_words(fences_);
        }
    }
    fence(thread, std::memory_order_seq_cst);
}

std::uint64_t Memory::read_under_queue_lock(int thread, const Operation& operation, unsigned choice) noexcept
{
    Word& word = live_word(operation);
    const int number = word_at(operation.address);
    settle(thread);
    views_[at(thread)].now.join_words(word.queue_lock);
    const auto index = static_cast<unsigned>(word.stores.size()) - 1 - choice;
    const Store seen = word.stores[index];
    see(thread, number, seen, index, std::memory_order_relaxed);
    settle(thread);
    return seen.value;
}

void Memory::pass_queue_lock(int thread, const Operation& operation) noexcept
{
    Word& word = live_word(operation);
    settle(thread);
    ThreadView& view = views_[at(thread)];
    view.now.join_words(word.queue_lock);
    word.queue_lock.join_words(view.now);
    view.solid = view.now;
}

bool Memory::plain(int thread, const Operation& operation) noexcept
{
    const bool writes = operation.kind == Kind::plain_write;
    auto* const end = plains_.data() + plains_used_;
    auto* place = std::find_if(plains_.data(), end, [&](const Plain& plain) { return plain.address == operation.address; });
    if (place == end) {
        if (plains_used_ == plains_max) {
            std::fprintf(stderr, "schedules: more than %d plain words in a scenario\n", plains_max);
            std::abort();
        }
        ++plains_used_;
        place->address = operation.address;
    }
    View& view = views_[at(thread)].now;
    if (place->writer >= 0 && place->writer != thread && view.clock[at(place->writer)] < place->write_clock) {
        return false;
    }
    for (int t = 0; writes && t < threads_; ++t) {
        if (t != thread && view.clock[at(t)] < place->read_clock[at(t)]) {
            return false;
        }
    }
    const auto now = ++view.clock[at(thread)];
    if (writes) {
        place->writer = thread;
        place->write_clock = now;
        place->read_clock = {};
    } else {
        place->read_clock[at(thread)] = now;
    }
    return true;
}

std::uint64_t Memory::latest(const void* address, unsigned bytes) const noexcept { return read_raw(address, bytes); }

std::uint32_t Memory::known_accesses(const View& view) const noexcept
{
    std::uint32_t bits = 0;
    for (int p = 0; p < plains_used_; ++p) {
        const Plain& plain = plains_[at(p)];
        const bool write_known = plain.writer < 0 || view.clock[at(plain.writer)] >= plain.write_clock;
        bits = bits * 2 + (write_known ? 1 : 0);
        for (int t = 0; t < threads_; ++t) {
            if (plain.read_clock[at(t)] != 0) {
                bits = bits * 3 + (view.clock[at(t)] >= plain.read_clock[at(t)] ? 1 : 2);
            }
        }
    }
    return bits;
}

std::uint64_t Memory::hash_view(const View& view, const std::array<std::uint16_t, words_max>& base, std::uint64_t seed) const noexcept
{
    std::uint64_t hash = mix(seed, known_accesses(view));
    if (model_ == Model::weak) {
        for (int i = 0; i < words_used_; ++i) {
            if (words_[at(i)].live) {
                const int above = view.word[at(i)] - base[at(i)];
                hash = mix(hash, static_cast<std::uint64_t>(std::max(above, 0)));
            }
        }
    }
    return hash;
}

std::uint64_t Memory::hash() const noexcept
{
    // Stores that every thread knows to be old are not part of the state.
    std::array<std::uint16_t, words_max> base;
    base.fill(UINT16_MAX);
    for (int t = 0; t < threads_; ++t) {
        for (int i = 0; i < words_used_ && !views_[at(t)].ended; ++i) {
            base[at(i)] = std::min(base[at(i)], views_[at(t)].now.word[at(i)]);
        }
    }
    std::uint64_t hash = 1;
    for (int i = 0; i < words_used_; ++i) {
        const Word& word = words_[at(i)];
        if (!word.live) {
            continue;
        }
        hash = mix(hash, static_cast<std::uint64_t>(i));
        for (std::size_t s = model_ == Model::weak ? base[at(i)] : 0; s < word.stores.size(); ++s) {
            hash = hash_view(word.stores[s].view, base, mix(hash, word.stores[s].value));
        }
        if (model_ == Model::weak) {
            hash = hash_view(word.queue_lock, base, hash);
        }
    }
    hash = hash_view(sequential_, base, hash);
    for (int t = 0; t < threads_; ++t) {
        const ThreadView& view = views_[at(t)];
        hash = mix(hash, view.ended ? 1000 : view.floating);
        hash = hash_view(view.now, base, hash);
        if (!view.ended) {
            hash = hash_view(view.on_acquire_fence, base, hash);
            hash = hash_view(view.since_release_fence, base, hash);
            if (view.floating != 0) {
                hash = hash_view(view.solid, base, hash);
                hash = hash_view(view.on_compiler_fence, base, hash);
            }
        }
        for (const Buffered& entry : buffers_[at(t)]) {
            hash = hash_view(entry.view, base, mix(mix(hash, entry.value), static_cast<std::uint64_t>(entry.word)));
        }
    }
    for (int p = 0; p < plains_used_; ++p) {
        hash = mix(hash, static_cast<std::uint64_t>(plains_[at(p)].writer + 1));
    }
    return hash_view(fences_, base, hash);
}

}  // namespace stillpoint::schedules
