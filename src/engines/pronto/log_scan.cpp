#include "engines/pronto/log_scan.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>

#include "core/canary.hpp"
#include "engines/pronto/entry_codec.hpp"
#include "engines/pronto/log_layout.hpp"

namespace stillpoint::pronto {

namespace {

/// Operations before `missing` and those after it that did not rely on it.
bool follows_all(const EntryHeader& header) noexcept
{
    return (header.flags & entry_follows_all) != 0 && !is_removed(Canary::missing_operation);
}

/// Whether the operation relies on the one before it, which is not there.
bool has_lost_previous(const EntryHeader& header, std::uint64_t expected) noexcept
{
    return (header.flags & entry_follows_previous) != 0 && header.number != expected && !is_removed(Canary::lost_previous);
}

EntryHeader header_at(std::span<const std::byte> bytes, std::uint64_t offset) noexcept
{
    EntryHeader header;
    std::memcpy(&header, bytes.data() + offset, sizeof header);
    return header;
}

bool is_plausible(const EntryHeader& header, std::uint64_t log_key, std::uint64_t place, std::uint64_t room) noexcept
{
    return header.number != 0 && header.tag == entry_tag(log_key, place) && header.argument_bytes <= room - sizeof header &&
           (header.flags & ~(entry_follows_all | entry_has_more | entry_follows_previous)) == 0;
}

}  // namespace

std::optional<ChunkHeader> chunk_header_in(const std::byte* line) noexcept
{
    ChunkHeader header;
    std::memcpy(&header, line, sizeof header);
    if (std::memcmp(header.magic, chunk_magic, sizeof header.magic) != 0 ||
        (header.checksum != chunk_checksum(header) && !is_removed(Canary::chunk_checksum))) {
        return std::nullopt;
    }
    return header;
}

namespace {

bool is_older(const ChunkHeader& header, const ChunkHeader& than) noexcept
{
    return header.generation != than.generation ? header.generation < than.generation : header.beginning < than.beginning;
}

/// One of the header's two copies may be damaged, unreadable, torn by a crash, or left over from what the chunk was before.
/// Both are durable before the chunk has an operation that was acknowledged, so where one cannot be read the other decides.
Result<std::optional<ChunkHeader>> read_chunk_header(const Medium& medium, std::uint64_t chunk_offset)
{
    std::optional<ChunkHeader> newest;
    unsigned unreadable = 0;
    for (const std::uint64_t at : {std::uint64_t{0}, header_copy_offset}) {
        std::byte line[sizeof(ChunkHeader)];
        if (auto done = medium.read(chunk_offset + at, line); !done) {
            if (done.error().code != SP_E_IO) {
                return pass_on(done.error());
            }
            if (++unreadable == 2) {
                return pass_on(done.error());
            }
            continue;
        }
        const auto header = chunk_header_in(line);
        if (header && (!newest || is_older(*newest, *header))) {
            newest = header;
        }
        if (is_removed(Canary::chunk_header_copy)) {
            break;
        }
    }
    return newest;
}

}  // namespace

Result<std::vector<ScannedChunk>> scan_chunks(const Pool& pool)
{
    try {
        std::vector<ScannedChunk> found;
        ChunkIndex index = 0;
        for (const Segment& segment : pool.segments()) {
            const std::uint64_t pages = LogPart::pages_of(segment);
            const std::uint64_t first_page = LogPart::first_page(segment);
            for (std::uint64_t page = 0; page < pages; page += log_chunk_pages, ++index) {
                const std::uint64_t offset = (first_page + page) * page_bytes;
                const auto read = read_chunk_header(pool.medium(), offset);
                if (!read) {
                    return pass_on(read.error());
                }
                if (const auto& header = *read; header && header->generation <= pool.facts().generation && header->object != 0) {
                    found.push_back({index, offset, *header});
                }
            }
        }
        return found;
    } catch (const std::bad_alloc&) {
        return fail(SP_E_NO_MEMORY, 0, "{}: no memory to read the logs", pool.medium().path());
    }
}

void scan_entries(std::span<const std::byte> bytes, const ChunkHeader& chunk, std::vector<ScannedEntry>& entries)
{
    const std::uint64_t log_key = log_key_of(chunk.object, chunk.generation);
    for (std::uint64_t offset = sizeof(ChunkHeader); offset < bytes.size();) {
        const EntryHeader header = header_at(bytes, offset);
        const std::uint64_t place = place_of(chunk.sequence, offset);
        const std::byte* const arguments = bytes.data() + offset + sizeof header;
        if (is_plausible(header, log_key, place, bytes.size() - offset) &&
            (header.checksum == entry_checksum(header, arguments_hash(arguments, header.argument_bytes, log_key, place)) ||
             is_removed(Canary::entry_checksum))) {
            entries.push_back({header, chunk.generation, arguments});
            offset += entry_bytes_for(header.argument_bytes);
        } else {
            // Torn, rolled out, or never written: the next whole entry may begin at any line.
            offset += cache_line_bytes;
        }
    }
}

bool is_superseded(const ChunkHeader& chunk, const ObjectRecord& record) noexcept { return chunk.sequence < record.log_sequence; }

Result<ScannedLog> ScannedLog::read(const Pool& pool, std::span<const ScannedChunk> chunks, const ObjectRecord& record)
{
    try {
        ScannedLog log;
        const std::uint64_t committed = record.committed;
        for (const ScannedChunk& chunk : chunks) {
            if (is_superseded(chunk.header, record)) {
                log.chunks_.emplace_back();
                continue;
            }
            std::vector<std::byte>& bytes = log.chunks_.emplace_back(chunk_bytes);
            if (auto done = pool.medium().read(chunk.file_offset, bytes); !done) {
                return pass_on(done.error());
            }
            scan_entries(bytes, chunk.header, log.entries_);
        }
        log.leave_out_void_entries(chunks);
        std::sort(log.entries_.begin(), log.entries_.end(), [](const ScannedEntry& a, const ScannedEntry& b) {
            return a.header.number != b.header.number ? a.header.number < b.header.number : a.header.part < b.header.part;
        });
        if (auto done = log.put_together(committed); !done) {
            return pass_on(done.error());
        }
        log.look_for_damage(chunks, committed);
        return log;
    } catch (const std::bad_alloc&) {
        return fail(SP_E_NO_MEMORY, 0, "{}: no memory to read a log of {} chunks", pool.medium().path(), chunks.size());
    }
}

/// An operation that a recovery left out stays out, though the next run has given its numbers to other operations.
void ScannedLog::leave_out_void_entries(std::span<const ScannedChunk> chunks)
{
    const auto is_void = [&](const ScannedEntry& entry) {
        return std::any_of(chunks.begin(), chunks.end(), [&](const ScannedChunk& chunk) {
            return chunk.header.generation > entry.generation && chunk.header.first_number <= entry.header.number;
        });
    };
    left_out_ += std::erase_if(entries_, is_void);
}

std::optional<std::span<const std::byte>> ScannedLog::arguments_at(std::size_t& at)
{
    const ScannedEntry& first = entries_[at];
    const std::size_t begin = at;
    while (at < entries_.size() && entries_[at].header.number == first.header.number) {
        ++at;
    }
    for (std::size_t i = begin; i < at; ++i) {
        const bool is_last = i + 1 == at;
        if (entries_[i].header.part != i - begin || ((entries_[i].header.flags & entry_has_more) != 0) == is_last) {
            return std::nullopt;
        }
    }
    if (at - begin == 1) {
        return std::span{first.arguments, first.header.argument_bytes};
    }
    std::vector<std::byte>& whole = assembled_.emplace_back();
    for (std::size_t i = begin; i < at; ++i) {
        whole.insert(whole.end(), entries_[i].arguments, entries_[i].arguments + entries_[i].header.argument_bytes);
    }
    return std::span<const std::byte>{whole};
}

Result<void> ScannedLog::put_together(std::uint64_t committed)
{
    first_expected_ = committed + 1;
    std::uint64_t expected = committed + 1;
    for (std::size_t at = 0; at < entries_.size();) {
        const EntryHeader header = entries_[at].header;
        durable_number_ = std::max(durable_number_, header.number - std::min<std::uint64_t>(header.behind, header.number));
        if (at + 1 < entries_.size() && entries_[at + 1].header.number == header.number && entries_[at + 1].header.part == header.part) {
            return fail(SP_E_POOL_CORRUPT, 0, "two entries of a log have the commit number {}", header.number);
        }
        const auto arguments = arguments_at(at);
        if (header.number <= committed) {
            continue;
        }
        if (!arguments || (header.number != expected && follows_all(header)) || has_lost_previous(header, expected)) {
            ++left_out_;
            if (follows_all(header)) {
                left_out_ += static_cast<std::uint64_t>(entries_.end() - entries_.begin()) - at;
                for (; at < entries_.size(); ++at) {
                    const EntryHeader& later = entries_[at].header;
                    durable_number_ = std::max(durable_number_, later.number - std::min<std::uint64_t>(later.behind, later.number));
                }
            }
            continue;
        }
        operations_.push_back({header.number, header.method, *arguments});
        bytes_ += arguments->size();
        expected = header.number + 1;
    }
    return {};
}

void ScannedLog::look_for_damage(std::span<const ScannedChunk> chunks, std::uint64_t committed)
{
    std::uint64_t expected = committed + 1;
    for (const LoggedOperation& operation : operations_) {
        if (operation.number != expected) {
            break;
        }
        ++expected;
    }
    if (expected > durable_number_) {
        return;
    }
    damaged_number_ = expected;
    for (std::size_t i = 0; i < chunks_.size() && !damaged_method_; ++i) {
        const ChunkHeader& chunk = chunks[i].header;
        const std::uint64_t log_key = log_key_of(chunk.object, chunk.generation);
        for (std::uint64_t offset = sizeof(ChunkHeader); offset < chunks_[i].size(); offset += cache_line_bytes) {
            const EntryHeader header = header_at(chunks_[i], offset);
            if (header.number == expected && header.tag == entry_tag(log_key, place_of(chunk.sequence, offset))) {
                damaged_method_ = header.method;
                break;
            }
        }
    }
}

bool ScannedLog::has_gap() const noexcept
{
    return !operations_.empty() && operations_.back().number - first_expected_ + 1 != operations_.size();
}

std::size_t ScannedLog::chunk_of(const ScannedEntry& entry) const noexcept
{
    const auto holds = [&](const std::vector<std::byte>& bytes) {
        return std::greater_equal<>()(entry.arguments, bytes.data()) && std::less<>()(entry.arguments, bytes.data() + bytes.size());
    };
    return static_cast<std::size_t>(std::find_if(chunks_.begin(), chunks_.end(), holds) - chunks_.begin());
}

std::vector<ScannedLog::Page> ScannedLog::pages_not_known_durable() const
{
    std::vector<Page> pages;
    for (const ScannedEntry& entry : entries_) {
        if (entry.header.number <= durable_number_) {
            continue;
        }
        const std::size_t chunk = chunk_of(entry);
        const auto begin = static_cast<std::uint64_t>(entry.arguments - chunks_[chunk].data()) - sizeof(EntryHeader);
        pages.push_back({chunk, 0});
        for (std::uint64_t at = begin / page_bytes * page_bytes; at < begin + entry_bytes_for(entry.header.argument_bytes);
             at += page_bytes) {
            pages.push_back({chunk, at});
        }
    }
    std::sort(pages.begin(), pages.end());
    pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
    return pages;
}

void ScannedLog::cut_at_damage() noexcept
{
    if (damaged_number_ != 0) {
        const std::size_t before = operations_.size();
        std::erase_if(operations_, [&](const LoggedOperation& operation) { return operation.number >= damaged_number_; });
        left_out_ += before - operations_.size();
    }
}

}  // namespace stillpoint::pronto
