// Salvages of damaged pools of objects, against a model: the objects of the whole pool, by their versions, which no two share.
//   - Every object whose header and type are whole is kept, with its bytes as the damaged file has them.
//   - No object is kept that was none, and none with another type or size.
//   - A pointer is as it was, or null and listed. One whose own bytes were damaged may lead elsewhere: then counts are in doubt.
//   - There is the root that was, or none; the new pool passes a check.
//
// 40 pools of each kind by default, fewer under AddressSanitizer (support/cases.hpp); STILLPOINT_SALVAGES=10000 takes as many.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engines/breeze/offline.hpp"
#include "engines/breeze/salvage.hpp"
#include "engines/breeze/salvage_holder.hpp"
#include "media/open.hpp"
#include "support/cases.hpp"
#include "support/breeze_lists.hpp"
#include "support/patched_medium.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::breeze::testing {
namespace {

using stillpoint::testing::PatchedFile;
using stillpoint::testing::PatchedMedium;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t first_seed = 20'261'128;

std::uint64_t pools_to_salvage()
{
    const char* const wish = std::getenv("STILLPOINT_SALVAGES");
    return wish != nullptr ? std::strtoull(wish, nullptr, 10) : test::cases(40, 3);
}

/// Pools that promise no more than a process's death: no test waits for a disk.
class ProcessMedium final : public test::CrashMedium {
public:
    using test::CrashMedium::CrashMedium;
    Durability durability() const noexcept override { return Durability::process; }
};

/// A strong or weak pointer: what it leads to, by version, and how far into it.
struct Lead {
    std::uint64_t version;
    std::uint64_t inside;
    bool operator==(const Lead&) const = default;
};
struct Seen {
    std::uint64_t block;
    std::uint32_t type;
    Bytes bytes;
    std::map<std::uint64_t, std::optional<Lead>> strong;  ///< by place in the object; empty: null
    std::map<std::uint64_t, std::optional<Lead>> weak;
};
struct SeenPool {
    std::map<std::uint64_t, Seen> objects;  ///< by version
    std::uint64_t root = 0;  ///< a version
    std::uint64_t holder = 0;  ///< a version
    /// Of all objects, with those that an opening frees after a crash: the references that each counts, by version.
    std::map<std::uint64_t, std::uint64_t> before_frees;
};

Result<Pool> open_file(const std::string& path)
{
    MediumOptions wanted;
    wanted.path = path;
    auto medium = open_medium_read_only(wanted, true);
    return medium ? Pool::open(std::move(*medium), EngineFormat{}, true) : Result<Pool>(pass_on(medium.error()));
}

SeenPool look_into(const Pool& pool)
{
    SeenPool seen;
    FirstFinding first;
    auto opened = open_copy(pool, first, nullptr);
    EXPECT_TRUE(opened) << opened.error().text();
    EXPECT_FALSE(first.first) << first.first->text();
    PoolParts& parts = (*opened)->parts();
    const auto version_at = [&](std::uint64_t block) { return parts.memory.object(block).version; };
    for (std::uint64_t number = 0; number < parts.zones.count(); ++number) {
        parts.zones.visit_blocks(number, [&](std::uint64_t block) {
            if (parts.allocated(block)) {
                seen.before_frees[version_at(block)] = references_in(parts.memory.object(block).counts);
            }
        });
    }
    parts.counts.drain();
    for (std::uint64_t number = 0; number < parts.zones.count(); ++number) {
        parts.zones.visit_blocks(number, [&](std::uint64_t block) {
            if (!parts.allocated(block)) {
                return;
            }
            const std::byte* const object = parts.bytes_of(block);
            const Type& type = *parts.type_of(block);
            const std::uint64_t size = parts.memory.object(block).size;
            Seen one{block, type.id, Bytes(object, object + size), {}, {}};
            type.visit_pointers(object, size, [&](std::uint64_t place, const PointerRun& run) {
                const std::uint64_t pointer = word_at(object + place);
                const bool is_weak = run.kind == PointerKind::weak;
                const std::uint64_t target = pointer == 0 ? 0 : parts.target_of(pointer);
                std::optional<Lead> lead;
                if (target != 0 && parts.allocated(target) && (!is_weak || word_at(object + place + 8) == version_at(target))) {
                    lead = Lead{version_at(target), pointer - parts.base() - target};
                }
                (is_weak ? one.weak : one.strong)[place] = lead;
            });
            if (type.name == SalvageHolder::type_name) {
                seen.holder = version_at(block);
            }
            EXPECT_TRUE(seen.objects.emplace(version_at(block), one).second) << "two objects have the version " << version_at(block);
        });
    }
    const std::uint64_t root = parts.memory.header().root;
    seen.root = root == 0 ? 0 : version_at(root);
    return seen;
}

enum class Kind : std::uint8_t { closed, crashed, journaled };

class BreezeSalvages : public ::testing::TestWithParam<Kind> {
protected:
    /// The file of a pool of lists after some transactions.
    static Bytes made(Kind kind)
    {
        std::mt19937_64 random(first_seed);
        const bool has_journal = kind == Kind::journaled;
        const Pool::CreateOptions options{pool_format(has_journal), image_bytes, image_bytes, place(0), &BreezePool::format};
        const auto memory = std::make_shared<test::CrashMemory>(Pool::file_bytes_for(options).value());
        EXPECT_TRUE(Pool::create(std::make_unique<ProcessMedium>(memory), options));
        auto opened = Pool::open(std::make_unique<ProcessMedium>(memory), options.format, false, true);
        EXPECT_TRUE(opened) << opened.error().text();
        auto pool = BreezePool::open(std::move(*opened), {.base_address = place(0), .threads = 1, .counts_in_background = false});
        EXPECT_TRUE(pool) << pool.error().text();
        Model model;
        for (int i = 0; i < 400; ++i) {
            EXPECT_TRUE(run_transaction(**pool, model, random));
            if (i % 20 == 0) {
                (*pool)->parts().counts.pass();
            }
        }
        if (kind != Kind::crashed) {
            EXPECT_TRUE((*pool)->close());
            return Bytes(memory->now(), memory->now() + memory->size());
        }
        // A transaction has made an object and changed another one, and does not end.
        Transaction& transaction = (*pool)->begin();
        Lists* const all = lists_of(**pool);
        auto* const node = reinterpret_cast<Node*>(transaction.allocate(NVM_TYPE_ID(Node), sizeof(Node), {}).value());
        node->next = all->heads[0];
        set(**pool, transaction, all->heads[0], node);
        Bytes content(memory->now(), memory->now() + memory->size());
        transaction.roll_back();
        (*pool)->end(transaction);
        return content;
    }

    void SetUp() override
    {
        file_ = std::make_shared<PatchedFile>(made(GetParam()));
        const auto pool = open();
        ASSERT_TRUE(pool) << pool.error().text();
        image_ = pool->segments().front().first_file_page * page_bytes;
        whole_ = look_into(*pool);
        ASSERT_GT(whole_.objects.size(), 40U);
        std::memcpy(&header_, file_->bytes().data() + image_, sizeof header_);
        file_->undo();
    }
    [[nodiscard]] Result<Pool> open() const { return Pool::open(std::make_unique<PatchedMedium>(file_), EngineFormat{}, true); }

    /// Flips bits of the image, of one kind mostly. Their places in it.
    std::set<std::uint64_t> damage(std::mt19937_64& random)
    {
        std::set<std::uint64_t> damaged;
        const Geometry geometry = Geometry::of(image_bytes);
        const std::uint64_t kind = random() % 12;
        for (std::uint64_t left = 1 + random() % 5; left != 0; --left) {
            auto chosen = whole_.objects.begin();
            std::advance(chosen, random() % whole_.objects.size());
            const Seen& object = chosen->second;
            std::uint64_t place = object.block + random() % (object_header_bytes + object.bytes.size());
            if (kind < 5) {
                place = object.block + random() % object_header_bytes;
            } else if (kind < 8 && !object.strong.empty()) {
                auto pointer = object.strong.begin();
                std::advance(pointer, random() % object.strong.size());
                place = object.block + object_header_bytes + pointer->first + random() % 8;
            } else if (kind == 8) {
                place = types_offset + random() % header_.types_bytes;
            } else if (kind == 9 && GetParam() != Kind::crashed) {
                place = geometry.log_headers_offset + random() % (logs_max * sizeof(LogHeader));
            } else if (kind == 10 && GetParam() != Kind::crashed) {
                place = offsetof(PoolHeader, generation) + random() % (offsetof(PoolHeader, bases) + 16 - offsetof(PoolHeader, generation));
            }
            if (damaged.insert(place).second) {
                file_->flip_bit((image_ + place) * 8 + random() % 8);
            }
        }
        return damaged;
    }
    static bool has_any(const std::set<std::uint64_t>& damaged, std::uint64_t begin, std::uint64_t end)
    {
        const auto first = damaged.lower_bound(begin);
        return first != damaged.end() && *first < end;
    }

    void judge(const ObjectSalvage& report, const SeenPool& now, const std::set<std::uint64_t>& damaged) const;
    void judge_object(const Seen& is, std::uint64_t version, const ObjectSalvage& report, const SeenPool& now,
                      const std::set<std::uint64_t>& damaged) const;
    /// The damage cost the object as many pointers as it brought, or changed its count; or the count has room for one: at a crash it may
    /// have references yet of objects that had died.
    bool count_hides(std::uint64_t version, const SeenPool& now, const std::set<std::uint64_t>& damaged) const;
    void judge_lists(const ObjectSalvage& report, const SeenPool& now) const;
    void judge_root(const SeenPool& now, const std::set<std::uint64_t>& damaged, bool types_are_whole) const;
    std::uint64_t salvage_one(std::uint64_t seed);

    std::shared_ptr<PatchedFile> file_;
    SeenPool whole_;
    PoolHeader header_{};
    std::uint64_t image_ = 0;
    test::TemporaryDirectory directory_;
    std::uint64_t lost_ = 0;
    std::uint64_t cleared_ = 0;
    std::uint64_t doubtful_ = 0;
    std::uint64_t refused_ = 0;
    std::uint64_t held_ = 0;
    std::uint64_t roots_lost_ = 0;
};

std::uint64_t references_of(const SeenPool& pool, std::uint64_t version)
{
    std::uint64_t references = pool.root == version ? 1 : 0;
    for (const auto& [owner, object] : pool.objects) {
        for (const auto& [place, lead] : object.strong) {
            references += owner != pool.holder && lead && lead->version == version ? 1U : 0U;
        }
    }
    return references;
}

bool BreezeSalvages::count_hides(std::uint64_t version, const SeenPool& now, const std::set<std::uint64_t>& damaged) const
{
    const std::uint64_t header = whole_.objects.at(version).block;
    const std::uint64_t may_have = std::max(references_of(whole_, version), whole_.before_frees.at(version));
    return references_of(now, version) <= may_have || has_any(damaged, header, header + object_header_bytes);
}

void BreezeSalvages::judge_object(const Seen& is, std::uint64_t version, const ObjectSalvage& report, const SeenPool& now,
                                  const std::set<std::uint64_t>& damaged) const
{
    const auto before = whole_.objects.find(version);
    ASSERT_NE(before, whole_.objects.end()) << "an object that never was has the version " << version;
    const Seen& was = before->second;
    ASSERT_EQ(is.type, was.type);
    ASSERT_EQ(is.bytes.size(), was.bytes.size());
    const std::uint64_t begin = was.block + object_header_bytes;
    std::set<std::uint64_t> pointer_bytes;
    for (const auto* const pointers : {&was.strong, &was.weak}) {
        for (const auto& [place, lead] : *pointers) {
            const bool is_damaged = has_any(damaged, begin + place, begin + place + (pointers == &was.weak ? sizeof(nvm_weak) : 8));
            const auto& found = (pointers == &was.weak ? is.weak : is.strong).at(place);
            for (std::uint64_t byte = 0; byte < (pointers == &was.weak ? sizeof(nvm_weak) : 8); ++byte) {
                pointer_bytes.insert(place + byte);
            }
            if (found == lead) {
                continue;
            }
            const bool is_listed = std::ranges::any_of(report.cleared, [&](const auto& one) {
                return one.object_before == was.block && one.offset == place && one.object == is.block;
            });
            if (!found) {
                EXPECT_TRUE(pointers == &was.weak || is_listed) << "a pointer is null now, and not listed";
                EXPECT_TRUE(is_damaged ||
                            std::ranges::any_of(
                                report.lost, [&](const auto& one) { return one.place_before == whole_.objects.at(lead->version).block; }))
                    << "a sound pointer is null now";
                continue;
            }
            // A damaged pointer may keep an object that had died, and weak pointers to it lead there again.
            const bool leads_to_dead = !whole_.objects.contains(found->version) && whole_.before_frees.contains(found->version);
            EXPECT_TRUE(is_damaged || (leads_to_dead && pointers == &was.weak)) << "a pointer leads elsewhere";
            if (leads_to_dead) {
                continue;
            }
            // No checksum has the bytes of a pointer: one into another object shows in the counts.
            EXPECT_TRUE((lead && found->version == lead->version) || count_hides(found->version, now, damaged) ||
                        std::ranges::any_of(report.doubtful,
                                            [&](const auto& one) { return one.object_before == whole_.objects.at(found->version).block; }))
                << "a pointer leads to another object, and that is not in doubt";
        }
    }
    for (std::uint64_t byte = 0; byte < is.bytes.size(); ++byte) {
        EXPECT_TRUE(is.bytes[byte] == was.bytes[byte] || pointer_bytes.contains(byte) || damaged.contains(begin + byte)) << byte;
    }
}

void BreezeSalvages::judge_lists(const ObjectSalvage& report, const SeenPool& now) const
{
    EXPECT_EQ(report.objects_kept + (report.holder != 0 ? 1 : 0), now.objects.size());
    EXPECT_EQ(report.holder != 0, now.holder != 0);
    if (now.holder != 0) {
        EXPECT_EQ(now.objects.at(now.holder).strong.size(), report.held);
        EXPECT_EQ(now.objects.at(now.holder).block, report.holder);
    }
    EXPECT_EQ(report.root_is_lost, now.root == 0 && whole_.root != 0);
}

void BreezeSalvages::judge(const ObjectSalvage& report, const SeenPool& now, const std::set<std::uint64_t>& damaged) const
{
    judge_lists(report, now);
    for (const auto& [version, is] : now.objects) {
        // Where the damage hit what led to a dead object, nothing says that it was dead.
        const bool was_dead = !whole_.objects.contains(version) && whole_.before_frees.contains(version);
        if (version != now.holder && !was_dead) {
            judge_object(is, version, report, now, damaged);
        }
    }
    const bool types_are_whole = !has_any(damaged, types_offset, types_offset + header_.types_bytes);
    for (const auto& [version, was] : whole_.objects) {
        const bool is_whole = types_are_whole && !has_any(damaged, was.block, was.block + object_header_bytes);
        EXPECT_TRUE(!is_whole || now.objects.contains(version)) << "a sound object is gone: it lay at byte " << was.block;
        const bool is_listed = std::ranges::any_of(report.lost, [&](const auto& one) { return one.place_before == was.block; });
        EXPECT_NE(is_listed, now.objects.contains(version)) << "the object that lay at byte " << was.block;
    }
    judge_root(now, damaged, types_are_whole);
}

void BreezeSalvages::judge_root(const SeenPool& now, const std::set<std::uint64_t>& damaged, bool types_are_whole) const
{
    const std::uint64_t place = offsetof(PoolHeader, root);
    const std::uint64_t block = whole_.objects.at(whole_.root).block;
    const bool word_is_whole = !has_any(damaged, place, place + sizeof(std::uint64_t));
    const bool object_is_whole = types_are_whole && !has_any(damaged, block, block + object_header_bytes);
    if (now.root == 0) {
        // A pointer that leads to it now, and did not before, hides that the root does.
        EXPECT_TRUE(!word_is_whole || !object_is_whole || references_of(now, whole_.root) >= references_of(whole_, whole_.root))
            << "the root was sound, and is given up";
    } else if (now.root != whole_.root) {
        EXPECT_TRUE(!word_is_whole && count_hides(now.root, now, damaged)) << "the root is another object";
    }
}

std::uint64_t BreezeSalvages::salvage_one(std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    const auto damaged = damage(random);
    const Bytes before = file_->bytes();
    const std::string path = directory_.file("new.pool");
    const auto pool = open();
    EXPECT_TRUE(pool) << pool.error().text();
    const auto report = salvage_objects(*pool, {path, 0}, nullptr);
    EXPECT_TRUE(file_->bytes() == before) << "the damaged pool has changed";
    file_->undo();
    if (!report) {
        // Only where no pointer can be followed.
        EXPECT_TRUE(has_any(damaged, 0, page_bytes)) << report.error().text();
        EXPECT_EQ(report.error().code, SP_E_POOL_CORRUPT) << report.error().text();
        ++refused_;
        return 0;
    }
    const auto made = open_file(path);
    EXPECT_TRUE(made) << made.error().text();
    judge(*report, look_into(*made), damaged);
    std::filesystem::remove(path);
    lost_ += report->lost.size();
    cleared_ += report->cleared.size();
    doubtful_ += report->doubtful.size();
    held_ += report->held;
    roots_lost_ += report->root_is_lost ? 1U : 0U;
    return report->objects_kept;
}

TEST_P(BreezeSalvages, AWholePoolStaysAsItIs)
{
    const auto pool = open();
    ASSERT_TRUE(pool);
    const auto report = salvage_objects(*pool, {directory_.file("new.pool"), 0}, nullptr);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_TRUE(report->is_whole());
    EXPECT_EQ(report->was_closed, GetParam() != Kind::crashed);
    EXPECT_EQ(report->objects_kept, whole_.objects.size());
    const auto made = open_file(directory_.file("new.pool"));
    ASSERT_TRUE(made);
    EXPECT_EQ(made->facts().image_bytes, image_bytes);
    judge(*report, look_into(*made), {});
}

TEST_P(BreezeSalvages, OfDamagedPoolsKeepWhatIsSoundAndNothingElse)
{
    std::uint64_t kept = 0;
    const std::uint64_t pools = pools_to_salvage();
    for (std::uint64_t i = 0; i < pools && !HasFailure(); ++i) {
        SCOPED_TRACE(::testing::Message() << "seed " << first_seed + i);
        kept += salvage_one(first_seed + i);
    }
    std::printf(
        "salvages: %llu pools, %llu refused: %llu objects kept, %llu lost, %llu references cleared, %llu in doubt, %llu held, %llu roots "
        "lost\n",
        static_cast<unsigned long long>(pools), static_cast<unsigned long long>(refused_), static_cast<unsigned long long>(kept),
        static_cast<unsigned long long>(lost_), static_cast<unsigned long long>(cleared_), static_cast<unsigned long long>(doubtful_),
        static_cast<unsigned long long>(held_), static_cast<unsigned long long>(roots_lost_));
    EXPECT_GT(lost_, 0U);
    EXPECT_GT(cleared_, 0U);
    EXPECT_GT(doubtful_, 0U);
    EXPECT_GT(held_, 0U);
    EXPECT_LT(refused_, pools / 4);
}

INSTANTIATE_TEST_SUITE_P(OfEachKind, BreezeSalvages, ::testing::Values(Kind::closed, Kind::crashed, Kind::journaled));

}  // namespace
}  // namespace stillpoint::breeze::testing
