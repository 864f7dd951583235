// genome of STAMP (IISWC 2008, §III.B.2): puts a gene together from many segments of it, which overlap.
//
// 1. Every segment goes into a hash map, some of them in a transaction: what remains are the different ones.
// 2. Each of these becomes an entry, and the hash of each of its beginnings goes into a second map.
// 3. By overlap, from the longest to the shortest one, threads look for entries that begin as others end, and link both in a transaction.
// 4. One thread writes the gene that the chain spells.
//
// The gene is random, so no two of its parts of nearly a segment's length are alike, and the input has the segment of each position at
// least once: the result is the gene itself.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../../harness/random.hpp"
#include "../../transactions/hash_table.hpp"
#include "../../workloads/makers.hpp"
#include "../text_hash.hpp"
#include "programs.hpp"

namespace bench {
namespace {

using namespace transactional;

struct Parameters {
    std::uint32_t gene_length;  ///< a multiple of 8
    std::uint32_t segment_length;
    std::uint64_t segments;
};
constexpr std::uint64_t segments_each = 12;  // in a transaction of step 1

/// One of the different segments. Chains are told by their ends: the first entry knows the last one, the last one the first.
struct Entry {
    std::uint64_t segment;
    Entry* next;
    std::uint64_t overlap;  ///< with the next one
    std::uint64_t has_previous;
    Entry* first;  ///< of the last entry of a chain
    Entry* last;   ///< of the first one
};
struct State {
    std::uint64_t entries;
    std::uint64_t gene_length;  ///< 0: it is not written yet
};

class Genome final : public TransactionalJob {
public:
    Genome(const Shape& shape, const Parameters& parameters) : TransactionalJob(shape), of_(parameters) {}

private:
    void make_input() override
    {
        Random random(31);
        gene_.resize(of_.gene_length);
        std::generate(gene_.begin(), gene_.end(), [&random] { return "acgt"[random.below(4)]; });
        positions_.resize(std::max<std::uint64_t>(of_.segments, positions()));
        for (std::uint32_t i = 0; i < positions_.size(); ++i) {
            positions_[i] = i < positions() ? i : static_cast<std::uint32_t>(random.below(positions()));
        }
        shuffle(positions_, random);
    }
    void find_memory() override
    {
        const std::uint64_t start_buckets = positions() * of_.segment_length;
        different_ = {M::named<List<std::uint64_t>>("bench.genome.different", positions()), positions()};
        starts_ = {M::named<List<std::uint64_t>>("bench.genome.starts", start_buckets), start_buckets};
        entries_ = M::named<Entry>("bench.genome.entries", positions());
        gene_words_ = M::named<std::uint64_t>("bench.genome.gene", of_.gene_length / sizeof(std::uint64_t));
        state_ = M::named<State>("bench.genome.state");
    }
    void clear() override
    {
        different_.clear<M>();
        starts_.clear<M>();
        M::atomically([&](auto& tx) {
            tx.write(state_->entries, std::uint64_t{0});
            tx.write(state_->gene_length, std::uint64_t{0});
        });
    }

    void run(Context& context) override
    {
        remove_duplicates(context);
        wait_for_all();
        const Part buckets = part_of(context.thread, different_.bucket_count());
        for (std::uint64_t i = buckets.first; i < buckets.last; ++i) {
            different_.bucket_at(i).for_each([&](std::uint64_t, std::uint64_t segment) { make_entry(context, segment); });
        }
        wait_for_all();
        const Part entries = part_of(context.thread, state_->entries);
        for (std::uint32_t overlap = of_.segment_length - 1; overlap > 0; --overlap) {
            for (std::uint64_t i = entries.first; i < entries.last; ++i) {
                if (entries_[i].next == nullptr) {  // which this thread alone writes
                    link(context, entries_[i], overlap);
                }
            }
            wait_for_all();
        }
        if (context.thread == 0) {
            write_gene(context);
        }
    }

    void remove_duplicates(Context& context)
    {
        const Part part = part_of(context.thread, positions_.size());
        for (std::uint64_t first = part.first; first < part.last; first += segments_each) {
            context.changed_bytes += atomically(context, [&](auto& tx) {
                std::uint64_t added = 0;
                for (std::uint64_t i = first; i < std::min(first + segments_each, part.last); ++i) {
                    added += add_if_new(tx, i);
                }
                return added * sizeof(List<std::uint64_t>::Node);
            });
        }
    }
    template <Transaction Tx>
    bool add_if_new(Tx& tx, std::uint64_t segment)
    {
        std::uint64_t key = hash_of(text(segment));
        while (!different_.insert(tx, key, segment)) {
            if (text(tx.read(*different_.find(tx, key))) == text(segment)) {
                return false;
            }
            ++key;  // another one with this hash
        }
        return true;
    }

    void make_entry(Context& context, std::uint64_t segment)
    {
        Entry* const made = atomically(context, [&](auto& tx) {
            Entry* const entry = &entries_[add(tx, state_->entries, 1) - 1];
            tx.write(entry->segment, segment);
            tx.write(entry->next, static_cast<Entry*>(nullptr));
            tx.write(entry->overlap, std::uint64_t{0});
            tx.write(entry->has_previous, std::uint64_t{0});
            tx.write(entry->first, entry);
            tx.write(entry->last, entry);
            return entry;
        });
        std::uint64_t hash = empty_text_hash;
        for (std::uint32_t length = 1; length < of_.segment_length; ++length) {
            hash = hash_with(hash, text(segment)[length - 1]);
            atomically(context, [&](auto& tx) { starts_of(hash).insert(tx, key_of(*made, length), hash); });
        }
        context.changed_bytes += sizeof(Entry) + (of_.segment_length - 1) * sizeof(List<std::uint64_t>::Node);
    }
    [[nodiscard]] List<std::uint64_t>& starts_of(std::uint64_t hash) const { return starts_.bucket_at(hash % starts_.bucket_count()); }
    /// New entries come first, so that an insertion has a short way.
    [[nodiscard]] std::uint64_t key_of(const Entry& entry, std::uint32_t length) const
    {
        return std::uint64_t{length} << 32 | (UINT32_MAX - static_cast<std::uint64_t>(&entry - entries_));
    }
    [[nodiscard]] Entry& entry_of(std::uint64_t key) const { return entries_[UINT32_MAX - (key & UINT32_MAX)]; }

    /// Finds an entry that begins with the last `overlap` letters of this one.
    void link(Context& context, Entry& end, std::uint32_t overlap)
    {
        const std::string_view wanted = text(end.segment).substr(of_.segment_length - overlap);
        const std::uint64_t hash = hash_of(wanted);
        context.changed_bytes += atomically(context, [&](auto& tx) -> std::uint64_t {
            Entry* const first = tx.read(end.first);
            const auto is_wanted = [&](std::uint64_t key, std::uint64_t of_start) {
                if (key >> 32 != overlap || of_start != hash) {
                    return false;
                }
                const Entry& start = entry_of(key);
                return &start != first && tx.read(start.has_previous) == 0 && text(tx.read(start.segment)).substr(0, overlap) == wanted;
            };
            const auto found = starts_of(hash).find_if(tx, is_wanted);
            if (!found) {
                return 0;
            }
            Entry& start = entry_of(*found);
            Entry* const last = tx.read(start.last);
            tx.write(end.next, &start);
            tx.write(end.overlap, std::uint64_t{overlap});
            tx.write(start.has_previous, std::uint64_t{1});
            tx.write(last->first, first);
            tx.write(first->last, last);
            return 5 * sizeof overlap;
        });
    }

    void write_gene(Context& context)
    {
        constexpr std::size_t words_each = 64;
        std::string gene;
        for (std::uint64_t i = 0; i < state_->entries; ++i) {
            if (entries_[i].has_previous == 0) {
                gene += spelt_by(entries_[i]);
            }
        }
        const std::size_t words = std::min<std::size_t>(gene.size(), of_.gene_length) / sizeof(std::uint64_t);
        for (std::size_t first = 0; first < words; first += words_each) {
            atomically(context, [&](auto& tx) {
                for (std::size_t i = first; i < std::min(first + words_each, words); ++i) {
                    std::uint64_t word = 0;
                    std::memcpy(&word, gene.data() + i * sizeof word, sizeof word);
                    tx.write(gene_words_[i], word);
                }
            });
        }
        atomically(context, [&](auto& tx) { tx.write(state_->gene_length, std::uint64_t{gene.size()}); });
        context.changed_bytes += gene.size();
    }
    [[nodiscard]] std::string spelt_by(const Entry& first) const
    {
        std::string spelt(text(first.segment));
        for (const Entry* entry = &first; entry->next != nullptr; entry = entry->next) {
            spelt += text(entry->next->segment).substr(entry->overlap);
        }
        return spelt;
    }

    std::string fault_of_result() const override
    {
        if (std::string fault = fault_of_unfinished(); !fault.empty()) {
            return fault;
        }
        if (state_->gene_length != gene_.size() || std::memcmp(gene_words_, gene_.data(), gene_.size()) != 0) {
            return "a gene of " + std::to_string(state_->gene_length) + " letters was put together, and not the one that was cut";
        }
        return {};
    }
    /// Segments that are kept differ; entries are made of them; chains are whole; starts are those of entries.
    std::string fault_of_unfinished() const override
    {
        std::vector<std::string_view> kept;
        bool are_there = true;
        different_.for_each([&](std::uint64_t, std::uint64_t segment) {
            are_there = are_there && segment < positions_.size();
            kept.push_back(text(are_there ? segment : 0));
        });
        std::sort(kept.begin(), kept.end());
        if (!are_there || std::adjacent_find(kept.begin(), kept.end()) != kept.end() || state_->entries > kept.size()) {
            return "segments are kept that the input does not have, or twice";
        }
        bool are_starts = true;
        starts_.for_each([&](std::uint64_t key, std::uint64_t hash) {
            const auto entry = static_cast<std::uint64_t>(&entry_of(key) - entries_);
            are_starts = are_starts && entry < state_->entries && hash_of(text(entries_[entry].segment).substr(0, key >> 32)) == hash;
        });
        if (!are_starts) {
            return "the map of beginnings has one that no entry has";
        }
        return fault_of_chains();
    }
    [[nodiscard]] std::string fault_of_chains() const
    {
        std::uint64_t in_chains = 0;
        for (std::uint64_t i = 0; i < state_->entries; ++i) {
            if (entries_[i].has_previous != 0) {
                continue;
            }
            const Entry* last = &entries_[i];
            for (++in_chains; last->next != nullptr && in_chains <= state_->entries; ++in_chains) {
                const std::string_view end = text(last->segment).substr(of_.segment_length - last->overlap);
                last = last->next;
                if (last->has_previous != 1 || text(last->segment).substr(0, end.size()) != end) {
                    return "an entry follows one that does not end as it begins";
                }
            }
            if (entries_[i].last != last || last->first != &entries_[i]) {
                return "the ends of a chain do not know each other";
            }
        }
        return in_chains == state_->entries ? std::string() : "the chains do not have every entry once";
    }

    [[nodiscard]] std::string_view text(std::uint64_t segment) const
    {
        return std::string_view(gene_).substr(positions_[segment], of_.segment_length);
    }
    /// How many segments there can be.
    [[nodiscard]] std::uint32_t positions() const noexcept { return of_.gene_length - of_.segment_length + 1; }

    const Parameters of_;
    std::string gene_;
    std::vector<std::uint32_t> positions_;  ///< of the segments in the gene; the program uses the letters alone
    HashTable<std::uint64_t> different_;
    HashTable<std::uint64_t> starts_;
    Entry* entries_ = nullptr;
    std::uint64_t* gene_words_ = nullptr;
    State* state_ = nullptr;
};

}  // namespace

Work make_stamp_genome(const Shape& shape)
{
    const auto chosen = parameters_for<Parameters>(shape, {128, 16, 1000}, {1024, 32, 16384}, {32768, 64, 16 << 20});
    return {nullptr, std::make_unique<Genome>(shape, chosen)};
}

}  // namespace bench
