// Litmus tests: each shows one rule of docs/internals/crash-model.md, by the set of states that a crash may leave.
//
// A test writes a few words and lists, or forbids, what they may be afterwards; "ab" is a state in which word a
// and word b have landed, "-b" one in which only b has.

#include <cstring>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "sim/crash_images.hpp"

namespace stillpoint::sim {
namespace {

constexpr std::uint64_t file_bytes = 8 * page_bytes + object_bytes;

class Litmus {
public:
    explicit Litmus(Profile profile, PageCopy page_copy = PageCopy::at_one_instant, CutSector cut_sector = CutSector::old_or_new)
        : model_(profile, CrashImage{PageMap(file_bytes), true}, page_copy, cut_sector)
    {
    }

    /// Stores the letter's word: all its bytes are the letter.
    Litmus& store(char letter, std::uint64_t offset, std::uint64_t size = 8, std::uint32_t thread = 1)
    {
        return put(EventKind::store, letter, offset, size, thread);
    }
    Litmus& nontemporal(char letter, std::uint64_t offset, std::uint64_t size = 64, std::uint32_t thread = 1)
    {
        return put(EventKind::nontemporal_store, letter, offset, size, thread);
    }
    Litmus& block(char letter, std::uint64_t offset, std::uint64_t size = page_bytes)
    {
        return put(EventKind::block_write, letter, offset, size, 1);
    }
    Litmus& write_back(std::uint64_t offset, std::uint64_t size = 8, std::uint32_t thread = 1)
    {
        model_.apply({EventKind::write_back, thread, offset, size, 0, nullptr});
        return *this;
    }
    Litmus& fence(std::uint32_t thread = 1)
    {
        model_.apply({EventKind::fence, thread, 0, 0, 0, nullptr});
        return *this;
    }
    Litmus& apply(EventKind kind, std::uint64_t value = 0)
    {
        model_.apply({kind, 1, 0, 0, value, nullptr});
        return *this;
    }
    Litmus& kill()
    {
        model_.kill();
        return *this;
    }

    /// The states of the words at `offsets`, each by its first byte's letter, or '-'.
    [[nodiscard]] std::set<std::string> states(const std::vector<std::uint64_t>& offsets) const
    {
        std::set<std::string> found;
        visit([&](const CrashImage& image) {
            std::string state;
            for (const std::uint64_t offset : offsets) {
                char letter = '\0';
                image.content.read(offset, &letter, 1);
                state += letter == '\0' ? '-' : letter;
            }
            found.insert(image.named ? state : "no file");
        });
        return found;
    }
    [[nodiscard]] std::set<std::uint64_t> sizes() const
    {
        std::set<std::uint64_t> found;
        visit([&](const CrashImage& image) { found.insert(image.content.size_bytes()); });
        return found;
    }
    [[nodiscard]] const CrashModel& model() const { return model_; }

private:
    Litmus& put(EventKind kind, char letter, std::uint64_t offset, std::uint64_t size, std::uint32_t thread)
    {
        const std::string bytes(size, letter);
        model_.apply({kind, thread, offset, size, 0, reinterpret_cast<const std::byte*>(bytes.data())});
        return *this;
    }
    void visit(const std::function<void(const CrashImage&)>& look) const
    {
        std::mt19937_64 random(1);
        for_each_image(model_, {1 << 20, 1000}, random, [&](const CrashImage& image) {
            look(image);
            return true;
        });
    }

    CrashModel model_;
};

using States = std::set<std::string>;

TEST(CrashModelLine, TwoStoresToOneLinePersistInOrder)
{
    const Litmus litmus = Litmus(Profile::cache_line).store('a', 0).store('b', 8);
    EXPECT_EQ(litmus.states({0, 8}), (States{"--", "a-", "ab"}));
}

TEST(CrashModelLine, StoresToTwoLinesPersistInAnyOrder)
{
    const Litmus litmus = Litmus(Profile::cache_line).store('a', 0).store('b', 64);
    EXPECT_EQ(litmus.states({0, 64}), (States{"--", "a-", "-b", "ab"}));
}

TEST(CrashModelLine, AWriteBackWithoutAFencePromisesNothing)
{
    const Litmus litmus = Litmus(Profile::cache_line).store('a', 0).write_back(0).store('b', 64);
    EXPECT_EQ(litmus.states({0, 64}), (States{"--", "a-", "-b", "ab"}));
}

TEST(CrashModelLine, AFenceWithoutAWriteBackPromisesNothing)
{
    const Litmus litmus = Litmus(Profile::cache_line).store('a', 0).fence().store('b', 64);
    EXPECT_EQ(litmus.states({0, 64}), (States{"--", "a-", "-b", "ab"}));
}

TEST(CrashModelLine, AWriteBackAndAFenceMakeALineDurable)
{
    const Litmus litmus = Litmus(Profile::cache_line).store('a', 0).write_back(0).fence().store('b', 64);
    EXPECT_EQ(litmus.states({0, 64}), (States{"a-", "ab"}));
}

TEST(CrashModelLine, AStoreAfterTheWriteBackIsNotCovered)
{
    const Litmus litmus = Litmus(Profile::cache_line).store('a', 0).write_back(0).store('b', 8).fence();
    EXPECT_EQ(litmus.states({0, 8}), (States{"a-", "ab"}));
}

TEST(CrashModelLine, TheFenceOfAnotherThreadDoesNotCount)
{
    const Litmus other = Litmus(Profile::cache_line).store('a', 0).write_back(0, 8, 1).fence(2);
    EXPECT_EQ(other.states({0}), (States{"-", "a"}));
    const Litmus own = Litmus(Profile::cache_line).store('a', 0, 8, 1).write_back(0, 8, 2).fence(2);
    EXPECT_EQ(own.states({0}), (States{"a"})) << "the thread that stored does not matter, the one that writes back does";
}

TEST(CrashModelLine, ANonTemporalStoreIsDurableAtItsThreadsFence)
{
    EXPECT_EQ(Litmus(Profile::cache_line).nontemporal('a', 0).fence().states({0, 56}), (States{"aa"}));
    EXPECT_EQ(Litmus(Profile::cache_line).nontemporal('a', 0).fence(2).states({0, 56}).count("--"), 1u);
}

TEST(CrashModelLine, NonTemporalStoresHaveNoOrderEvenInOneLine)
{
    const Litmus litmus = Litmus(Profile::cache_line).nontemporal('a', 0, 8).nontemporal('b', 8, 8);
    EXPECT_EQ(litmus.states({0, 8}), (States{"--", "a-", "-b", "ab"}));
}

TEST(CrashModelLine, AStoreWiderThanAWordTearsBetweenWords)
{
    const Litmus litmus = Litmus(Profile::cache_line).store('a', 0, 24);
    EXPECT_EQ(litmus.states({0, 8, 16}), (States{"---", "a--", "-a-", "--a", "aa-", "a-a", "-aa", "aaa"}));
}

TEST(CrashModelLine, AWordDoesNotTear)
{
    const Litmus litmus = Litmus(Profile::cache_line).store('a', 0);
    EXPECT_EQ(litmus.states({0, 7}), (States{"--", "aa"}));
}

TEST(CrashModelLine, AKillLeavesStoresReadableAndNotDurable)
{
    Litmus litmus = Litmus(Profile::cache_line).store('a', 0).write_back(0).kill();
    char letter = '\0';
    litmus.model().visible().content.read(0, &letter, 1);
    EXPECT_EQ(letter, 'a');
    EXPECT_EQ(litmus.states({0}), (States{"-", "a"}));
    litmus.fence();
    EXPECT_EQ(litmus.states({0}), (States{"-", "a"})) << "the write back died with its process";
    litmus.write_back(0).fence();
    EXPECT_EQ(litmus.states({0}), (States{"a"}));
}

TEST(CrashModelPersistentCaches, StoresAreDurableInProgramOrder)
{
    const Litmus litmus = Litmus(Profile::persistent_caches).store('a', 0).store('b', 64).store('c', 128);
    EXPECT_EQ(litmus.states({0, 64, 128}), (States{"ab-", "abc"})) << "only the newest can be missing";
}

TEST(CrashModelPersistentCaches, OnlyTheNewestStoreCanBeTorn)
{
    const Litmus litmus = Litmus(Profile::persistent_caches).store('a', 0, 16).store('b', 64, 16);
    EXPECT_EQ(litmus.states({0, 8, 64, 72}), (States{"aa--", "aab-", "aa-b", "aabb"}));
}

TEST(CrashModelPersistentCaches, NonTemporalStoresStillNeedAFence)
{
    const Litmus before = Litmus(Profile::persistent_caches).nontemporal('a', 0, 8).store('b', 64).store('c', 128);
    EXPECT_EQ(before.states({0, 64}), (States{"-b", "ab"}));
    const Litmus after = Litmus(Profile::persistent_caches).nontemporal('a', 0, 8).fence().store('b', 64).store('c', 128);
    EXPECT_EQ(after.states({0, 64}), (States{"ab"}));
}

TEST(CrashModelPage, SectorsOfAWriteLandInAnyOrder)
{
    const Litmus litmus = Litmus(Profile::page).block('a', 0);
    EXPECT_EQ(litmus.states({0, 512}), (States{"--", "a-", "-a", "aa"}));
    EXPECT_EQ(litmus.states({0, 511}), (States{"--", "aa"})) << "a sector does not tear";
}

TEST(CrashModelPage, AnEarlierWriteMayLandAndALaterOneToTheSameSectorNot)
{
    const Litmus litmus = Litmus(Profile::page).block('a', 0).block('b', 0);
    EXPECT_EQ(litmus.states({0}), (States{"-", "a", "b"}));
}

TEST(CrashModelPage, ASectorThatWasUnderWayMayBeNonsense)
{
    Litmus litmus = Litmus(Profile::page, PageCopy::at_one_instant, CutSector::or_nonsense).block('a', 0);
    EXPECT_EQ(litmus.states({0}).size(), 3U) << "old, new, or neither";
    EXPECT_EQ(litmus.states({page_bytes}), (States{"-"})) << "no write was under way there";
    litmus.apply(EventKind::sync);
    EXPECT_EQ(litmus.states({0}), (States{"a"}));
}

TEST(CrashModelPage, ASyncMakesAllWritesBeforeItDurable)
{
    const Litmus litmus = Litmus(Profile::page).block('a', 0).block('b', page_bytes).apply(EventKind::sync).block('c', 0);
    EXPECT_EQ(litmus.states({0, page_bytes}), (States{"ab", "cb"}));
}

TEST(CrashModelPage, AFailedSyncLeavesPagesCleanAndNotDurable)
{
    Litmus litmus = Litmus(Profile::page).block('a', 0).apply(EventKind::sync_failed).apply(EventKind::sync);
    EXPECT_EQ(litmus.states({0}), (States{"-", "a"})) << "a later sync that succeeds proves nothing";
    litmus.block('b', 0).apply(EventKind::sync);
    EXPECT_EQ(litmus.states({0}), (States{"b"})) << "unless the page was written again";
}

TEST(CrashModelMappedPage, ASectorLandsAsItWasAtSomeInstant)
{
    const Litmus litmus = Litmus(Profile::page).store('a', 0).store('b', 64).store('c', 0);
    EXPECT_EQ(litmus.states({0, 64}), (States{"--", "a-", "ab", "cb"})) << "never a later store without the ones before it";
}

TEST(CrashModelMappedPage, SectorsOfAPageLandAsTheyWereAtDifferentInstants)
{
    const Litmus litmus = Litmus(Profile::page).store('a', 0).store('b', 512);
    EXPECT_EQ(litmus.states({0, 512}), (States{"--", "a-", "-b", "ab"}));
}

TEST(CrashModelMappedPage, AnInstantMayLieInsideAWideStore)
{
    EXPECT_EQ(Litmus(Profile::page).store('a', 0, 16).states({0, 8}), (States{"--", "a-", "-a", "aa"}));
    EXPECT_EQ(Litmus(Profile::page).store('a', 4, 8).states({4, 8}), (States{"--", "a-", "-a", "aa"}));
    EXPECT_EQ(Litmus(Profile::page).store('a', 8, 8).states({8, 15}), (States{"--", "aa"}));
}

TEST(CrashModelMappedPage, ASyncMakesAllStoresBeforeItDurable)
{
    const Litmus litmus = Litmus(Profile::page).store('a', 0).store('b', 512).write_back(0).apply(EventKind::sync).store('c', 8);
    EXPECT_EQ(litmus.states({0, 512, 8}), (States{"ab-", "abc"}));
}

TEST(CrashModelMappedPage, AWriteBackAndAFencePromiseNothing)
{
    const Litmus litmus = Litmus(Profile::page).store('a', 0).write_back(0).fence();
    EXPECT_EQ(litmus.states({0}), (States{"-", "a"}));
}

TEST(CrashModelPageInMotion, WordsOfAPageLandAsTheyWereAtDifferentInstants)
{
    const Litmus litmus = Litmus(Profile::page, PageCopy::word_by_word).store('a', 0).store('b', 8).store('c', 0);
    EXPECT_EQ(litmus.states({0, 8}), (States{"--", "-b", "a-", "ab", "c-", "cb"}));
}

TEST(CrashModelPageInMotion, ASyncMakesAllStoresBeforeItDurable)
{
    Litmus litmus = Litmus(Profile::page, PageCopy::word_by_word).store('a', 0).apply(EventKind::sync).store('b', 8);
    EXPECT_EQ(litmus.states({0, 8}), (States{"a-", "ab"}));
    litmus.apply(EventKind::sync_failed).apply(EventKind::sync);
    EXPECT_EQ(litmus.states({0, 8}), (States{"a-", "ab"})) << "after a sync that failed a later one proves nothing";
}

TEST(CrashModelFile, ASizeIsDurableOnceSynced)
{
    Litmus litmus = Litmus(Profile::page).apply(EventKind::resize, 2 * file_bytes);
    EXPECT_EQ(litmus.sizes(), (std::set<std::uint64_t>{file_bytes, 2 * file_bytes}));
    litmus.apply(EventKind::sync);
    EXPECT_EQ(litmus.sizes(), (std::set<std::uint64_t>{2 * file_bytes}));
}

TEST(CrashModelFile, ANameIsDurableOnceItsDirectoryIsSynced)
{
    CrashModel model(Profile::page, CrashImage{PageMap{}, false});
    model.apply({EventKind::resize, 1, 0, 0, file_bytes, nullptr});
    model.apply({EventKind::name, 1, 0, 0, 0, nullptr});
    model.apply({EventKind::sync, 1, 0, 0, 0, nullptr});
    EXPECT_EQ(model.units().size(), 1u) << "the sync of the file does not name it";
    model.apply({EventKind::name_sync, 1, 0, 0, 0, nullptr});
    EXPECT_TRUE(model.units().empty());
}

TEST(CrashModelFile, AFileWithoutANameGoesWithItsProcess)
{
    CrashModel model(Profile::page, CrashImage{PageMap{}, false});
    model.apply({EventKind::resize, 1, 0, 0, file_bytes, nullptr});
    model.apply({EventKind::sync, 1, 0, 0, 0, nullptr});
    model.kill();
    EXPECT_EQ(model.visible().content.size_bytes(), 0u);
}

TEST(CrashModelProcess, WhatWasHandedOverStays)
{
    const Litmus litmus = Litmus(Profile::process).block('a', 0).store('b', page_bytes).store('c', 2 * page_bytes);
    EXPECT_EQ(litmus.states({0, page_bytes, 2 * page_bytes}), (States{"ab-", "abc"}));
}

TEST(CrashModelRados, OperationsOnOneObjectAreAppliedInOrderAndOnTwoInAnyOrder)
{
    const Litmus litmus = Litmus(Profile::rados).block('a', 0).block('b', page_bytes).block('c', object_bytes);
    EXPECT_EQ(litmus.states({0, page_bytes, object_bytes}), (States{"---", "--c", "a--", "a-c", "ab-", "abc"}));
}

TEST(CrashModelRados, AnOperationIsAppliedWholeOrNotAtAll)
{
    const Litmus litmus = Litmus(Profile::rados).block('a', 0, 2 * page_bytes);
    EXPECT_EQ(litmus.states({0, sector_bytes, page_bytes}), (States{"---", "aaa"}));
}

TEST(CrashModelRados, ASyncMakesAllObjectsDurableAndAChangeOfTheHeadTheFirst)
{
    Litmus litmus = Litmus(Profile::rados).block('a', 0).block('b', object_bytes).apply(EventKind::head_changed);
    EXPECT_EQ(litmus.states({0, object_bytes}), (States{"a-", "ab"}));
    litmus.apply(EventKind::sync);
    EXPECT_EQ(litmus.states({0, object_bytes}), (States{"ab"}));
}

TEST(CrashModelRados, TheAgentOfAKilledProcessWritesWhatItWasHanded)
{
    EXPECT_EQ(Litmus(Profile::rados).block('a', 0).block('b', object_bytes).kill().states({0, object_bytes}), (States{"ab"}));
}

TEST(CrashModelRados, AnOperationThatWasNotHandedOverGoesWithItsProcess)
{
    CrashModel model(Profile::rados, CrashImage{PageMap(file_bytes), true});
    const std::string bytes(page_bytes, 'a');
    model.apply({EventKind::block_write, 1, 0, page_bytes, 1, reinterpret_cast<const std::byte*>(bytes.data())});
    model.kill();
    model.apply({EventKind::hand_over, 1, 0, 0, 0, nullptr});
    EXPECT_TRUE(model.units().empty());
    EXPECT_TRUE(model.visible().content.equals(0, std::vector<std::byte>(page_bytes).data(), page_bytes));
}

TEST(CrashModelUnits, AStoreOfWhatIsDurableAnywayMakesNoUnit)
{
    const Litmus litmus = Litmus(Profile::cache_line).store('a', 0).write_back(0).fence().store('a', 0);
    EXPECT_TRUE(litmus.model().units().empty());
}

}  // namespace
}  // namespace stillpoint::sim
