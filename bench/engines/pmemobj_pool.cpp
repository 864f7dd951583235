#include "pmemobj_pool.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

#include "../harness/ending.hpp"

namespace bench {

namespace {

constexpr char layout_name[] = "stillpoint-bench";
constexpr std::uint64_t type_plain = 1;  // the type number of every object
constexpr std::size_t root_alignment_bytes = 64;

struct Directory {
    static constexpr unsigned entries_max = 64;
    struct Entry {
        char name[56];
        std::uint64_t size_bytes;
        void* object;
    };

    std::uint64_t base;  ///< where the pool was mapped when it was made; 0: it is new
    std::uint64_t count;
    Entry entries[entries_max];
};

/// In the eight bytes before an aligned block, where another block has its type number.
constexpr std::uint64_t shifted_tag = 0x5348'0000'0000'0000;
constexpr std::uint64_t shifted_mask = 0xffff'0000'0000'0000;

/// A bucket's chain node, 16 bytes of libpmemobj's header included, is one cache line. Its own smallest class is 128 bytes.
constexpr std::size_t small_unit_bytes = 64;
constexpr std::size_t small_bytes_max = small_unit_bytes - 16;

struct Reservation {
    pobj_action action;
    void* block;
    std::size_t size_bytes;
};

/// In the environment of a process that only fills the pool.
constexpr char fills_variable[] = "BENCH_PMEMOBJ_FILLS";

std::string pool_path;
std::uint64_t pool_mib;
std::uint64_t small_class;  // as a flag of an allocation
std::mutex roots_lock;
thread_local std::vector<Reservation> reservations;

std::uint64_t word_before(const void* block)
{
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(block) - sizeof word, sizeof word);
    return word;
}

std::string in_hex(std::uint64_t number)
{
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return text;
}

/// This program again, in this process. How ranges become durable is decided when libpmemobj is loaded.
[[noreturn]] void start_again()
{
    std::string words;
    if (std::FILE* file = std::fopen("/proc/self/cmdline", "re")) {
        for (int byte = std::fgetc(file); byte != EOF; byte = std::fgetc(file)) {
            words += static_cast<char>(byte);
        }
        std::fclose(file);
    }
    std::vector<char*> arguments;
    for (std::size_t at = 0; at < words.size(); at += std::strlen(&words[at]) + 1) {
        arguments.push_back(&words[at]);
    }
    arguments.push_back(nullptr);
    execv("/proc/self/exe", arguments.data());
    give_up(std::string("cannot start again: ") + std::strerror(errno));
}

/// Ranges are made durable by msync, one by one: a fill of a million keys would take hours.
bool is_filled_apart(const Shape& shape) { return shape.durability == "power" && std::getenv("PMEM_IS_PMEM_FORCE") == nullptr; }

Directory& directory_of(PMEMobjpool* pool) { return *static_cast<Directory*>(pmemobj_direct(pmemobj_root(pool, sizeof(Directory)))); }

void check_base(PMEMobjpool* pool, const std::string& path)
{
    Directory& directory = directory_of(pool);
    const auto base = reinterpret_cast<std::uint64_t>(pool);
    if (directory.base == 0) {
        directory.base = base;
        pmemobj_persist(pool, &directory.base, sizeof directory.base);
    } else if (directory.base != base) {
        give_up(path + ": mapped at " + in_hex(base) + ", but its pointers were made for " + in_hex(directory.base) +
                ": set PMEM_MMAP_HINT=" + in_hex(directory.base) + " in the environment");
    }
}

}  // namespace

void PmemobjPool::failed(const char* what)
{
    const int error = errno;
    const std::string why = std::string("libpmemobj: ") + what + ": " + pmemobj_errormsg();
    if (error == ENOMEM || error == ENOSPC) {
        out_of_memory("the pool of " + std::to_string(pool_mib) + " MiB is full: ask for a larger pool_mib (" + why + ")");
    }
    give_up(why);
}

void PmemobjPool::nested() { give_up("an operation began inside another one: bench/engines/engine.hpp has the rules"); }

void PmemobjPool::open(const Shape& shape)
{
    pool_path = shape.folder + "/pmemobj.pool";
    pool_mib = shape.pool_mib;
    const bool fills = std::getenv(fills_variable) != nullptr;
    bool exists = access(pool_path.c_str(), F_OK) == 0;
    if (!exists && !fills && is_filled_apart(shape)) {
        setenv(fills_variable, "1", 1);
        setenv("PMEM_IS_PMEM_FORCE", "1", 1);
        setenv("PMEM_NO_FLUSH", "1", 1);
        start_again();
    }
    if (fills) {
        pool_path += ".filling";
        unlink(pool_path.c_str());  // of a process that was killed
        exists = false;
    }
    pool_ = exists ? pmemobj_open(pool_path.c_str(), layout_name) : pmemobj_create(pool_path.c_str(), layout_name, pool_mib << 20, 0600);
    if (pool_ == nullptr) {
        give_up(pool_path + ": " + pmemobj_errormsg());
    }
    check_base(pool_, pool_path);
    // Classes belong to the process, not to the pool: registered after each opening.
    pobj_alloc_class_desc small{small_unit_bytes, 0, 16'384, POBJ_HEADER_COMPACT, 0};
    if (pmemobj_ctl_set(pool_, "heap.alloc_class.new.desc", &small) != 0) {
        failed("cannot make an allocation class");
    }
    small_class = POBJ_CLASS_ID(small.class_id);
}

void PmemobjPool::close()
{
    pmemobj_close(pool_);
    pool_ = nullptr;
}

void PmemobjPool::settle()
{
    if (std::getenv(fills_variable) == nullptr) {
        return;
    }
    close();
    const std::string whole = pool_path.substr(0, pool_path.rfind('.'));
    const int file = ::open(pool_path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0 || fsync(file) != 0 || rename(pool_path.c_str(), whole.c_str()) != 0) {
        give_up(pool_path + ": " + std::strerror(errno));
    }
    unsetenv(fills_variable);
    unsetenv("PMEM_IS_PMEM_FORCE");
    unsetenv("PMEM_NO_FLUSH");
    start_again();
}

void PmemobjPool::begin()
{
    if (!thread_.in_operation) {
        give_up("durable memory was written outside an operation: bench/engines/engine.hpp has the rules");
    }
    if (pmemobj_tx_begin(pool_, nullptr, TX_PARAM_NONE) != 0) {
        failed("cannot begin a transaction");
    }
    thread_.in_transaction = true;
    if (thread_.has_reservations) {
        publish_reservations();
    }
}

void PmemobjPool::commit_transaction()
{
    pmemobj_tx_commit();
    if (pmemobj_tx_end() != 0) {
        failed("a transaction did not commit");
    }
    thread_.in_transaction = false;
}

void PmemobjPool::publish_reservations()
{
    for (Reservation& one : reservations) {
        // As a block that the transaction allocates: not logged, written back by the commit.
        if (pmemobj_tx_publish(&one.action, 1) != 0 ||
            pmemobj_tx_xadd_range_direct(one.block, one.size_bytes, POBJ_XADD_NO_SNAPSHOT) != 0) {
            failed("cannot publish a block");
        }
    }
    reservations.clear();
    thread_.has_reservations = false;
}

PMEMoid PmemobjPool::make_object(std::size_t size_bytes)
{
    const std::uint64_t flags = size_bytes <= small_bytes_max ? small_class : 0;
    if (thread_.in_operation) {
        if (!thread_.in_transaction) {
            begin();
        }
        const PMEMoid made = pmemobj_tx_xalloc(size_bytes, type_plain, flags);
        if (OID_IS_NULL(made)) {
            failed("no block");
        }
        return made;
    }
    Reservation one{};
    const PMEMoid made = pmemobj_xreserve(pool_, &one.action, size_bytes, type_plain, flags);
    if (OID_IS_NULL(made)) {
        failed("no block");
    }
    one.block = pmemobj_direct(made);
    one.size_bytes = size_bytes;
    reservations.push_back(one);
    thread_.has_reservations = true;
    return made;
}

void* PmemobjPool::allocate(std::size_t size_bytes) { return pmemobj_direct(make_object(size_bytes == 0 ? 1 : size_bytes)); }

void* PmemobjPool::allocate_aligned(std::size_t alignment_bytes, std::size_t size_bytes)
{
    if (alignment_bytes <= 16) {
        return allocate(size_bytes);
    }
    char* const block = static_cast<char*>(pmemobj_direct(make_object(size_bytes + alignment_bytes)));
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const std::size_t shift = alignment_bytes - address % alignment_bytes;  // at least 16, as blocks are aligned to it
    const std::uint64_t tag = shifted_tag | shift;
    std::memcpy(block + shift - sizeof tag, &tag, sizeof tag);
    return block + shift;
}

void PmemobjPool::deallocate(void* block)
{
    if (block == nullptr) {
        return;
    }
    const std::uint64_t word = word_before(block);
    if ((word & shifted_mask) == shifted_tag) {
        block = static_cast<char*>(block) - (word & ~shifted_mask);
    } else if (word != type_plain) {
        give_up("deallocate: no block of this pool, or this libpmemobj keeps type numbers elsewhere than 1.12 does");
    }
    const bool alone = !thread_.in_operation;
    if (alone) {
        begin_operation();
    }
    if (!thread_.in_transaction) {
        begin();
    }
    if (pmemobj_tx_free(pmemobj_oid(block)) != 0) {
        failed("cannot free a block");
    }
    if (alone) {
        end_operation();
    }
}

void* PmemobjPool::root(const char* name, std::size_t size_bytes)
{
    const std::lock_guard locked(roots_lock);
    Directory& directory = directory_of(pool_);
    for (std::uint64_t i = 0; i < directory.count; ++i) {
        Directory::Entry& entry = directory.entries[i];
        if (std::strcmp(entry.name, name) == 0) {
            if (entry.size_bytes != size_bytes) {
                give_up("the durable object " + std::string(name) + " has " + std::to_string(entry.size_bytes) + " bytes, not " +
                        std::to_string(size_bytes) + ": the pool was made by another workload or another version");
            }
            return entry.object;
        }
    }
    if (directory.count == Directory::entries_max || std::strlen(name) >= sizeof(Directory::Entry::name)) {
        give_up("no room for the durable object " + std::string(name) + " in the directory");
    }
    begin_operation();
    announce(&directory.count, sizeof directory.count);
    Directory::Entry& entry = directory.entries[directory.count];
    announce(&entry, sizeof entry);
    entry.object = allocate_aligned(root_alignment_bytes, size_bytes);
    std::memset(entry.object, 0, size_bytes);
    std::strcpy(entry.name, name);
    entry.size_bytes = size_bytes;
    ++directory.count;
    end_operation();
    return entry.object;
}

}  // namespace bench
