// The runtime against every crash that the model knows (undo_crash_model.hpp), with hooks called by hand.
//
// Invariants, of each image after recovery:
//   The program's state is that before the running FASE or that after it; when undo_fase_end has returned, that after it.
//   Every block is either reachable from the root or in one list of free blocks: no leak, no overlap.
//   A crash inside recovery changes none of that.
//   A damaged pool is recovered or refused: nothing that is read is followed before it was checked.
// And with one fence, write back or rule taken out (Canary) some image breaks them.

#include <condition_variable>
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "undo-hooks.h"
#include "undo_crash_model.hpp"
#include "undo_pool.hpp"

extern "C" {
void nvhooks_pre_nvm_write(void* address, std::size_t size_bytes);
void nvhooks_post_nvm_write(void* address, std::size_t size_bytes);
}

namespace stillpoint::undo {
namespace {

struct Node {
    Node* next;
    std::uint64_t value;
    std::uint64_t words;  ///< that follow
};
struct Root {
    undo_rwlock lock;
    Node* first;
    std::uint64_t count;
};

template <class N>
auto* payload(N* node)
{
    using Word = std::conditional_t<std::is_const_v<N>, const std::uint64_t, std::uint64_t>;
    return reinterpret_cast<Word*>(node + 1);
}

/// As the compiler would have it: hook, store, hook.
template <class T>
void store(T& place, T value)
{
    nvhooks_pre_nvm_write(&place, sizeof place);
    place = value;
    nvhooks_post_nvm_write(&place, sizeof place);
}

/// Reads a list out of an image, wherever that lies in memory. Empty text: it is sound.
class Reader {
public:
    explicit Reader(CrashModel::Image& image) : pool_(image.data()) {}

    [[nodiscard]] std::string read(std::vector<std::uint64_t>& values)
    {
        if (pool_.variables().root == 0) {
            return soundness();
        }
        const auto& root = *reinterpret_cast<Root*>(pool_.at(pool_.variables().root));
        live_.insert(pool_.variables().root - sizeof(BlockHeader));
        for (const Node* node = at(root.first); node != nullptr; node = at(node->next)) {
            if (!live_.insert(pool_.offset_of(node) - sizeof(BlockHeader)).second) {
                return "the list has a cycle";
            }
            values.push_back(node->value);
            for (std::uint64_t i = 0; i < node->words; ++i) {
                values.push_back(payload(node)[i]);
            }
        }
        values.push_back(root.count);
        return soundness();
    }

private:
    const Node* at(const Node* pointer)
    {
        const auto offset = reinterpret_cast<std::uintptr_t>(pointer) - UNDO_WINDOW_BASE;
        return pointer == nullptr ? nullptr : reinterpret_cast<const Node*>(pool_.at(offset));
    }
    [[nodiscard]] std::string soundness()
    {
        std::set<std::uint64_t> free;
        for (std::uint32_t slot = 0; slot < pool_.geometry().slots; ++slot) {
            for (std::uint64_t block : pool_.slot(slot).free_blocks) {
                for (; block != 0; block = reinterpret_cast<BlockHeader*>(pool_.at(block))->next) {
                    if (!pool_.is_block(block) || !free.insert(block).second || live_.count(block) != 0) {
                        return "a list of free blocks has what is none";
                    }
                }
            }
        }
        std::size_t blocks = 0;
        for (std::uint64_t chunk = 0; chunk < pool_.geometry().chunks;) {
            std::uint64_t at = 0;
            while (at < pool_.used(chunk)) {
                const std::uint64_t offset = pool_.chunk_offset(chunk) + at;
                if (!pool_.is_block(offset)) {
                    return "bytes in use are not a block";
                }
                if (live_.count(offset) + free.count(offset) != 1) {
                    return "a block has leaked";
                }
                ++blocks;
                at += class_bytes(reinterpret_cast<BlockHeader*>(pool_.at(offset))->size_class);
            }
            chunk += at > chunk_bytes / 4 && at > pool_.used(chunk) ? (at + chunk_bytes - 1) / chunk_bytes : 1;
        }
        return blocks == live_.size() + free.size() ? "" : "a block lies outside of what is in use";
    }

    Pool pool_;
    std::set<std::uint64_t> live_;
};

class UndoCrash : public testing::Test {
protected:
    void SetUp() override
    {
        path_ = std::filesystem::temp_directory_path() / ("undo-crash-" + std::to_string(getpid()) + ".pool");
        std::filesystem::remove(path_);
        removed_canary = Canary::none;
        found_.clear();
        ASSERT_EQ(undo_open(path_.c_str(), pool_bytes), 0) << undo_error();
        root_ = static_cast<Root*>(undo_root(sizeof(Root)));
        ASSERT_NE(root_, nullptr);
    }
    void TearDown() override
    {
        listener = nullptr;
        removed_canary = Canary::none;
        undo_close();
        std::filesystem::remove(path_);
    }

    static constexpr std::size_t pool_bytes = 1u << 20;
    static const std::byte* base() { return reinterpret_cast<const std::byte*>(UNDO_WINDOW_BASE); }

    /// The state as the program sees it now.
    static std::vector<std::uint64_t> state_now()
    {
        CrashModel::Image copy(base(), base() + pool_bytes);
        std::vector<std::uint64_t> values;
        (void)Reader(copy).read(values);
        return values;
    }

    void judge_recovered(CrashModel::Image& image)
    {
        const char* wrong = Pool(image.data()).check_contents();
        std::vector<std::uint64_t> values;
        const std::string unsound = wrong != nullptr ? wrong : Reader(image).read(values);
        if (!unsound.empty()) {
            note(unsound);
        } else if (!allowed_.contains(values)) {
            note("the state is neither that before the FASE nor that after it: " + testing::PrintToString(values));
        }
    }
    void note(const std::string& what)
    {
        if (found_.empty()) {
            found_ = what + " (FASE " + std::to_string(fases_) + ")";
        }
    }

    /// Recovers an image and judges it; in every 16th one recovery is crashed too.
    void judge(CrashModel::Image& image)
    {
        Listener* outer = listener;
        listener = nullptr;
        const Pool pool(image.data());
        if (++judged_ % 16 == 0) {
            CrashModel inner(image.data(), image.size(), judged_, [this](CrashModel::Image& again) {
                Listener* kept = listener;
                listener = nullptr;
                ASSERT_EQ(Pool(again.data()).recover(), nullptr);
                judge_recovered(again);
                listener = kept;
            });
            listener = &inner;
            ASSERT_EQ(pool.recover(), nullptr);
            inner.crash();
        } else {
            const char* wrong = pool.recover();
            if (wrong != nullptr) {
                note(wrong);
            }
        }
        listener = nullptr;
        judge_recovered(image);
        listener = outer;
    }

    /// One FASE in front of a model. `change` does it; the state after it is asked of a copy in memory.
    template <class Change>
    void fase(CrashModel& model, Change change)
    {
        ++fases_;
        allowed_ = {state_before_};
        undo_fase_begin();
        change();
        // A block that the FASE frees is still its own: the state is the program's alone.
        state_before_ = state_now();
        allowed_.insert(state_before_);
        undo_fase_end();
        allowed_ = {state_before_};
        model.crash();
    }

    void push(std::uint64_t value, std::uint64_t words)
    {
        auto* node = static_cast<Node*>(undo_alloc(sizeof(Node) + words * 8));
        ASSERT_NE(node, nullptr) << undo_error();
        node->next = root_->first;
        node->value = value;
        node->words = words;
        for (std::uint64_t i = 0; i < words; ++i) {
            payload(node)[i] = value * 1000 + i;
        }
        nvhooks_post_nvm_write(node, sizeof(Node) + words * 8);
        store(root_->first, node);
        store(root_->count, root_->count + 1);
    }
    void pop()
    {
        Node* node = root_->first;
        store(root_->first, node->next);
        store(root_->count, root_->count - 1);
        undo_free(node);
    }
    /// May it get the block that it has just freed? It must not.
    void replace(std::uint64_t value)
    {
        const std::uint64_t words = root_->first->words;
        pop();
        push(value, words);
    }
    void rewrite(std::uint64_t value)
    {
        for (Node* node = root_->first; node != nullptr; node = node->next) {
            store(node->value, value);
            for (std::uint64_t i = 0; i < node->words; i += 5) {
                store(payload(node)[i], value + i);
            }
        }
    }

    /// FASEs of every kind. The number of images, or what was found.
    std::size_t run(std::uint64_t seed, unsigned fases)
    {
        state_before_ = state_now();
        allowed_ = {state_before_};
        CrashModel model(base(), pool_bytes, seed, [this](CrashModel::Image& image) { judge(image); });
        listener = &model;
        std::mt19937_64 random(seed);
        for (unsigned i = 0; i < fases && found_.empty(); ++i) {
            const std::uint64_t value = random() % 1'000'000;
            fase(model, [&] {
                switch (root_->first == nullptr ? 0 : random() % 6) {
                case 0: push(value, random() % 24); break;
                case 1: push(value, 3), push(value + 1, 3); break;
                case 2: pop(); break;
                case 3: rewrite(value); break;
                case 4: replace(value); break;
                default: store(root_->first->value, value), store(root_->first->value, value + 1); break;
                }
            });
        }
        listener = nullptr;
        return model.images();
    }

    std::filesystem::path path_;
    Root* root_ = nullptr;
    std::vector<std::uint64_t> state_before_;
    std::set<std::vector<std::uint64_t>> allowed_;
    std::string found_;
    std::size_t judged_ = 0;
    unsigned fases_ = 0;
};

TEST_F(UndoCrash, LeavesEachFaseWholeOrNotAtAll)
{
    const std::size_t images = run(1, 24);
    EXPECT_EQ(found_, "");
    EXPECT_GT(images, 1000u);
}

TEST_F(UndoCrash, UndoesAFaseWhoseLogGoesOnInAnotherChunk)
{
    undo_fase_begin();
    push(1, 600);
    undo_fase_end();
    state_before_ = state_now();
    allowed_ = {state_before_};
    undo_fase_begin();
    for (std::uint64_t i = 0; i < 600; ++i) {
        store(payload(root_->first)[i], i);  // 600 entries of 32 bytes: more than a slot of 16 KiB holds
    }
    CrashModel::Image image(base(), base() + pool_bytes);
    judge(image);
    EXPECT_EQ(found_, "");
    undo_fase_end();
}

TEST_F(UndoCrash, KeepsTheLogUsableAfterManyFases)
{
    for (std::uint64_t i = 0; i < 2000; ++i) {
        undo_fase_begin();
        i % 3 == 2 ? pop() : push(i, i % 40);
        i % 3 == 2 ? pop() : void();
        undo_fase_end();
    }
    state_before_ = state_now();
    allowed_ = {state_before_};
    CrashModel::Image image(base(), base() + pool_bytes);
    judge(image);
    EXPECT_EQ(found_, "");
}

TEST_F(UndoCrash, UndoesOnlyTheFaseThatHasNotEndedWhereTwoThreadsRun)
{
    undo_fase_begin();
    push(1, 4);
    push(2, 4);
    undo_fase_end();
    Node* first = root_->first;
    Node* second = first->next;
    std::vector<std::uint64_t> before = state_now();
    state_before_ = before;
    std::mutex lock;
    std::condition_variable changed;
    int stage = 0;
    const auto wait_for = [&](int wanted) {
        std::unique_lock locked(lock);
        changed.wait(locked, [&] { return stage == wanted; });
    };
    const auto go_to = [&](int next) {
        const std::lock_guard locked(lock);
        stage = next;
        changed.notify_all();
    };
    std::thread other([&] {
        undo_fase_begin();
        store(second->value, std::uint64_t{77});
        go_to(1);
        wait_for(2);
        undo_fase_end();
    });
    wait_for(1);
    CrashModel model(base(), pool_bytes, 3, [this](CrashModel::Image& image) { judge(image); });
    listener = &model;
    std::vector<std::uint64_t> after = before;
    after[0] = 55;  // the first node's value; the other thread's is undone in every image
    allowed_ = {before, after};
    undo_fase_begin();
    store(first->value, std::uint64_t{55});
    undo_fase_end();
    allowed_ = {after};
    model.crash();
    EXPECT_EQ(found_, "");
    listener = nullptr;
    go_to(2);
    other.join();
}

TEST_F(UndoCrash, SurvivesOrRefusesEveryDamagedByteOfWhatItReads)
{
    undo_fase_begin();
    push(1, 8), push(2, 8), push(3, 8);
    undo_fase_end();
    undo_fase_begin();
    pop(), rewrite(5);
    const CrashModel::Image whole(base(), base() + pool_bytes);
    undo_fase_end();
    const Geometry& shape = Pool(const_cast<std::byte*>(base())).geometry();
    const std::uint64_t places[][2] = {{0, sizeof(Header)},
                                       {shape.table_offset, shape.chunks * 8},
                                       {shape.slots_offset, sizeof(SlotHeader) + 1024},
                                       {shape.chunks_offset, 512}};
    CrashModel::Image image = whole;
    std::mt19937_64 random(1);
    unsigned refused = 0;
    for (const auto& [begin, size] : places) {
        for (std::uint64_t at = begin; at < begin + size; ++at) {
            for (const auto flip : {std::byte{1}, std::byte{0x80}, static_cast<std::byte>(random() | 1)}) {
                image = whole;
                image[at] ^= flip;
                const Pool pool(image.data());
                const bool whole_header = Pool::check(*reinterpret_cast<const Header*>(image.data()), pool_bytes) == nullptr;
                EXPECT_EQ(whole_header, at >= sizeof(Geometry)) << "byte " << at;
                refused += !whole_header || pool.recover() != nullptr || pool.check_contents() != nullptr;
            }
        }
    }
    EXPECT_GT(refused, 3 * sizeof(Geometry));
}

TEST_F(UndoCrash, NoticesEachCanary)
{
    for (const Canary canary : {Canary::log_fence, Canary::log_write_back, Canary::data_write_back, Canary::commit_fence,
                                Canary::commit_write_back, Canary::recovery_fence, Canary::free_at_once}) {
        removed_canary = canary;
        found_.clear();
        fases_ = 0;
        for (std::uint64_t seed = 1; seed <= 8 && found_.empty(); ++seed) {
            (void)run(seed, 12);
        }
        EXPECT_NE(found_, "") << "canary " << static_cast<int>(canary) << " was not noticed";
        removed_canary = Canary::none;
        undo_fase_begin();
        while (root_->first != nullptr) {
            pop();
        }
        undo_fase_end();
    }
}

}  // namespace
}  // namespace stillpoint::undo
