#pragma once
// The durable memory that explored transactions work on: parts, each with a count of the transactions that have written it and a list of
// blocks of the heap.
//
// What a transaction has seen is written into each part that it writes: of every part the newest state that it depends on. A recovered
// pool is judged by that: a part depends on no state of another one that is lost, so no transaction has survived without those that it
// read from, and of none has half survived. The numbers that the parts had are told to the trace (ObjectNotes).

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "objects/object_workload.hpp"
#include "stillpoint/spht.hpp"

namespace stillpoint::explorer {

inline constexpr std::size_t transaction_parts = 4;

struct PartBlock {
    PartBlock* next;
    std::uint64_t serial;
    std::uint64_t word_count;
    std::uint64_t words[1];  ///< word_count of them, which follow from the serial
};

struct TransactionPart {
    static constexpr std::size_t word_count = 40;
    std::uint64_t operations;  ///< transactions that have written the part
    std::uint64_t stamp;       ///< of the last of them; of no other one
    std::array<std::uint64_t, transaction_parts> seen;  ///< of each part the `operations` that it depends on
    std::uint64_t words[word_count];  ///< follow from the stamp
    PartBlock* first;
    std::uint64_t length;
    std::uint64_t list_sum;  ///< over the serials in the list
    std::byte rest[page_bytes / 3];  ///< some parts lie across a page's end
};

struct TransactionParts {
    static constexpr const char* handle = "parts";
    TransactionPart parts[transaction_parts];
};

/// The work of a transaction on the parts.
struct PartsChange {
    std::set<std::size_t> written;
    std::set<std::size_t> read;
    int list_steps = 0;  ///< of each part written: blocks added (above 0) or removed
    std::size_t block_words = 4;
};

/// The states that a transaction has read or made, for the trace, once it is told that they are durable.
using PartStates = std::vector<std::pair<std::size_t, std::uint64_t>>;

/// A transaction's attempts, and what each tells the trace: states that it would make are told before it may commit, and withdrawn if
/// it did not.
class ToldTransaction {
public:
    /// The body's first call, in every attempt.
    void begin_attempt() { take_back(); }
    /// Reads and writes as `change` says.
    void work(spht::transaction& tx, TransactionParts& parts, const PartsChange& change, Random& random);
    /// Durable: so are all states that it has read and made.
    void acknowledge() const;
    /// Not committed.
    void take_back();

private:
    PartStates made_;
    PartStates read_;
};

/// Numbers of the parts from here on; those of the object with that number.
[[nodiscard]] constexpr std::uint64_t part_name(std::size_t part) noexcept { return part; }

/// The digest of one part, whose lock the caller holds, or that no other thread changes.
[[nodiscard]] std::uint64_t digest_of_part(const TransactionPart& part) noexcept;
/// The words of a part with that stamp, or of a block with that serial number; and the share of a block in the list's sum.
[[nodiscard]] std::uint64_t part_word(std::uint64_t source, std::uint64_t index) noexcept;
[[nodiscard]] std::uint64_t block_sum(std::uint64_t serial) noexcept;

/// As the memory has them, outside of transactions, no other thread being in one.
void add_digests(const TransactionParts* parts, PartDigests& digests);
/// The damage in or between the parts, or "". Counts the blocks that they have.
[[nodiscard]] std::string problem_of(const TransactionParts* parts, std::uint64_t& blocks);

}  // namespace stillpoint::explorer
