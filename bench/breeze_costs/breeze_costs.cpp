// One part of what the engine breeze costs, as one line of JSON; the same source for breeze and for libpmemobj.
//
//   breeze_costs alloc POOL SIZE COUNT      ns for a transaction that allocates an object of SIZE bytes and links it
//   breeze_costs ycsb POOL A|F RECORDS OPS  operations a second on a hash map with values of 1000 bytes: A half updates, F half
//                                           read-modify-write, keys by a power law
//   breeze_costs fill POOL MIB              fills the pool with objects of 1 KiB in a list (breeze alone)
//   breeze_costs open POOL THREADS PLACE    ms of opening by so many threads; PLACE 0: where the pool lay last, else at one of 16 other
//                                           addresses by its number (breeze alone)
//   breeze_costs cpus THREADS               how many CPUs so many threads get that compute only: fewer where others use the machine

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <ctime>
#include <string_view>
#include <thread>
#include <vector>

#include "../harness/random.hpp"
#include "../harness/zipf.hpp"

namespace {

struct Record {
    Record* next;
    std::uint64_t key;
    char value[1000];
};
struct Sized {
    Sized* next;
    char bytes[8];  ///< and more
};
struct Table {
    std::uint64_t buckets;
    Record* heads[1];  ///< and more
};

[[noreturn]] void die(const char* what, const char* why)
{
    std::fprintf(stderr, "breeze_costs: %s: %s\n", what, why);
    std::exit(1);
}

}  // namespace

#ifdef BREEZE_COSTS_PMEMOBJ
#include <libpmemobj.h>

namespace {

constexpr const char* system_name = "libpmemobj";

PMEMobjpool* pool;

struct Root {
    void* object;
};
Root* root_of() { return static_cast<Root*>(pmemobj_direct(pmemobj_root(pool, sizeof(Root)))); }

void create(const char* path, std::uint64_t size_bytes)
{
    pool = pmemobj_create(path, "breeze-costs", size_bytes, 0600);
    if (pool == nullptr) {
        die(path, pmemobj_errormsg());
    }
}
void begin() { pmemobj_tx_begin(pool, nullptr, TX_PARAM_NONE); }
void commit()
{
    pmemobj_tx_commit();
    pmemobj_tx_end();
}
void announce(void* place, std::size_t size_bytes) { pmemobj_tx_add_range_direct(place, size_bytes); }
template <class T>
T* make(std::size_t size_bytes)
{
    return static_cast<T*>(pmemobj_direct(pmemobj_tx_zalloc(size_bytes, 1)));
}
void* root() { return root_of()->object; }
void set_root(void* object)
{
    announce(&root_of()->object, sizeof(void*));
    root_of()->object = object;
}
void settle() {}
void close() { pmemobj_close(pool); }

}  // namespace
#else
#include <sys/mman.h>

#include <stillpoint/breeze.h>
#include <stillpoint/stillpoint.h>

namespace {

constexpr const char* system_name = "breeze";

NVM_TYPE(Record, NVM_HAS_PTR(Record, next));
NVM_TYPE(Sized, NVM_HAS_PTR(Sized, next), NVM_HAS_TAIL(Sized, bytes));
NVM_TYPE(Table, NVM_HAS_PTR_TAIL(Table, heads));

template <class T>
std::uint32_t type_id();
template <>
std::uint32_t type_id<Record>()
{
    return NVM_TYPE_ID(Record);
}
template <>
std::uint32_t type_id<Sized>()
{
    return NVM_TYPE_ID(Sized);
}
template <>
std::uint32_t type_id<Table>()
{
    return NVM_TYPE_ID(Table);
}

NVM_POOL* pool;

nvm_options options()
{
    nvm_options made{};
    made.medium = "memory";
    made.durability = "power";
    return made;
}
void create(const char* path, std::uint64_t size_bytes)
{
    const nvm_options chosen = options();
    pool = nvm_pool_create_with(path, size_bytes, &chosen);
    if (pool == nullptr) {
        die(path, sp_last_error());
    }
}
void begin() { nvm_tx_begin(pool); }
void commit()
{
    if (nvm_tx_commit(pool) != SP_OK) {
        die("commit", sp_last_error());
    }
}
void announce(void* place, std::size_t size_bytes)
{
    if (nvm_log(place, size_bytes) != SP_OK) {
        die("log", sp_last_error());
    }
}
template <class T>
T* make(std::size_t size_bytes)
{
    void* const object = nvm_alloc(pool, type_id<T>(), size_bytes);
    if (object == nullptr) {
        die("alloc", sp_last_error());
    }
    return static_cast<T*>(object);
}
void* root() { return nvm_pool_root(pool); }
void set_root(void* object) { nvm_pool_set_root(pool, object); }
void settle() { nvm_drain(pool); }
void close() { nvm_pool_close(pool); }

}  // namespace
#endif

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin_time) { return std::chrono::duration<double>(Clock::now() - begin_time).count(); }

void run_alloc(const char* path, std::uint64_t size_bytes, std::uint64_t count)
{
    create(path, count * (size_bytes + 256) * 2 + (std::uint64_t{64} << 20));
    const auto begin_time = Clock::now();
    for (std::uint64_t i = 0; i < count; ++i) {
        begin();
        auto* const object = make<Sized>(size_bytes);
        object->next = static_cast<Sized*>(root());
        set_root(object);
        commit();
    }
    const double seconds = seconds_since(begin_time);
    settle();
    std::printf("{\"system\": \"%s\", \"part\": \"alloc\", \"bytes\": %llu, \"ns\": %.1f, \"ns_settled\": %.1f}\n", system_name,
                static_cast<unsigned long long>(size_bytes), seconds / static_cast<double>(count) * 1e9,
                seconds_since(begin_time) / static_cast<double>(count) * 1e9);
    close();
}

Record* find(Table& table, std::uint64_t key)
{
    for (Record* record = table.heads[key % table.buckets]; record != nullptr; record = record->next) {
        if (record->key == key) {
            return record;
        }
    }
    return nullptr;
}

void run_ycsb(const char* path, char workload, std::uint64_t records, std::uint64_t operations)
{
    create(path, records * 2500 + (std::uint64_t{128} << 20));
    begin();
    auto* const table = make<Table>(sizeof(Table) + records * sizeof(Record*));
    table->buckets = records;
    set_root(table);
    commit();
    for (std::uint64_t key = 0; key < records; ++key) {
        begin();
        auto* const record = make<Record>(sizeof(Record));
        record->key = key;
        record->next = table->heads[key % records];
        announce(&table->heads[key % records], sizeof(Record*));
        table->heads[key % records] = record;
        commit();
    }
    settle();
    bench::Random random(7);
    const bench::Zipf keys(records, 0.99);
    std::vector<char> value(sizeof Record::value);
    std::uint64_t sum = 0;
    const auto begin_time = Clock::now();
    for (std::uint64_t i = 0; i < operations; ++i) {
        Record& record = *find(*table, keys.next(random));
        const bool writes = random.next() % 2 == 0;
        if (!writes || workload == 'F') {
            std::memcpy(value.data(), record.value, value.size());
            sum += static_cast<unsigned char>(value[i % value.size()]);
        }
        if (writes) {
            value[i % value.size()] = static_cast<char>(i);
            begin();
            announce(record.value, sizeof record.value);
            std::memcpy(record.value, value.data(), value.size());
            commit();
        }
    }
    const double seconds = seconds_since(begin_time);
    std::printf("{\"system\": \"%s\", \"part\": \"ycsb %c\", \"operations_per_s\": %.0f, \"sum\": %llu}\n", system_name, workload,
                static_cast<double>(operations) / seconds, static_cast<unsigned long long>(sum));
    close();
}

void run_cpus(unsigned threads)
{
    constexpr auto slice = std::chrono::milliseconds(50);
    const auto process_seconds = [] {
        timespec time{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    };
    const double cpu_begin = process_seconds();
    const auto begin_time = Clock::now();
    const auto compute = [end_time = begin_time + slice] {
        while (Clock::now() < end_time) {
        }
    };
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i) {
        others.emplace_back(compute);
    }
    compute();
    for (std::thread& other : others) {
        other.join();
    }
    std::printf("{\"part\": \"cpus\", \"threads\": %u, \"cpus\": %.2f}\n", threads,
                (process_seconds() - cpu_begin) / seconds_since(begin_time));
}

#ifndef BREEZE_COSTS_PMEMOBJ
void run_fill(const char* path, std::uint64_t mib)
{
    create(path, (mib + mib / 8 + 64) << 20);
    for (std::uint64_t i = 0; i < mib; ++i) {
        begin();
        for (int j = 0; j < 1024; ++j) {
            auto* const object = make<Sized>(1024);
            object->next = static_cast<Sized*>(root());
            set_root(object);
        }
        commit();
    }
    close();
}

void run_open(const char* path, unsigned threads, std::uintptr_t place)
{
    constexpr std::uintptr_t first_place = (SP_WINDOW_INDEX << SP_WINDOW_SHIFT) + (std::uintptr_t{1} << 38);
    constexpr unsigned place_shift = 36;
    nvm_options chosen = options();
    chosen.threads = threads;
    chosen.base_address = place == 0 ? 0 : first_place + (place % 16 << place_shift);
    const auto begin_time = Clock::now();
    pool = nvm_pool_open_with(path, &chosen);
    const double seconds = seconds_since(begin_time);
    if (pool == nullptr) {
        die(path, sp_last_error());
    }
    nvm_pool_facts facts;
    nvm_facts(pool, &facts);
    std::printf("{\"system\": \"breeze\", \"part\": \"open\", \"ms\": %.1f, \"objects\": %llu, \"pointers_rewritten\": %llu}\n",
                seconds * 1e3, static_cast<unsigned long long>(facts.objects), static_cast<unsigned long long>(facts.pointers_rewritten));
    close();
}
#endif

}  // namespace

int main(int count, char** words)
{
    const std::string_view part = count > 2 ? words[1] : "";
    if (part == "alloc" && count == 5) {
        run_alloc(words[2], std::strtoull(words[3], nullptr, 10), std::strtoull(words[4], nullptr, 10));
    } else if (part == "ycsb" && count == 6) {
        run_ycsb(words[2], *words[3], std::strtoull(words[4], nullptr, 10), std::strtoull(words[5], nullptr, 10));
    } else if (part == "cpus" && count == 3) {
        run_cpus(static_cast<unsigned>(std::strtoul(words[2], nullptr, 10)));
#ifndef BREEZE_COSTS_PMEMOBJ
    } else if (part == "fill" && count == 4) {
        run_fill(words[2], std::strtoull(words[3], nullptr, 10));
    } else if (part == "open" && count == 5) {
        run_open(words[2], static_cast<unsigned>(std::strtoul(words[3], nullptr, 10)), std::strtoull(words[4], nullptr, 10));
#endif
    } else {
        die("unknown part, or a wrong number of words", "the head of the source has the usage");
    }
    return 0;
}
