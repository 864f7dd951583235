// The measured process of bench/kyotocabinet: threads get and set records of one of Kyoto Cabinet's databases on memory.
// The same source is built with the library as it is and with the durable one (integrations/kyotocabinet/build.py).
//
// Usage: kyotocabinet_worker kind=cache|cache-unsorted|hash|tree threads=N records=N sets=PERCENT path=PATH
//   cache-unsorted   a cache that does not move a record in its LRU list when it is read or written
//   PATH   "*": the database is nameless, so it stays in ordinary memory in any build; a name: in the pool, if there is one

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "harness/turns.hpp"
#include "kccachedb.h"
#include "kcprotodb.h"

namespace bench {
namespace {

constexpr unsigned operations_each = 64;
constexpr std::size_t value_bytes = 100;

class KyotoWorkload final : public TurnWorkload {
public:
    KyotoWorkload(std::unique_ptr<kyotocabinet::BasicDB> database, std::uint64_t records, std::uint64_t set_percent,
                  const std::string& path)
        : database_(std::move(database)), records_(records), set_percent_(set_percent)
    {
        using kyotocabinet::BasicDB;
        if (!database_->open(path, BasicDB::OWRITER | BasicDB::OCREATE | BasicDB::OTRUNCATE)) {
            give_up(database_->error().message());
        }
        char value[value_bytes];
        std::memset(value, 'v', sizeof value);
        for (std::uint64_t record = 0; record < records_; ++record) {
            char key[24];
            database_->set(key, write_key(key, record), value, sizeof value);
        }
    }
    std::uint64_t perform(unsigned, Random& random) override
    {
        char value[value_bytes];
        std::memset(value, 'a' + static_cast<int>(random.below(26)), sizeof value);
        for (unsigned i = 0; i < operations_each; ++i) {
            char key[24];
            const std::size_t size = write_key(key, random.below(records_));
            if (random.below(100) < set_percent_) {
                database_->set(key, size, value, sizeof value);
            } else if (database_->get(key, size, value, sizeof value) < 0) {
                give_up("a record is missing");
            }
        }
        return operations_each;
    }
    void settle() override { database_->synchronize(false); }

private:
    static std::size_t write_key(char* key, std::uint64_t record)
    {
        return static_cast<std::size_t>(std::snprintf(key, 24, "%016llu", static_cast<unsigned long long>(record)));
    }
    std::unique_ptr<kyotocabinet::BasicDB> database_;
    std::uint64_t records_;
    std::uint64_t set_percent_;
};

std::unique_ptr<kyotocabinet::BasicDB> make_database(const std::string& kind)
{
    if (kind == "cache" || kind == "cache-unsorted") {
        auto cache = std::make_unique<kyotocabinet::CacheDB>();
        cache->switch_rotation(kind == "cache");
        return cache;
    }
    if (kind == "hash") {
        return std::make_unique<kyotocabinet::ProtoHashDB>();
    }
    if (kind == "tree") {
        return std::make_unique<kyotocabinet::ProtoTreeDB>();
    }
    give_up("there is no database \"" + kind + "\": kind is cache, cache-unsorted, hash or tree");
}

void run(const Settings& settings)
{
    KyotoWorkload workload(make_database(settings.text("kind")), settings.number_from("records", 1, 100'000'000),
                           settings.number_from("sets", 0, 100), settings.text("path", "*"));
    serve(workload, static_cast<unsigned>(settings.number_from("threads", 1, 64)));
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
