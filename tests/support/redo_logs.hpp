#pragma once
// For tests of redo logs: a writer whose chunks lie in memory.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "logs/log_bytes.hpp"
#include "logs/record_checks.hpp"

namespace stillpoint::test {

/// The payload of a record, run by run.
class Payload {
public:
    Payload& words(std::uint64_t first, const std::vector<std::uint64_t>& values)
    {
        add({logs::RunKind::words, values.size(), first});
        words_.insert(words_.end(), values.begin(), values.end());
        return *this;
    }
    Payload& bytes(std::uint64_t word, std::uint8_t mask, std::uint64_t value)
    {
        add({logs::RunKind::bytes, mask, word});
        words_.push_back(value);
        return *this;
    }
    Payload& zeroes(std::uint64_t first, std::uint64_t count)
    {
        add({logs::RunKind::zeroes, count, first});
        return *this;
    }
    [[nodiscard]] const std::vector<std::uint64_t>& data() const { return words_; }

private:
    void add(logs::Run run) { words_.push_back(logs::encode_run(run)); }

    std::vector<std::uint64_t> words_;
};

class RedoLogs {
public:
    static constexpr std::uint64_t run = 7;

    /// A chunk that no log has. It keeps what `stale` says until it is used.
    std::uint32_t add_chunk(std::uint8_t stale = 0)
    {
        chunks_.push_back(std::make_unique<std::uint64_t[]>(logs::chunk_bytes / 8));
        std::memset(chunks_.back().get(), stale, logs::chunk_bytes);
        pointers_.push_back(reinterpret_cast<const std::byte*>(chunks_.back().get()));
        return static_cast<std::uint32_t>(chunks_.size() - 1);
    }
    /// The log goes on in this chunk: its next one, in place of what was in it.
    void begin_chunk(std::uint64_t log, std::uint32_t chunk)
    {
        Log& at = logs_[log];
        logs::ChunkHeader header{};
        std::memcpy(header.magic, logs::chunk_magic, sizeof header.magic);
        header.use = ++uses_;
        header.log = log;
        header.index = at.chunks++;
        header.run = run;
        header.follows = at.newest;
        header.checksum = logs::chunk_checksum(header);
        std::memcpy(byte_at(logs::position_of(chunk, 0)), &header, sizeof header);
        std::memcpy(byte_at(logs::position_of(chunk, logs::header_copy_offset)), &header, sizeof header);
        at.chunk = chunk;
        at.use = header.use;
        at.offset = sizeof header;
    }
    /// Takes a new chunk where the record does not fit.
    logs::RecordRef add(std::uint64_t log, logs::Timestamp timestamp, const Payload& payload, std::uint32_t part = 0)
    {
        const std::vector<std::uint64_t>& words = payload.data();
        Log& at = logs_[log];
        if (at.chunks == 0 || at.offset + logs::record_bytes_for(words.size()) > logs::header_copy_offset) {
            begin_chunk(log, add_chunk());
        }
        logs::RecordHeader header{timestamp << 1 | 1, static_cast<std::uint32_t>(words.size()), part, 0, 0};
        header.checksum = logs::record_checksum(header, words.data(), at.use, at.offset);
        const logs::RecordRef record{timestamp, logs::position_of(at.chunk, at.offset)};
        std::memcpy(byte_at(record.position), &header, sizeof header);
        std::copy(words.begin(), words.end(), reinterpret_cast<std::uint64_t*>(byte_at(record.position) + sizeof header));
        at.offset += logs::record_bytes_for(words.size());
        at.newest = timestamp;
        at.records.push_back(record);
        return record;
    }
    /// Writes the links of a sequence that is in order.
    void link(std::span<const logs::RecordRef> ordered, bool forward)
    {
        for (std::size_t i = 0; i + 1 < ordered.size(); ++i) {
            header_at(ordered[forward ? i : i + 1]).link = ordered[forward ? i + 1 : i].position | 1;
        }
    }

    [[nodiscard]] logs::LogBytes bytes() const { return {pointers_.data(), static_cast<std::uint32_t>(pointers_.size())}; }
    [[nodiscard]] std::byte* byte_at(logs::Position position)
    {
        return reinterpret_cast<std::byte*>(chunks_[logs::chunk_of(position)].get()) + logs::offset_in_chunk(position);
    }
    [[nodiscard]] logs::RecordHeader& header_at(const logs::RecordRef& record)
    {
        return *reinterpret_cast<logs::RecordHeader*>(byte_at(record.position));
    }
    void flip(logs::Position position, unsigned bit) { *byte_at(position + bit / 8) ^= std::byte{1} << (bit % 8); }
    [[nodiscard]] const std::vector<logs::RecordRef>& records(std::uint64_t log) { return logs_[log].records; }
    /// Where the log ends.
    [[nodiscard]] logs::Position end(std::uint64_t log) { return logs::position_of(logs_[log].chunk, logs_[log].offset); }
    [[nodiscard]] std::uint32_t chunk(std::uint64_t log) { return logs_[log].chunk; }

private:
    struct Log {
        std::uint64_t chunks = 0;
        std::uint32_t chunk = 0;
        std::uint64_t use = 0;
        std::uint64_t offset = 0;
        logs::Timestamp newest = 0;
        std::vector<logs::RecordRef> records;
    };

    std::vector<std::unique_ptr<std::uint64_t[]>> chunks_;
    std::vector<const std::byte*> pointers_;
    std::map<std::uint64_t, Log> logs_;
    std::uint64_t uses_ = 0;
};

}  // namespace stillpoint::test
