// ledger: threads use two durable databases of Kyoto Cabinet in a way that can be checked after a crash.
//
//   stillpoint run --pool ledger.pool -- ledger cache               works until it is killed
//   stillpoint run --pool ledger.pool -- ledger cache --verify      checks what is there, and ends
//
// Also --count (how many records there are), --fill (until the pool is full), --twice (opens the databases a second time), and two
// mistakes that a kill must show: --torn (a transfer is two operations), --early (it acknowledges what is not durable yet).
// The first word is the class: cache, hash or tree. What holds at every quiescent moment, so after every crash:
//   - the balances of the accounts add up to what they were made with: a transfer is one accept_bulk;
//   - a thread's items are those of its last rounds: an item is made before it is counted, and removed afterwards;
//   - every item has the bytes that belong to its name; every record that is iterated is found by its key;
//   - in the second database, which is changed by transactions only, all records tell of the same transaction;
//   - no counter is lower than what the file of acknowledgements says. It is written after synchronize() only.
// Exit codes: 0 all holds; 1 it does not; 3 something acknowledged is missing; 64 wrong usage; 70 a database was refused.

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "kccachedb.h"
#include "kcprotodb.h"

namespace kc = kyotocabinet;

namespace {

constexpr int exit_broken = 1;
constexpr int exit_lost = 3;
constexpr int exit_usage = 64;
constexpr int exit_refused = 70;
constexpr unsigned accounts = 64;
constexpr std::uint64_t balance_at_start = 1000;
constexpr unsigned threads_max = 8;
constexpr std::uint64_t items_kept = 40;

using Records = std::map<std::string, std::string>;

std::string text_of(std::uint64_t number) { return std::string(reinterpret_cast<const char*>(&number), sizeof number); }

std::uint64_t number_of(const std::string& text)
{
    std::uint64_t number = 0;
    std::memcpy(&number, text.data(), std::min(sizeof number, text.size()));
    return number;
}

[[noreturn]] void end(int code, const std::string& why)
{
    std::fprintf(stderr, "ledger: %s\n", why.c_str());
    _exit(code);
}

struct Random {
    std::uint64_t state;
    std::uint64_t below(std::uint64_t limit)
    {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return state % limit;
    }
};

std::string account_key(std::uint64_t number) { return "account:" + std::to_string(number); }
std::string count_key(unsigned thread) { return "count:" + std::to_string(thread); }
std::string item_key(unsigned thread, std::uint64_t number) { return "item:" + std::to_string(thread) + ":" + std::to_string(number); }

/// 0 to 699 bytes that only this item has.
std::string item_value(unsigned thread, std::uint64_t number)
{
    Random random{number * 977 + thread + 1};
    std::string value(random.below(700), 'x');
    for (char& byte : value) {
        byte = static_cast<char>(random.below(251));
    }
    return value;
}

/// Takes from the first key and gives to the second, inside the database's locks.
class Transfer final : public kc::DB::Visitor {
public:
    explicit Transfer(std::uint64_t amount) : amount_(amount) {}

private:
    const char* visit_full(const char*, size_t, const char* value, size_t size, size_t* new_size) override
    {
        balance_ = number_of(std::string(value, size)) + (taken_ ? amount_ : -amount_);
        taken_ = true;
        *new_size = sizeof balance_;
        return reinterpret_cast<const char*>(&balance_);
    }
    std::uint64_t amount_;
    std::uint64_t balance_ = 0;
    bool taken_ = false;
};

class Reader final : public kc::DB::Visitor {
public:
    Records records;

private:
    const char* visit_full(const char* key, size_t key_size, const char* value, size_t size, size_t*) override
    {
        records.emplace(std::string(key, key_size), std::string(value, size));
        return NOP;
    }
};

std::unique_ptr<kc::BasicDB> make_database(const std::string& kind, std::int64_t buckets)
{
    if (kind == "hash") {
        return std::make_unique<kc::ProtoHashDB>();
    }
    if (kind == "tree") {
        return std::make_unique<kc::ProtoTreeDB>();
    }
    if (kind != "cache") {
        end(exit_usage, "the first word must be cache, hash or tree");
    }
    auto cache = std::make_unique<kc::CacheDB>();
    cache->tune_buckets(buckets);
    return cache;
}

struct Arguments {
    std::string kind;
    std::string action = "work";
    unsigned threads = 3;
    double seconds = 0;  ///< 0: until it is killed
    std::int64_t buckets = 1024;
    bool torn = false;
    bool early = false;
};

class Ledger {
public:
    explicit Ledger(const Arguments& arguments)
        : arguments_(arguments), main_(make_database(arguments.kind, arguments.buckets)), pairs_(make_database(arguments.kind, 64))
    {
        open(*main_, "ledger");
        open(*pairs_, "pairs");
        const char* folder = std::getenv("CRASHTEST_FOLDER");
        acknowledgements_ = folder == nullptr ? "" : std::string(folder) + "/acknowledged";
    }
    void verify();
    void begin();
    void work();
    std::uint64_t fill();
    std::uint64_t records() { return static_cast<std::uint64_t>(main_->count()); }
    void close()
    {
        main_->close();
        pairs_->close();
    }

private:
    static void open(kc::BasicDB& database, const std::string& name)
    {
        if (!database.open(name, kc::BasicDB::OWRITER | kc::BasicDB::OCREATE)) {
            end(exit_refused, name + ": " + database.error().name() + ": " + database.error().message());
        }
    }
    static Records all(kc::BasicDB& database);
    void verify_items(const Records& records) const;
    void verify_pairs() const;
    void verify_acknowledged() const;
    std::uint64_t count(unsigned thread) const { return number_of(get(*main_, count_key(thread))); }
    static std::string get(kc::BasicDB& database, const std::string& key)
    {
        std::string value;
        database.get(key, &value);
        return value;
    }
    void work_thread(unsigned thread);
    void transactions();
    void acknowledge(int file, bool at_once);

    Arguments arguments_;
    std::unique_ptr<kc::BasicDB> main_;
    std::unique_ptr<kc::BasicDB> pairs_;
    std::string acknowledgements_;
    std::atomic<bool> ended_{false};
    std::atomic<std::uint64_t> done_[threads_max] = {};  ///< counted in a FASE that has ended
    std::atomic<std::uint64_t> committed_{0};
};

Records Ledger::all(kc::BasicDB& database)
{
    Reader reader;
    if (!database.iterate(&reader, false)) {
        end(exit_broken, "a database cannot be iterated");
    }
    for (const auto& [key, value] : reader.records) {
        std::string found;
        if (!database.get(key, &found) || found != value) {
            end(exit_broken, key + " is iterated and not found by its key");
        }
    }
    if (database.count() != static_cast<std::int64_t>(reader.records.size())) {
        end(exit_broken, "the database's count is not that of its records");
    }
    return reader.records;
}

void Ledger::verify()
{
    const Records records = all(*main_);
    std::uint64_t sum = 0, found = 0, bytes = 0;
    for (const auto& [key, value] : records) {
        bytes += key.size() + value.size();
        if (key.rfind("account:", 0) == 0) {
            sum += number_of(value);
            ++found;
        }
    }
    if (found == 0 ? !records.empty() : found != accounts || sum != accounts * balance_at_start) {
        end(exit_broken, std::to_string(found) + " accounts with " + std::to_string(sum) + " in all");
    }
    if (arguments_.kind != "cache" && static_cast<std::uint64_t>(main_->size()) != bytes) {
        end(exit_broken, "the database's size is not that of its records");
    }
    verify_items(records);
    verify_pairs();
    verify_acknowledged();
}

void Ledger::verify_items(const Records& records) const
{
    std::map<unsigned, std::uint64_t> items;
    for (const auto& [key, value] : records) {
        unsigned thread = 0;
        std::uint64_t number = 0;
        if (std::sscanf(key.c_str(), "item:%u:%" SCNu64, &thread, &number) != 2) {
            continue;
        }
        ++items[thread];
        const std::uint64_t counted = count(thread);
        if (number + items_kept < counted || number > counted + 1 || value != item_value(thread, number)) {
            end(exit_broken, key + " does not belong beside " + std::to_string(counted) + " counted items, or is damaged");
        }
    }
    for (unsigned thread = 0; thread < threads_max; ++thread) {
        const std::uint64_t counted = count(thread), least = std::min(counted, items_kept);
        for (std::uint64_t number = counted - least + 1; number <= counted; ++number) {
            if (records.count(item_key(thread, number)) == 0) {
                end(exit_broken, item_key(thread, number) + " is counted and missing");
            }
        }
    }
}

void Ledger::verify_pairs() const
{
    const Records records = all(*pairs_);
    const std::uint64_t left = number_of(get(*pairs_, "left"));
    const bool even_present = records.count("present while even") != 0;
    if (left != number_of(get(*pairs_, "right")) || (left != 0 && even_present != (left % 2 == 0))) {
        end(exit_broken, "a transaction is there in part: " + std::to_string(left));
    }
}

void Ledger::verify_acknowledged() const
{
    std::ifstream file(acknowledgements_);
    std::string line;
    while (std::getline(file, line) && !file.eof()) {
        unsigned thread = 0;
        std::uint64_t number = 0;
        if (std::sscanf(line.c_str(), "%u %" SCNu64, &thread, &number) != 2) {
            end(exit_broken, "acknowledgements: " + line);
        }
        const std::uint64_t found = thread == threads_max ? number_of(get(*pairs_, "left")) : count(thread);
        if (found < number) {
            end(exit_lost, "acknowledged " + line + ", found " + std::to_string(found));
        }
    }
}

void Ledger::begin()
{
    std::string value;
    if (main_->get(account_key(0), &value)) {
        return;
    }
    Records made;
    for (unsigned number = 0; number < accounts; ++number) {
        made[account_key(number)] = text_of(balance_at_start);
    }
    main_->set_bulk(made);  // one accept_bulk, so one FASE
}

/// Makes records until the pool has no room; returns how many.
std::uint64_t Ledger::fill()
{
    begin();
    std::uint64_t number = 0;
    try {
        while (number < 1'000'000) {
            main_->set("filler:" + std::to_string(number), std::string(1000, 'f'));
            ++number;
        }
        end(exit_broken, "the pool has room for everything");
    } catch (const std::bad_alloc&) {
        main_->remove("filler:0");
        main_->set("filler:0", std::string(1000, 'F'));  // there is room again, and no lock is held
    }
    return number;
}

void Ledger::work_thread(unsigned thread)
{
    std::uint64_t number = count(thread);
    if (number > items_kept) {
        main_->remove(item_key(thread, number - items_kept));  // in case the crash came between counting and removing
    }
    Random random{number * 31 + thread + 1};
    while (!ended_.load(std::memory_order_relaxed)) {
        ++number;
        main_->set(item_key(thread, number), item_value(thread, number));
        main_->set(count_key(thread), text_of(number));
        done_[thread].store(number, std::memory_order_relaxed);
        if (number > items_kept) {
            main_->remove(item_key(thread, number - items_kept));
        }
        const std::uint64_t from = random.below(accounts);
        Transfer transfer(random.below(20));
        const std::uint64_t to = (from + 1 + random.below(accounts - 1)) % accounts;
        if (arguments_.torn) {
            main_->accept_bulk({account_key(from)}, &transfer);
            main_->accept_bulk({account_key(to)}, &transfer);
        } else {
            main_->accept_bulk({account_key(from), account_key(to)}, &transfer);
        }
    }
}

void Ledger::transactions()
{
    std::uint64_t number = number_of(get(*pairs_, "left"));
    Random random{number + 7};
    while (!ended_.load(std::memory_order_relaxed)) {
        pairs_->begin_transaction();
        pairs_->set("left", text_of(number + 1));
        if ((number + 1) % 2 == 0) {
            pairs_->set("present while even", item_value(0, number));
        } else {
            pairs_->remove("present while even");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(random.below(3)));
        pairs_->set("right", text_of(number + 1));
        const bool commit = random.below(4) != 0;
        pairs_->end_transaction(commit);
        number += commit ? 1 : 0;
        committed_.store(number, std::memory_order_relaxed);
    }
}

/// Everything counted so far is durable when synchronize() returns; then it may be told.
void Ledger::acknowledge(int file, bool at_once)
{
    std::string lines;
    for (unsigned thread = 0; thread < threads_max; ++thread) {
        lines += std::to_string(thread) + " " + std::to_string(done_[thread].load()) + "\n";
    }
    lines += std::to_string(threads_max) + " " + std::to_string(committed_.load()) + "\n";
    if (!arguments_.early && !main_->synchronize(at_once)) {
        end(exit_broken, std::string("synchronize: ") + main_->error().message());
    }
    if (file >= 0 && write(file, lines.data(), lines.size()) != static_cast<ssize_t>(lines.size())) {
        end(exit_broken, "the file of acknowledgements cannot be written");
    }
}

void Ledger::work()
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    const int file = acknowledgements_.empty() ? -1 : ::open(acknowledgements_.c_str(), flags, 0600);
    std::vector<std::thread> running;
    for (unsigned thread = 0; thread < arguments_.threads; ++thread) {
        running.emplace_back([this, thread] { work_thread(thread); });
    }
    running.emplace_back([this] { transactions(); });
    const double begun = kc::time();
    for (bool at_once = false; arguments_.seconds == 0 || kc::time() - begun < arguments_.seconds; at_once = !at_once) {
        acknowledge(file, at_once);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ended_ = true;
    for (std::thread& one : running) {
        one.join();
    }
}

}  // namespace

namespace {

Arguments parse(int count, char** words)
{
    Arguments arguments;
    arguments.kind = count > 1 ? words[1] : "";
    for (int i = 2; i < count; ++i) {
        const std::string word = words[i];
        if (word == "--verify" || word == "--count" || word == "--fill" || word == "--twice") {
            arguments.action = word.substr(2);
        } else if (word == "--torn") {
            arguments.torn = true;
        } else if (word == "--early") {
            arguments.early = true;
        } else if (word == "--threads" && i + 1 < count) {
            arguments.threads = std::min(threads_max, static_cast<unsigned>(std::atoi(words[++i])));
        } else if (word == "--seconds" && i + 1 < count) {
            arguments.seconds = std::atof(words[++i]);
        } else if (word == "--buckets" && i + 1 < count) {
            arguments.buckets = std::atoll(words[++i]);
        } else {
            end(exit_usage, "usage: ledger cache|hash|tree [--verify|--count|--fill|--twice] [--threads N] [--seconds S] [--buckets N]");
        }
    }
    return arguments;
}

}  // namespace

int main(int count, char** words)
{
    const Arguments arguments = parse(count, words);
    Ledger ledger(arguments);
    ledger.verify();
    if (arguments.action == "count") {
        std::printf("%" PRIu64 "\n", ledger.records());
    } else if (arguments.action == "twice") {
        Ledger second(arguments);
    } else if (arguments.action == "fill") {
        std::printf("ledger: filled with %" PRIu64 " records\n", ledger.fill());
        ledger.verify();
    } else {
        std::printf("ledger: verified, %s\n", sp_start_kind() == SP_START_CRASHED ? "after a crash" : "after a normal end");
        std::fflush(stdout);
    }
    if (arguments.action == "work") {
        ledger.begin();
        ledger.work();
        ledger.verify();
        std::puts("ledger: done");
    }
    ledger.close();
    return EXIT_SUCCESS;
}
