#include "rocksdb_store.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <rocksdb/options.h>
#include <string>
#include <string_view>
#include <thread>

#include "../harness/ending.hpp"

namespace bench {

namespace {

constexpr int fill_batch = 10'000;
constexpr std::uint64_t block_cache_mib = 512;

void check(const rocksdb::Status& status, const char* what)
{
    if (!status.ok()) {
        give_up(std::string("RocksDB: ") + what + ": " + status.ToString());
    }
}

/// Big-endian bytes of a key.
class Key {
public:
    explicit Key(std::uint64_t number) noexcept
    {
        const std::uint64_t swapped = std::endian::native == std::endian::little ? __builtin_bswap64(number) : number;
        std::memcpy(bytes_, &swapped, sizeof bytes_);
    }
    [[nodiscard]] rocksdb::Slice slice() const noexcept { return {bytes_, sizeof bytes_}; }

private:
    char bytes_[sizeof(std::uint64_t)];
};

std::uint64_t number_of(const rocksdb::Slice& key)
{
    std::uint64_t number = 0;
    std::memcpy(&number, key.data(), sizeof number);
    return std::endian::native == std::endian::little ? __builtin_bswap64(number) : number;
}

rocksdb::Slice slice_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

bool is_synced()
{
    const char* wanted = std::getenv("BENCH_ROCKSDB_SYNC");
    if (wanted == nullptr || (std::string_view(wanted) != "0" && std::string_view(wanted) != "1")) {
        give_up("RocksDB: set BENCH_ROCKSDB_SYNC to 1 (each write syncs the log) or 0");
    }
    return *wanted == '1';
}

}  // namespace

RocksdbStore::RocksdbStore(const Shape& shape, const char* name, std::uint64_t)
{
    write_.sync = is_synced();
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;  // the values are random numbers
    // Bloom filters, a hash index in the blocks, and a cache that holds the whole of a usual workload.
    options.OptimizeForPointLookup(block_cache_mib);
    options.IncreaseParallelism(static_cast<int>(std::max(2u, std::thread::hardware_concurrency())));
    options.info_log_level = rocksdb::WARN_LEVEL;
    rocksdb::DB* opened = nullptr;
    check(rocksdb::DB::Open(options, shape.folder + "/" + name + ".rocksdb", &opened), "cannot open");
    db_.reset(opened);
}

RocksdbStore::~RocksdbStore() { check(db_->Close(), "cannot close"); }

bool RocksdbStore::get(unsigned, std::uint64_t key, std::span<std::byte> out)
{
    rocksdb::PinnableSlice value;  // no copy of what lies in the cache
    const rocksdb::Status status = db_->Get(read_, db_->DefaultColumnFamily(), Key(key).slice(), &value);
    if (status.IsNotFound()) {
        return false;
    }
    check(status, "cannot read");
    if (value.size() != out.size()) {
        give_up("RocksDB: a value has " + std::to_string(value.size()) + " bytes, not " + std::to_string(out.size()));
    }
    std::memcpy(out.data(), value.data(), out.size());
    return true;
}

void RocksdbStore::put(unsigned, std::uint64_t key, std::span<const std::byte> value)
{
    if (filling_) {
        check(batch_.Put(Key(key).slice(), slice_of(value)), "cannot add to a batch");
        if (batch_.Count() == fill_batch) {
            write_batch();
        }
        return;
    }
    check(db_->Put(write_, Key(key).slice(), slice_of(value)), "cannot write");
}

std::mutex& RocksdbStore::removal_lock(std::uint64_t key) noexcept
{
    return removals_[(key * 0x9e3779b97f4a7c15u >> 32) % removals_.size()];
}

bool RocksdbStore::remove(unsigned, std::uint64_t key)
{
    const std::lock_guard locked(removal_lock(key));
    const Key place(key);
    rocksdb::PinnableSlice value;
    const rocksdb::Status status = db_->Get(read_, db_->DefaultColumnFamily(), place.slice(), &value);
    if (status.IsNotFound()) {
        return false;
    }
    check(status, "cannot read");
    check(db_->Delete(write_, place.slice()), "cannot remove");
    return true;
}

void RocksdbStore::settle()
{
    const auto is_zero = [this](const std::string& property) {
        std::uint64_t value = 0;
        return !db_->GetIntProperty(property, &value) || value == 0;
    };
    using Properties = rocksdb::DB::Properties;
    while (!is_zero(Properties::kMemTableFlushPending) || !is_zero(Properties::kNumRunningFlushes) ||
           !is_zero(Properties::kCompactionPending) || !is_zero(Properties::kNumRunningCompactions)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void RocksdbStore::write_batch()
{
    check(db_->Write(write_, &batch_), "cannot write");
    batch_.Clear();
}

void RocksdbStore::end_fill()
{
    write_batch();
    filling_ = false;
}

std::optional<std::uint64_t> RocksdbStore::lowest_key_below(std::uint64_t limit)
{
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(read_));
    at->SeekToFirst();
    check(at->status(), "cannot look for a key");
    return at->Valid() && number_of(at->key()) < limit ? std::optional(number_of(at->key())) : std::nullopt;
}

std::optional<std::uint64_t> RocksdbStore::highest_key_below(std::uint64_t limit)
{
    if (limit == 0) {
        return std::nullopt;
    }
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(read_));
    at->SeekForPrev(Key(limit - 1).slice());
    check(at->status(), "cannot look for a key");
    return at->Valid() ? std::optional(number_of(at->key())) : std::nullopt;
}

}  // namespace bench
