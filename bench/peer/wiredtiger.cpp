// WiredTiger as a peer: a B-tree whose log is synced for each update where power may fail; updates of several threads share a sync.
// Build and run it with
//
//     c++ -std=c++20 -O2 -fPIC -shared wiredtiger.cpp -o libwiredtiger_peer.so -lwiredtiger
//     stillpoint bench --peer ./libwiredtiger_peer.so

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <wiredtiger.h>

#include "stillpoint_peer.h"

namespace {

constexpr const char* table = "table:records";
constexpr int wrong_size = -1;  // WiredTiger's own errors are positive ones of errno, or below -31800

struct Store {
    WT_CONNECTION* connection = nullptr;
    bool is_filling = false;
};

/// A thread's session, and its cursors: one overwrites what is there, the other one wants it to be there.
struct Thread {
    WT_SESSION* session = nullptr;
    WT_CURSOR* writer = nullptr;
    WT_CURSOR* finder = nullptr;
};

Store& store_of(void* store) { return *static_cast<Store*>(store); }
Thread& thread_of(void* thread) { return *static_cast<Thread*>(thread); }

int answer_of(int error)
{
    return error == 0 ? STILLPOINT_PEER_OK : error == WT_NOTFOUND ? STILLPOINT_PEER_ABSENT : error > 0 ? -error : error;
}

int open(const stillpoint_peer_settings* settings, void** made)
{
    auto store = std::make_unique<Store>();
    const std::string method = settings->crash == STILLPOINT_PEER_POWER ? "fsync" : "none";
    const std::string words =
        "create,cache_size=512M,log=(enabled=true),checkpoint=(wait=30),transaction_sync=(enabled=true,method=" + method + ")";
    int error = wiredtiger_open(settings->folder, nullptr, words.c_str(), &store->connection);
    WT_SESSION* session = nullptr;
    if (error == 0) {
        error = store->connection->open_session(store->connection, nullptr, nullptr, &session);
    }
    if (error == 0) {
        error = session->create(session, table, "key_format=Q,value_format=u");
        session->close(session, nullptr);
    }
    *made = error == 0 ? store.release() : nullptr;
    return answer_of(error);
}

int close(void* store)
{
    const int error = store_of(store).connection->close(store_of(store).connection, nullptr);
    delete &store_of(store);
    return answer_of(error);
}

int thread_begin(void* store, std::uint32_t, void** made)
{
    auto thread = std::make_unique<Thread>();
    WT_CONNECTION* const connection = store_of(store).connection;
    int error = connection->open_session(connection, nullptr, nullptr, &thread->session);
    if (error == 0) {
        error = thread->session->open_cursor(thread->session, table, nullptr, "overwrite=true", &thread->writer);
    }
    if (error == 0) {
        error = thread->session->open_cursor(thread->session, table, nullptr, "overwrite=false", &thread->finder);
    }
    *made = error == 0 ? thread.release() : nullptr;
    return answer_of(error);
}

int thread_end(void*, void* thread)
{
    const int error = thread_of(thread).session->close(thread_of(thread).session, nullptr);
    delete &thread_of(thread);
    return answer_of(error);
}

int get(void*, void* thread, std::uint64_t key, void* value, std::size_t value_bytes)
{
    WT_CURSOR* const cursor = thread_of(thread).finder;
    cursor->set_key(cursor, key);
    int error = cursor->search(cursor);
    WT_ITEM found{};
    if (error == 0) {
        error = cursor->get_value(cursor, &found);
    }
    if (error == 0 && found.size != value_bytes) {
        return wrong_size;
    }
    if (error == 0) {
        std::memcpy(value, found.data, value_bytes);
        error = cursor->reset(cursor);
    }
    return answer_of(error);
}

/// Again, where another thread has just changed the same key.
template <class Update>
int updated(const Store& store, Thread& thread, Update update)
{
    int error = WT_ROLLBACK;
    while (error == WT_ROLLBACK) {
        if (!store.is_filling) {
            error = update();
            continue;
        }
        error = thread.session->begin_transaction(thread.session, "sync=false");
        if (error == 0) {
            error = update();
            const int ended = error == 0 ? thread.session->commit_transaction(thread.session, nullptr)
                                         : thread.session->rollback_transaction(thread.session, nullptr);
            error = error == 0 ? ended : error;
        }
    }
    return answer_of(error);
}

int put(void* store, void* thread, std::uint64_t key, const void* value, std::size_t value_bytes)
{
    WT_CURSOR* const cursor = thread_of(thread).writer;
    return updated(store_of(store), thread_of(thread), [&] {
        WT_ITEM item{};
        item.data = value;
        item.size = value_bytes;
        cursor->set_key(cursor, key);
        cursor->set_value(cursor, &item);
        return cursor->insert(cursor);
    });
}

int remove(void* store, void* thread, std::uint64_t key)
{
    WT_CURSOR* const cursor = thread_of(thread).finder;
    return updated(store_of(store), thread_of(thread), [&] {
        cursor->set_key(cursor, key);
        return cursor->remove(cursor);
    });
}

int fill(void* store, int is_beginning)
{
    Store& here = store_of(store);
    here.is_filling = is_beginning != 0;
    if (here.is_filling) {
        return STILLPOINT_PEER_OK;
    }
    WT_SESSION* session = nullptr;
    int error = here.connection->open_session(here.connection, nullptr, nullptr, &session);
    if (error == 0) {
        error = session->checkpoint(session, nullptr);
        session->close(session, nullptr);
    }
    return answer_of(error);
}

const char* message(int status)
{
    return status == wrong_size ? "a value has another size than it was given" : wiredtiger_strerror(status > -31800 ? -status : status);
}

}  // namespace

extern "C" const stillpoint_peer_functions stillpoint_peer = {
    .version = STILLPOINT_PEER_VERSION,
    .loses = STILLPOINT_PEER_LOSES_NOTHING,
    .name = "wiredtiger",
    .summary = "WiredTiger: a B-tree with a log that is synced at each update where power may fail.",
    .open = open,
    .close = close,
    .thread_begin = thread_begin,
    .thread_end = thread_end,
    .get = get,
    .put = put,
    .remove = remove,
    .enqueue = nullptr,
    .dequeue = nullptr,
    .sync = nullptr,
    .fill = fill,
    .figures = nullptr,
    .message = message,
};
