#include "loaded_store.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <limits>
#include <sysexits.h>

#include "../harness/answer.hpp"
#include "../harness/ending.hpp"
#include "../structures/progress.hpp"

namespace bench {

namespace {

void* open_store = nullptr;  // the one of the process
std::atomic<std::uint32_t> threads_begun{0};

/// A library that is not a peer.
[[noreturn]] void refuse(const std::string& why) { give_up(why, EX_USAGE); }

bool is_name(const char* name)
{
    const std::string_view text = name;
    return !text.empty() && text.size() <= 32 && std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

void require(const std::string& path, bool is_so, const char* rule)
{
    if (!is_so) {
        refuse(path + ": its stillpoint_peer breaks a rule of stillpoint_peer.h: " + rule);
    }
}

const stillpoint_peer_functions& load()
{
    const char* path = std::getenv("BENCH_PEER");
    if (path == nullptr || *path == '\0') {
        refuse("BENCH_PEER names no library; `stillpoint bench --peer LIBRARY` sets it");
    }
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        refuse(std::string("the library cannot be loaded: ") + dlerror());
    }
    const auto* found = static_cast<const stillpoint_peer_functions*>(dlsym(library, "stillpoint_peer"));
    const std::string name = path;
    if (found == nullptr) {
        refuse(name + " has no symbol stillpoint_peer: define it as stillpoint_peer.h shows, in C++ as extern \"C\"");
    }
    if (found->version != STILLPOINT_PEER_VERSION) {
        refuse(name + " was built for version " + std::to_string(found->version) + " of the interface, and this bench has version " +
               std::to_string(STILLPOINT_PEER_VERSION) + ": build it again with the bench's own stillpoint_peer.h");
    }
    require(name, found->name != nullptr && is_name(found->name), "name is 1 to 32 letters, digits, - and _, and begins with a letter");
    require(name, found->loses <= STILLPOINT_PEER_LOSES_NOTHING, "loses is one of the three of enum stillpoint_peer_loss");
    require(name, found->open != nullptr && found->close != nullptr, "open and close are not NULL");
    require(name, (found->get == nullptr) == (found->put == nullptr), "get and put are offered together");
    require(name, found->remove == nullptr || found->put != nullptr, "remove is offered with get and put");
    require(name, (found->enqueue == nullptr) == (found->dequeue == nullptr), "enqueue and dequeue are offered together");
    require(name, found->thread_end == nullptr || found->thread_begin != nullptr, "thread_end is offered with thread_begin");
    require(name, found->put != nullptr || found->enqueue != nullptr, "get and put, or enqueue and dequeue, are offered");
    return *found;
}

}  // namespace

/// Tells the peer that the thread ends.
struct EndOfThread {
    EndOfThread() = default;
    EndOfThread(const EndOfThread&) = delete;
    EndOfThread& operator=(const EndOfThread&) = delete;
    ~EndOfThread() { now(); }
    void now() const
    {
        const stillpoint_peer_functions& peer = LoadedPeer::functions();
        if (LoadedStore::has_begun_ && peer.thread_end != nullptr) {
            LoadedStore::succeeded("thread_end", peer.thread_end(open_store, LoadedStore::handle_));
        }
        LoadedStore::has_begun_ = false;
    }
};

const stillpoint_peer_functions& LoadedPeer::functions()
{
    static const stillpoint_peer_functions& peer = load();
    return peer;
}

const char* LoadedPeer::why_not(std::string_view workload, std::string_view family)
{
    const stillpoint_peer_functions& peer = functions();
    if (family == "queue") {
        return peer.enqueue != nullptr ? nullptr : "not offered: the peer has no enqueue and dequeue";
    }
    if (peer.put == nullptr) {
        return "not offered: the peer has no get and put";
    }
    const bool removes = workload == "hash_map" || workload == "ycsb_load" || workload == "ycsb_d";
    return removes && peer.remove == nullptr ? "not offered: the peer has no remove" : nullptr;
}

void LoadedPeer::describe(Answer& answer)
{
    static constexpr const char* losses[] = {"all", "recent", "nothing"};
    const stillpoint_peer_functions& peer = functions();
    Answer facts;
    facts.text("name", peer.name).text("summary", peer.summary != nullptr ? peer.summary : "").text("loses", losses[peer.loses]);
    facts.boolean("keeps_progress", peer.put != nullptr);
    answer.raw("peer", facts.json());
}

void LoadedPeer::failed(const char* function, int status)
{
    const stillpoint_peer_functions& peer = functions();
    std::string why = std::string("the peer ") + peer.name + ": " + function + " returned " + std::to_string(status);
    if (status >= 0) {
        why += ", which is not a status of this function";
    } else if (const char* message = peer.message != nullptr ? peer.message(status) : nullptr) {
        why += std::string(": ") + message;
    }
    give_up(why);
}

LoadedStore::LoadedStore(const Shape& shape, const char*, std::uint64_t keys) : peer_(LoadedPeer::functions())
{
    const stillpoint_peer_settings settings{
        .folder = shape.folder.c_str(),
        .crash = shape.durability == "power" ? std::uint32_t{STILLPOINT_PEER_POWER} : std::uint32_t{STILLPOINT_PEER_PROCESS},
        .threads = shape.threads + 1,
        .value_bytes = shape.value_bytes,
        .keys = keys,
    };
    succeeded("open", peer_.open(&settings, &store_));
    open_store = store_;
}

LoadedStore::~LoadedStore()
{
    EndOfThread().now();
    succeeded("close", peer_.close(store_));
}

void LoadedStore::begin_thread()
{
    static thread_local EndOfThread end;
    (void)end;
    if (peer_.thread_begin != nullptr) {
        succeeded("thread_begin", peer_.thread_begin(store_, threads_begun.fetch_add(1), &handle_));
    }
    has_begun_ = true;
}

void LoadedStore::settle()
{
    if (peer_.sync != nullptr) {
        succeeded("sync", peer_.sync(store_));
    }
}

void LoadedStore::fill(int is_beginning)
{
    if (peer_.fill != nullptr) {
        succeeded("fill", peer_.fill(store_, is_beginning));
    }
}

std::optional<std::uint64_t> LoadedStore::statistic(std::string_view name)
{
    static constexpr struct {
        std::string_view name;
        std::uint64_t stillpoint_peer_figures::* value;
    } known[] = {{"bytes_written", &stillpoint_peer_figures::bytes_written},
                 {"medium_syncs", &stillpoint_peer_figures::syncs},
                 {"checkpoints", &stillpoint_peer_figures::checkpoints},
                 {"recovery_ns", &stillpoint_peer_figures::recovery_ns}};
    const stillpoint_peer_functions& peer = LoadedPeer::functions();
    const auto* const found = std::find_if(std::begin(known), std::end(known), [name](const auto& one) { return one.name == name; });
    if (found == std::end(known) || peer.figures == nullptr || open_store == nullptr) {
        return std::nullopt;
    }
    constexpr std::uint64_t unknown = STILLPOINT_PEER_UNKNOWN;
    stillpoint_peer_figures figures{unknown, unknown, unknown, unknown};
    if (const int status = peer.figures(open_store, &figures); status != STILLPOINT_PEER_OK) {
        LoadedPeer::failed("figures", status);
    }
    return figures.*found->value == unknown ? std::nullopt : std::optional(figures.*found->value);
}

void LoadedProgress::note(unsigned thread, std::uint64_t operations)
{
    if (LoadedPeer::functions().put != nullptr) {
        StoreProgress<LoadedStore>(store_, value_bytes_).note(thread, operations);
    }
}

std::uint64_t LoadedProgress::noted(unsigned thread)
{
    return LoadedPeer::functions().get != nullptr ? StoreProgress<LoadedStore>(store_, value_bytes_).noted(thread) : 0;
}

}  // namespace bench
