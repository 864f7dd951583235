#include "transactions/parts.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "arch/checksum.hpp"

namespace stillpoint::explorer {

namespace {

std::uint64_t word_of(std::uint64_t source, std::uint64_t index) noexcept { return mix64(source, index + 1); }
std::uint64_t sum_of(std::uint64_t serial) noexcept { return mix64(serial, 77); }

std::uint64_t digest_of(std::uint64_t operations, std::uint64_t stamp, std::uint64_t list_sum,
                        const std::array<std::uint64_t, transaction_parts>& seen)
{
    if (operations == 0) {
        return absent;
    }
    Digest digest;
    digest.add(operations);
    digest.add(stamp);
    digest.add(list_sum);
    for (const std::uint64_t each : seen) {
        digest.add(each);
    }
    return digest.value();
}

PartBlock* make_block(spht::transaction& tx, PartBlock* next, std::uint64_t serial, std::size_t words)
{
    auto* const block = static_cast<PartBlock*>(tx.allocate(offsetof(PartBlock, words) + words * sizeof(std::uint64_t)));
    tx.write(block->next, next);
    tx.write(block->serial, serial);
    tx.write(block->word_count, words);
    for (std::size_t i = 0; i < words; ++i) {
        tx.write(block->words[i], word_of(serial, i));
    }
    return block;
}

void change_list(spht::transaction& tx, TransactionPart& part, const PartsChange& change, Random& random)
{
    PartBlock* first = tx.read(part.first);
    std::uint64_t length = tx.read(part.length);
    std::uint64_t sum = tx.read(part.list_sum);
    for (int i = 0; i < change.list_steps; ++i) {
        const std::uint64_t serial = random();
        first = make_block(tx, first, serial, change.block_words);
        ++length;
        sum += sum_of(serial);
    }
    for (int i = 0; i > change.list_steps && first != nullptr; --i) {
        PartBlock* const gone = first;
        first = tx.read(gone->next);
        --length;
        sum -= sum_of(tx.read(gone->serial));
        tx.free(gone);
    }
    tx.write(part.first, first);
    tx.write(part.length, length);
    tx.write(part.list_sum, sum);
}

std::string problem_of_list(std::size_t number, const TransactionPart& part, std::uint64_t& blocks)
{
    std::uint64_t length = 0;
    std::uint64_t sum = 0;
    for (const PartBlock* block = part.first; block != nullptr; block = block->next) {
        if (!may_be_followed(block) || ++length > part.length) {
            return fmt::format("the list of part {} is broken", number);
        }
        sum += sum_of(block->serial);
        for (std::uint64_t i = 0; i < block->word_count; ++i) {
            if (block->words[i] != word_of(block->serial, i)) {
                return fmt::format("block {} of the list of part {} is torn", length, number);
            }
        }
    }
    blocks += length;
    return length == part.length && sum == part.list_sum ? "" : fmt::format("the list of part {} lacks a block", number);
}

}  // namespace

void ToldTransaction::take_back()
{
    for (const auto& [part, digest] : made_) {
        ObjectNotes::withdrawn(part_name(part), digest);
    }
    made_.clear();
    read_.clear();
}

void ToldTransaction::acknowledge() const
{
    for (const PartStates* const states : {&made_, &read_}) {
        for (const auto& [part, digest] : *states) {
            ObjectNotes::acknowledged(part_name(part), digest);
        }
    }
}

void ToldTransaction::work(spht::transaction& tx, TransactionParts& all, const PartsChange& change, Random& random)
{
    std::array<std::uint64_t, transaction_parts> seen{};
    const auto see = [&](std::size_t number) {
        TransactionPart& part = all.parts[number];
        const auto own = tx.read(part.seen);
        const std::uint64_t operations = tx.read(part.operations);
        const std::size_t word = random() % TransactionPart::word_count;
        if (operations != 0 && tx.read(part.words[word]) != word_of(tx.read(part.stamp), word)) {
            throw std::logic_error(fmt::format("a transaction sees part {} half written", number));
        }
        for (std::size_t i = 0; i < transaction_parts; ++i) {
            seen[i] = std::max(seen[i], own[i]);
        }
        seen[number] = std::max(seen[number], operations + (change.written.contains(number) ? 1 : 0));
        if (!change.written.contains(number) && operations != 0) {
            read_.emplace_back(number, digest_of(operations, tx.read(part.stamp), tx.read(part.list_sum), own));
        }
    };
    std::for_each(change.read.begin(), change.read.end(), see);
    std::for_each(change.written.begin(), change.written.end(), see);
    const std::uint64_t stamp = random();
    for (const std::size_t number : change.written) {
        TransactionPart& part = all.parts[number];
        change_list(tx, part, change, random);
        tx.write(part.operations, tx.read(part.operations) + 1);
        tx.write(part.stamp, stamp);
        tx.write(part.seen, seen);
        for (std::size_t i = 0; i < TransactionPart::word_count; ++i) {
            tx.write(part.words[i], word_of(stamp, i));
        }
        made_.emplace_back(number, digest_of(tx.read(part.operations), stamp, tx.read(part.list_sum), seen));
    }
    for (const auto& [part, digest] : made_) {
        ObjectNotes::state(part_name(part), digest);
    }
}

std::uint64_t digest_of_part(const TransactionPart& part) noexcept
{
    return digest_of(part.operations, part.stamp, part.list_sum, part.seen);
}

std::uint64_t part_word(std::uint64_t source, std::uint64_t index) noexcept { return word_of(source, index); }
std::uint64_t block_sum(std::uint64_t serial) noexcept { return sum_of(serial); }

void add_digests(const TransactionParts* parts, PartDigests& digests)
{
    for (std::size_t i = 0; i < transaction_parts; ++i) {
        digests[part_name(i)] = absent;
        if (parts != nullptr) {
            digests[part_name(i)] = digest_of_part(parts->parts[i]);
        }
    }
}

std::string problem_of(const TransactionParts* parts, std::uint64_t& blocks)
{
    if (parts == nullptr) {
        return "";
    }
    ++blocks;
    for (std::size_t i = 0; i < transaction_parts; ++i) {
        const TransactionPart& part = parts->parts[i];
        for (std::size_t word = 0; word < TransactionPart::word_count; ++word) {
            if (part.words[word] != (part.operations == 0 ? 0 : word_of(part.stamp, word))) {
                return fmt::format("part {} is torn", i);
            }
        }
        if (std::string wrong = problem_of_list(i, part, blocks); !wrong.empty()) {
            return wrong;
        }
        for (std::size_t other = 0; other < transaction_parts; ++other) {
            if (part.seen[other] > parts->parts[other].operations) {
                return fmt::format("part {} depends on transaction {} of part {}, which has {}", i, part.seen[other], other,
                                   parts->parts[other].operations);
            }
        }
    }
    return "";
}

}  // namespace stillpoint::explorer
