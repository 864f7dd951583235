/* State of in-memory databases in durable memory
 *
 * A database on memory that is opened with a name, in a process that has a Stillpoint pool open,
 * keeps its state in the pool: "kyotocabinet/NAME" is its handle.  Databases with one of Kyoto
 * Cabinet's names for nameless ones ("*", "-", ...), and all where no pool is open, keep it in
 * ordinary memory, as ever.  What is found again is data only.  Locks, cursors, loggers and
 * whatever has virtual functions belong to the database object, which each process makes again. */

#ifndef KCPOOL_H
#define KCPOOL_H

#include <kccommon.h>
#include <kcutil.h>
#include <kcthread.h>
#include <kcdb.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <scoped_allocator>
#include <tuple>
#include <type_traits>

#include <stillpoint/stillpoint.h>

namespace kyotocabinet {                 // common namespace

/**
 * Allocate memory that survives if it is for a database in the pool.
 * @throw std::bad_alloc, as xmalloc does: also when the pool is full.
 */
inline void* pool_malloc(bool pooled, size_t size)
{
    void* ptr = pooled ? ::sp_malloc(size) : std::malloc(size);
    if (!ptr)
        throw std::bad_alloc();
    return ptr;
}

/** Re-allocate memory of pool_malloc. */
inline void* pool_realloc(bool pooled, void* ptr, size_t size)
{
    ptr = pooled ? ::sp_realloc(ptr, size) : std::realloc(ptr, size);
    if (!ptr)
        throw std::bad_alloc();
    return ptr;
}

/** Free memory of pool_malloc. */
inline void pool_free(bool pooled, void* ptr)
{
    if (pooled) {
        ::sp_free(ptr);
    } else {
        std::free(ptr);
    }
}

/**
 * Allocator of containers that may lie in the pool.
 * @note It carries a flag.  A pointer to a resource with virtual functions, as std::pmr has it,
 * would not survive.
 */
template <class TYPE>
class PoolAllocator {
public:
    typedef TYPE value_type;
    typedef std::true_type propagate_on_container_move_assignment;
    explicit PoolAllocator(bool pooled = false) : pooled_(pooled) {}
    template <class OTHER>
    PoolAllocator(const PoolAllocator<OTHER>& other) : pooled_(other.pooled())
    {
    }
    TYPE* allocate(size_t num) { return (TYPE*)pool_malloc(pooled_, num * sizeof(TYPE)); }
    void deallocate(TYPE* ptr, size_t num) { pool_free(pooled_, ptr); }
    bool pooled() const { return pooled_; }

private:
    bool pooled_;                          ///< whether in the pool
};

template <class ONE, class OTHER>
inline bool operator==(const PoolAllocator<ONE>& one, const PoolAllocator<OTHER>& other)
{
    return one.pooled() == other.pooled();
}

template <class ONE, class OTHER>
inline bool operator!=(const PoolAllocator<ONE>& one, const PoolAllocator<OTHER>& other)
{
    return one.pooled() != other.pooled();
}

/** A string that may lie in the pool. */
typedef std::basic_string<char, std::char_traits<char>, PoolAllocator<char>> PoolString;

/**
 * Hash function of durable tables.
 * @note The one of the standard library may change with its version.
 */
struct PoolStringHash {
    size_t operator()(const PoolString& str) const { return hashmurmur(str.data(), str.size()); }
};

/** Allocator of a map, which hands its flag on to keys and values. */
typedef std::scoped_allocator_adaptor<PoolAllocator<std::pair<const PoolString, PoolString>>> PoolMapAllocator;
/** An alias of hash map of strings that may lie in the pool. */
typedef std::unordered_map<PoolString, PoolString, PoolStringHash, std::equal_to<PoolString>, PoolMapAllocator> PoolHashMap;
/** An alias of tree map of strings that may lie in the pool. */
typedef std::map<PoolString, PoolString, std::less<PoolString>, PoolMapAllocator> PoolTreeMap;

/**
 * An undone change of a transaction, for the database classes that keep their log in the pool.
 */
struct PoolTranLog {
    bool full;                             ///< flag whether full
    PoolString key;                        ///< old key
    PoolString value;                      ///< old value
  /** constructor for a full record */
    explicit PoolTranLog(bool pooled, const char* kbuf, size_t ksiz, const char* vbuf, size_t vsiz)
        : full(true), key(kbuf, ksiz, PoolAllocator<char>(pooled)), value(vbuf, vsiz, PoolAllocator<char>(pooled))
    {
    }
  /** constructor for an empty record */
    explicit PoolTranLog(bool pooled, const char* kbuf, size_t ksiz)
        : full(false), key(kbuf, ksiz, PoolAllocator<char>(pooled)), value(PoolAllocator<char>(pooled))
    {
    }
};

/** An alias of list of transaction logs. */
typedef std::list<PoolTranLog, PoolAllocator<PoolTranLog>> PoolTranLogList;

/**
 * What the state of each database begins with: zero where it was never completed.
 */
struct PoolHeader {
    static const uint32_t LAYOUT = 0x4b430001;  ///< raised when a state's structure changes
    uint32_t layout;                       ///< LAYOUT
    uint8_t type;                          ///< database type
    uint8_t opts;                          ///< tuning options
    int64_t bnum;                          ///< number of buckets
};

/**
 * Names of the durable databases that this process has open: two objects with one state would
 * not see each other's locks.
 */
class PoolNames {
public:
    static bool take(const std::string& name)
    {
        Names& names = instance();
        ScopedMutex lock(&names.mutex);
        return names.open.insert(name).second;
    }
    static void give_back(const std::string& name)
    {
        Names& names = instance();
        ScopedMutex lock(&names.mutex);
        names.open.erase(name);
    }

private:
    struct Names {
        Mutex mutex;
        std::set<std::string> open;
    };
    static Names& instance()
    {
        static Names* names = new Names;
        return *names;
    }
};

/**
 * Keep a message for BasicDB::Error, which holds a pointer only.
 * @return the message, valid until the calling thread's next one.
 */
inline const char* pool_message(const std::string& message)
{
    static thread_local std::string kept;
    kept = message;
    return kept.c_str();
}

/** Whether a database with this path belongs in the pool. */
inline bool pool_holds(const std::string& path)
{
    return ::sp_start_kind() != SP_START_VOLATILE && !path.empty() && path != "*" && path != "%" && path != "-" && path != "+" &&
           path != ":";
}

/** The handle of a database in the pool. */
inline std::string pool_handle(const std::string& path) { return "kyotocabinet/" + path; }

/**
 * Find the state of a named database, or the zeroes for a new one.
 * @param wanted what the database object would write into the header of a new state.
 * @param mode the connection mode.
 * @param code set if NULL is returned.
 * @param message set if NULL is returned.
 * @note To be called in the FASE in which the state is completed.
 */
template <class STATE>
STATE* pool_find(const std::string& path, const PoolHeader& wanted, uint32_t mode, BasicDB::Error::Code* code, const char** message)
{
    const std::string handle = pool_handle(path);
    size_t size = 0;
    STATE* state = (STATE*)::sp_root_find(handle.c_str(), &size);
    *code = BasicDB::Error::BROKEN;
    if (!state) {
        if (!(mode & BasicDB::OCREATE)) {
            *code = BasicDB::Error::NOREPOS;
            *message = "no such database in the pool: open it with OCREATE";
            return NULL;
        }
        state = (STATE*)::sp_root(handle.c_str(), sizeof(STATE));
        *code = BasicDB::Error::SYSTEM;
        if (!state)
            *message = pool_message(::sp_last_error());
        return state;
    }
    PoolHeader& found = *(PoolHeader*)state;
    if (size == sizeof(STATE) && found.layout == 0)
        return state;  // an earlier open failed half-way
    if (size != sizeof(STATE) || found.layout != wanted.layout || found.type != wanted.type) {
        *message = pool_message(strprintf("the database in the pool has type 0x%02x and layout %x: open it with"
                                          " the class and the build that made it",
                                          found.type, found.layout));
        return NULL;
    }
    if ((mode & BasicDB::OTRUNCATE) || (found.opts == wanted.opts && found.bnum == wanted.bnum)) {
        return state;
    }
    *code = BasicDB::Error::INVALID;
    *message = pool_message(strprintf("the database in the pool has bnum=%lld opts=%u, tuned are bnum=%lld"
                                      " opts=%u: tune the same, or open it with OTRUNCATE",
                                      (long long)found.bnum, found.opts, (long long)wanted.bnum, wanted.opts));
    return NULL;
}

/**
 * Wait until everything up to now is durable.
 * @param hard true to take a checkpoint at once, false to wait for the next one.
 * @note Not to be called with a lock held.
 */
inline bool pool_synchronize(bool hard) { return (hard ? ::sp_checkpoint() : ::sp_wait_durable(::sp_epoch(), -1)) == SP_OK; }

}                                        // namespace kyotocabinet

#endif
