// A peer against a model, std::map and std::deque. Compiled once for each peer that is installed.
//
// Invariants:
// - A store answers as the model does, within a life and after it is opened again.
// - After SIGKILL at any moment the store is the model after n or n + 1 operations, where n had been told; nothing told is lost.
// - libpmemobj: an operation that is killed just before its commit leaves nothing, a split of a tree included.
// - A filled store has what was filled.

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include "../../bench/engines/current.hpp"
#include "../../bench/harness/random.hpp"

#if defined(BENCH_PMEMOBJ)
#include <dlfcn.h>

namespace {
// Set in a child only: where it dies, before a commit.
std::uint64_t commits_left = UINT64_MAX;
bool* dies_at_a_split = nullptr;  // in shared memory: set to false by the death
std::size_t largest_allocation_bytes = 0;

template <class Function>
Function* real(const char* name)
{
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
}  // namespace

// Instead of libpmemobj's own, for the engine that is linked into this program.
extern "C" PMEMoid pmemobj_tx_xalloc(size_t size, uint64_t type, uint64_t flags)
{
    largest_allocation_bytes = size > largest_allocation_bytes ? size : largest_allocation_bytes;
    return real<decltype(pmemobj_tx_xalloc)>("pmemobj_tx_xalloc")(size, type, flags);
}
extern "C" void pmemobj_tx_commit()
{
    if (dies_at_a_split != nullptr && largest_allocation_bytes > 1000) {
        *dies_at_a_split = false;
        commits_left = 1;
    }
    if (--commits_left == 0) {
        kill(getpid(), SIGKILL);
    }
    largest_allocation_bytes = 0;
    real<decltype(pmemobj_tx_commit)>("pmemobj_tx_commit")();
}
#endif

namespace bench {
namespace {

constexpr std::uint64_t keys = 300;
constexpr std::size_t value_bytes = 40;
constexpr std::uint64_t operations_of_a_life = 1500;
using Model = std::map<std::uint64_t, std::uint64_t>;

/// Keys over all 64 bits: databases order some of them as signed numbers or as bytes.
std::uint64_t key_of(std::uint64_t number) { return (number + 1) * 0x9e3779b97f4a7c15u; }

std::array<std::byte, value_bytes> value_of(std::uint64_t number)
{
    std::array<std::byte, value_bytes> value{};
    std::memcpy(value.data(), &number, sizeof number);
    std::memcpy(value.data() + value_bytes - sizeof number, &number, sizeof number);
    return value;
}

class Peer : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override
    {
        std::string place = "/dev/shm/stillpoint-peers-XXXXXX";
        ASSERT_NE(mkdtemp(place.data()), nullptr);
        shape_.folder = place;
        shape_.durability = GetParam();
        shape_.threads = 2;
        shape_.value_bytes = value_bytes;
        shape_.pool_mib = 64;
        setenv("BENCH_ROCKSDB_SYNC", GetParam() == "power" ? "1" : "0", 1);
    }
    void TearDown() override { std::filesystem::remove_all(shape_.folder); }

    Shape shape_;
};

/// A peer that is open, as after the start of a process.
template <class Structure>
class Life {
public:
    template <class... Arguments>
    explicit Life(const Shape& shape, const Arguments&... arguments)
    {
        open_current(shape);
        structure_ = std::make_unique<Structure>(shape, arguments...);
    }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;
    ~Life()
    {
        structure_.reset();
#if defined(BENCH_PMEMOBJ)
        PmemobjPool::close();
#endif
    }
    Structure* operator->() { return structure_.get(); }
    Structure& operator*() { return *structure_; }

private:
    std::unique_ptr<Structure> structure_;
};

/// The `number`-th operation of a run: the same for the store and for the model.
template <class Store>
void perform(Store& store, Model& model, Random& random, std::uint64_t number)
{
    const std::uint64_t key = key_of(random.below(keys));
    const auto thread = static_cast<unsigned>(number % 2);
    const std::uint64_t choice = random.below(10);
    if (choice < 5) {
        store.put(thread, key, value_of(number));
        model[key] = number;
    } else if (choice < 8) {
        EXPECT_EQ(store.remove(thread, key), model.erase(key) == 1);
    } else {
        std::array<std::byte, value_bytes> found{};
        const auto expected = model.find(key);
        ASSERT_EQ(store.get(thread, key, found), expected != model.end());
        if (expected != model.end()) {
            EXPECT_EQ(found, value_of(expected->second));
        }
    }
}

/// Advances the model alone.
void perform_on_model(Model& model, Random& random, std::uint64_t number)
{
    const std::uint64_t key = key_of(random.below(keys));
    const std::uint64_t choice = random.below(10);
    if (choice < 5) {
        model[key] = number;
    } else if (choice < 8) {
        model.erase(key);
    }
}

template <class Store>
Model content(Store& store)
{
    Model found;
    for (std::uint64_t i = 0; i < keys; ++i) {
        std::array<std::byte, value_bytes> value{};
        if (store.get(0, key_of(i), value)) {
            std::uint64_t number = 0;
            std::memcpy(&number, value.data(), sizeof number);
            EXPECT_EQ(value, value_of(number)) << "a torn value";
            found[key_of(i)] = number;
        }
    }
    return found;
}

template <class Store>
void check_against_model(const Shape& shape)
{
    Model model;
    Random random(7);
    std::uint64_t number = 0;
    for (int life = 0; life < 4; ++life) {
        in_child([&] {
            Life<Store> store(shape, "test.store", keys);
            ASSERT_EQ(content(*store), model) << "in life " << life;
            for (std::uint64_t i = 0; i < operations_of_a_life; ++i) {
                perform(*store, model, random, number + i);
            }
            ASSERT_EQ(content(*store), model) << "in life " << life;
        });
        for (std::uint64_t i = 0; i < operations_of_a_life; ++i) {
            perform_on_model(model, random, number++);
        }
    }
}

/// Memory that a child shares with the test.
template <class T>
class Shared {
public:
    Shared() : value_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    ~Shared() { munmap(value_, sizeof(T)); }
    T& operator*() { return *static_cast<T*>(value_); }

private:
    void* value_;
};

/// Every life of a peer is a child's: threads that a library keeps would be missing behind a later fork.
template <class Work>
void in_child(const Work& work)
{
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        work();
        std::fflush(nullptr);
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child ended with status " << status;
}

/// A child works until it is killed, and says in shared memory how many operations have returned. Returns that number.
template <class Work>
std::uint64_t killed_while(const Work& work, std::uint64_t after_operations)
{
    Shared<std::uint64_t> told;
    const pid_t child = fork();
    if (child == 0) {
        work(std::atomic_ref(*told));
        _exit(1);
    }
    int status = 0;
    pid_t ended = 0;
    while (std::atomic_ref(*told).load() < after_operations && (ended = waitpid(child, &status, WNOHANG)) == 0) {
        usleep(50);
    }
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the child ended by itself, with status " << status;
    return *told;
}

template <class Store>
void check_after_kills(const Shape& shape)
{
    Model model;
    Random random(11);
    std::uint64_t number = 0;
    for (int life = 0; life < 6; ++life) {
        const auto work = [&](std::atomic_ref<std::uint64_t> told) {
            Life<Store> store(shape, "test.store", keys);
            for (std::uint64_t done = 0;; told.store(++done)) {
                perform(*store, model, random, number + done);
            }
        };
        const std::uint64_t told = killed_while(work, 50 + 37 * static_cast<std::uint64_t>(life));
        for (std::uint64_t i = 0; i < told; ++i) {
            perform_on_model(model, random, number++);
        }
        Model next = model;
        Random next_random = random;
        perform_on_model(next, next_random, number);
        Shared<bool> is_next;
        in_child([&] {
            Life<Store> store(shape, "test.store", keys);
            const Model found = content(*store);
            ASSERT_TRUE(found == model || found == next) << "after " << number << " operations, in life " << life;
            *is_next = found != model;
        });
        if (*is_next) {  // the operation that had not been told
            model = next;
            random = next_random;
            ++number;
        }
    }
}

#if defined(BENCH_PMEMOBJ)
/// Killed with all of an operation's stores done and none committed: what a structure forgot to announce would stay.
template <class Store>
void check_before_commits(const Shape& shape)
{
    Model model;
    Random random(5);
    std::uint64_t number = 0;
    unsigned splits = 0;
    in_child([&] { Life<Store> store(shape, "test.store", keys); });
    for (std::uint64_t life = 0; life < 20; ++life) {
        Shared<bool> is_uncut;
        *is_uncut = true;
        const auto work = [&](std::atomic_ref<std::uint64_t> told) {
            Life<Store> store(shape, "test.store", keys);
            dies_at_a_split = life % 2 == 0 ? &*is_uncut : nullptr;  // the next life goes beyond it
            commits_left = life % 2 == 0 ? 200 : 12 + life;
            largest_allocation_bytes = 0;
            for (std::uint64_t done = 0;; told.store(++done)) {
                perform(*store, model, random, number + done);
            }
        };
        for (std::uint64_t told = killed_while(work, UINT64_MAX); told > 0; --told) {
            perform_on_model(model, random, number++);
        }
        splits += *is_uncut ? 0u : 1u;
        in_child([&] {
            Life<Store> store(shape, "test.store", keys);
            ASSERT_EQ(content(*store), model) << "after " << number << " operations, in life " << life;
        });
    }
    if constexpr (std::is_same_v<Store, CurrentTreeStore>) {
        EXPECT_GT(splits, 0u) << "no split was cut";
    }
}

TEST_P(Peer, UndoesAnOperationThatDidNotCommit) { check_before_commits<CurrentHashStore>(shape_); }

TEST_P(Peer, UndoesASplitOfATreeThatDidNotCommit) { check_before_commits<CurrentTreeStore>(shape_); }
#endif

TEST_P(Peer, AnswersAsTheModelDoesAlsoWhenItIsOpenedAgain) { check_against_model<CurrentHashStore>(shape_); }

TEST_P(Peer, LosesNothingThatHadReturnedWhenItIsKilled) { check_after_kills<CurrentHashStore>(shape_); }

#if BENCH_HAS_MEMORY
TEST_P(Peer, TreeAnswersAsTheModelDoesAlsoWhenItIsOpenedAgain) { check_against_model<CurrentTreeStore>(shape_); }

TEST_P(Peer, TreeLosesNothingThatHadReturnedWhenItIsKilled) { check_after_kills<CurrentTreeStore>(shape_); }
#endif

TEST_P(Peer, HasWhatWasFilled)
{
    constexpr std::uint64_t count = 12'000;  // more than one batch
    in_child([&] {
        Life<CurrentHashStore> store(shape_, "test.store", count);
        const Filling<CurrentHashStore> filling(*store);
        for (std::uint64_t i = 0; i < count; ++i) {
            store->put(0, key_of(i), value_of(i));
        }
    });
    in_child([&] {
        Life<CurrentHashStore> store(shape_, "test.store", count);
        std::array<std::byte, value_bytes> found{};
        for (std::uint64_t i = 0; i < count; ++i) {
            ASSERT_TRUE(store->get(1, key_of(i), found)) << i;
            ASSERT_EQ(found, value_of(i));
        }
    });
}

/// The queue's order survives: elements are the numbers 0, 1, 2, ... and what is left is a run of them.
TEST_P(Peer, QueueKeepsItsOrderWhenItIsKilled)
{
    std::deque<std::uint64_t> model;
    Random random(3);
    std::uint64_t next = 0;
    const auto step = [](auto& queue, std::deque<std::uint64_t>& expected, Random& choices, std::uint64_t& number) {
        std::uint64_t popped = 0;
        if (choices.below(5) < 3) {
            queue.push(0, number);
            expected.push_back(number++);
        } else if (queue.pop(1, popped)) {
            EXPECT_EQ(popped, expected.front());
            expected.pop_front();
        } else {
            EXPECT_TRUE(expected.empty());
        }
    };
    struct NoQueue {  // moves the model alone
        std::deque<std::uint64_t>& expected;
        void push(unsigned, std::uint64_t) {}
        bool pop(unsigned, std::uint64_t& number)
        {
            number = expected.empty() ? 0 : expected.front();
            return !expected.empty();
        }
    };
    for (int life = 0; life < 4; ++life) {
        const auto work = [&](std::atomic_ref<std::uint64_t> told) {
            Life<CurrentQueue> queue(shape_, "test.queue");
            for (std::uint64_t done = 0;; told.store(++done)) {
                step(*queue, model, random, next);
            }
        };
        const std::uint64_t told = killed_while(work, 90);
        NoQueue none{model};
        for (std::uint64_t i = 0; i < told; ++i) {
            step(none, model, random, next);
        }
        std::deque<std::uint64_t> one_more = model;
        NoQueue none_more{one_more};
        Random more = random;
        std::uint64_t next_more = next;
        step(none_more, one_more, more, next_more);
        in_child([&] {
            std::deque<std::uint64_t> found;
            Life<CurrentQueue> queue(shape_, "test.queue");
            for (std::uint64_t number = 0; queue->pop(0, number);) {
                found.push_back(number);
            }
            ASSERT_TRUE(found == model || found == one_more) << "in life " << life;
        });
        model.clear();
        random = more;
        next = next_more;
    }
}

INSTANTIATE_TEST_SUITE_P(Durability, Peer, testing::Values("process", "power"),
                         [](const testing::TestParamInfo<std::string>& level) { return level.param; });

}  // namespace
}  // namespace bench
