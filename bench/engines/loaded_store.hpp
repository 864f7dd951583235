#pragma once
// A peer that is a shared library with the interface of peer/stillpoint_peer.h, loaded when the process starts: BENCH_PEER is its path.
//
// The library is never unloaded: threads that it has left running keep their code. An error of its functions ends the process with exit
// code 70, a library that is not a peer ends it with 64.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "../peer/stillpoint_peer.h"
#include "../worker/shape.hpp"
#include "engine.hpp"

namespace bench {

class Answer;

/// The library's functions and what they offer.
class LoadedPeer {
public:
    /// Loads the library at the first call.
    static const stillpoint_peer_functions& functions();
    /// Why the peer cannot do a workload; nullptr: it can.
    [[nodiscard]] static const char* why_not(std::string_view workload, std::string_view family);
    /// Adds the peer's name and what it promises to the answer to `--list`.
    static void describe(Answer& answer);
    /// Ends the process: `function` returned `status`.
    [[noreturn]] static void failed(const char* function, int status);
};

/// The one store of the process, with keys and values and a queue.
class LoadedStore {
public:
    LoadedStore(const Shape& shape, const char* name, std::uint64_t keys = 0);
    LoadedStore(const LoadedStore&) = delete;
    LoadedStore& operator=(const LoadedStore&) = delete;
    ~LoadedStore();

    [[nodiscard]] bool get(unsigned, std::uint64_t key, std::span<std::byte> out)
    {
        return was_there("get", peer_.get(store_, thread(), key, out.data(), out.size()));
    }
    void put(unsigned, std::uint64_t key, std::span<const std::byte> value)
    {
        succeeded("put", peer_.put(store_, thread(), key, value.data(), value.size()));
    }
    bool remove(unsigned, std::uint64_t key) { return was_there("remove", peer_.remove(store_, thread(), key)); }
    void push(unsigned, std::uint64_t number) { succeeded("enqueue", peer_.enqueue(store_, thread(), number)); }
    [[nodiscard]] bool pop(unsigned, std::uint64_t& number) { return was_there("dequeue", peer_.dequeue(store_, thread(), &number)); }
    void settle();
    void begin_fill() { fill(1); }
    void end_fill() { fill(0); }

    /// A figure of the open store by its name in docs/guide/statistics.md, where the peer counts it.
    static std::optional<std::uint64_t> statistic(std::string_view name);

private:
    /// The handle that thread_begin gave to the calling thread, which begins with its first operation.
    void* thread()
    {
        if (!has_begun_) [[unlikely]] {
            begin_thread();
        }
        return handle_;
    }
    void begin_thread();
    void fill(int is_beginning);
    static bool was_there(const char* function, int status)
    {
        if (status == STILLPOINT_PEER_OK) [[likely]] {
            return true;
        }
        return status == STILLPOINT_PEER_ABSENT ? false : (LoadedPeer::failed(function, status), false);
    }
    static void succeeded(const char* function, int status)
    {
        if (status != STILLPOINT_PEER_OK) [[unlikely]] {
            LoadedPeer::failed(function, status);
        }
    }

    friend struct EndOfThread;

    static inline constinit thread_local bool has_begun_ = false;
    static inline constinit thread_local void* handle_ = nullptr;

    const stillpoint_peer_functions& peer_;
    void* store_ = nullptr;
};
static_assert(KeyValueStore<LoadedStore> && FifoQueue<LoadedStore> && FillsInBatches<LoadedStore>);

/// Progress in the peer's own store; a peer without keys and values has none, and is not killed.
class LoadedProgress {
public:
    static constexpr unsigned loaded_slot = 63;

    LoadedProgress(LoadedStore& store, const Shape& shape) : store_(store), value_bytes_(shape.value_bytes) {}
    void note(unsigned thread, std::uint64_t operations);
    [[nodiscard]] std::uint64_t noted(unsigned thread);

private:
    LoadedStore& store_;
    std::size_t value_bytes_;
};

}  // namespace bench
