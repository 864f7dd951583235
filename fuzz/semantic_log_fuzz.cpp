// Fuzzer: any bytes in the log part of a pool. The log of one object has two chunks, of two runs, and operations of some sizes, one of
// them in two parts; the input changes bytes of it: each four bytes say in which entry or chunk header (two bytes), at which place and by
// what. Its first byte says what is made consistent again, since else hardly an input would come past the checksums: bit 0 entries,
// bit 1 chunk headers; bits 2 and 3 which operations the snapshot has.
//
// Demanded: an error with a text, or operations in ascending order that the snapshot lacks. Without bits 0 and 1 each of them is one that
// was logged, whole; and where one is missing before another, that is told as damage.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "engines/pronto/entry_codec.hpp"
#include "engines/pronto/log_layout.hpp"
#include "engines/pronto/log_scan.hpp"
#include "engines/pronto/pronto_engine.hpp"
#include "support/patched_medium.hpp"

namespace {

using namespace stillpoint;
using namespace stillpoint::pronto;
using stillpoint::testing::PatchedFile;
using stillpoint::testing::PatchedMedium;

constexpr std::uint64_t image_bytes = 4 * mib;
constexpr std::uint64_t object = 7;
constexpr std::uint64_t second_run_begins_with = 6;
constexpr std::uint32_t sizes[] = {8, 32, 33, 400, 64, 8, 5000, 200, 20, 0};
constexpr std::uint64_t divided = 4;  ///< the operation that has its arguments in two parts

void demand(bool condition)
{
    if (!condition) {
        std::abort();
    }
}

/// Where an entry or a chunk's header lies.
struct Piece {
    std::uint64_t offset;  ///< in the file
    std::uint64_t bytes;
    const ChunkHeader* chunk;
    std::uint64_t chunk_offset;  ///< of the chunk, in the file
};

struct Base {
    std::shared_ptr<PatchedFile> file;
    std::vector<Piece> headers;
    std::vector<Piece> entries;
    ChunkHeader chunks[2];
};

std::byte argument_of(std::uint64_t number, std::uint64_t at) { return static_cast<std::byte>(number * 31 + at); }

void seal_entry(PatchedFile& file, const Piece& piece)
{
    const auto begin = file.bytes().begin();
    const std::vector<std::byte> bytes(begin + static_cast<std::ptrdiff_t>(piece.offset),
                                       begin + static_cast<std::ptrdiff_t>(piece.chunk_offset + chunk_bytes));
    EntryHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::uint64_t key = log_key_of(piece.chunk->object, piece.chunk->generation);
    const std::uint64_t place = place_of(piece.chunk->sequence, piece.offset - piece.chunk_offset);
    if (header.argument_bytes > bytes.size() - sizeof header) {
        return;
    }
    header.tag = entry_tag(key, place);
    header.checksum = entry_checksum(header, arguments_hash(bytes.data() + sizeof header, header.argument_bytes, key, place));
    file.patch(piece.offset, reinterpret_cast<const std::byte*>(&header), sizeof header);
}

void seal_chunk(PatchedFile& file, const Piece& piece)
{
    ChunkHeader header;
    std::memcpy(&header, file.bytes().data() + piece.offset, sizeof header);
    header.checksum = chunk_checksum(header);
    file.patch(piece.offset, reinterpret_cast<const std::byte*>(&header), sizeof header);
}

/// Appends an entry to the chunk; returns where the next one goes.
std::uint64_t put_entry(Base& base, std::size_t chunk, std::uint64_t offset, EntryHeader header, std::uint64_t first_argument)
{
    std::vector<std::byte> bytes(entry_bytes_for(header.argument_bytes));
    std::memcpy(bytes.data(), &header, sizeof header);
    for (std::uint64_t at = 0; at < header.argument_bytes; ++at) {
        bytes[sizeof header + at] = argument_of(header.number, first_argument + at);
    }
    const std::uint64_t chunk_offset = base.headers[chunk].offset;
    base.file->patch(chunk_offset + offset, bytes.data(), bytes.size());
    base.entries.push_back({chunk_offset + offset, bytes.size(), &base.chunks[chunk], chunk_offset});
    seal_entry(*base.file, base.entries.back());
    return offset + bytes.size();
}

void fill(Base& base, const Pool& pool)
{
    const std::uint64_t first = LogPart::first_page(pool.segments().front()) * page_bytes;
    for (std::size_t i = 0; i < 2; ++i) {
        ChunkHeader& header = base.chunks[i];
        std::memcpy(header.magic, chunk_magic, sizeof header.magic);
        header.object = object;
        header.sequence = i;
        header.generation = pool.facts().generation;
        header.first_number = i == 0 ? 1 : second_run_begins_with;
        base.headers.push_back({first + (i + 1) * chunk_bytes, sizeof header, &header, first + (i + 1) * chunk_bytes});
        base.file->patch(base.headers[i].offset, reinterpret_cast<const std::byte*>(&header), sizeof header);
        seal_chunk(*base.file, base.headers[i]);
    }
    std::uint64_t ends[2] = {sizeof(ChunkHeader), sizeof(ChunkHeader)};
    for (std::uint64_t number = 1; number <= std::size(sizes); ++number) {
        EntryHeader header{};
        header.number = number;
        header.method = static_cast<std::uint8_t>(number % 3);
        header.behind = 1;  // Everything before is durable.
        header.flags = number % 2 == 0 ? entry_follows_all : 0;
        const std::uint32_t size = sizes[number - 1];
        const std::size_t chunk = number < second_run_begins_with ? 0 : 1;
        const std::uint32_t first_part = number == divided ? size / 2 / 8 * 8 : size;
        header.argument_bytes = first_part;
        header.flags = static_cast<std::uint8_t>(header.flags | (number == divided ? entry_has_more : 0));
        ends[chunk] = put_entry(base, chunk, ends[chunk], header, 0);
        if (number == divided) {
            header.flags = static_cast<std::uint8_t>(header.flags & ~entry_has_more);
            header.part = 1;
            header.argument_bytes = size - first_part;
            ends[chunk] = put_entry(base, chunk, ends[chunk], header, first_part);
        }
    }
}

Base make_base()
{
    const Pool::CreateOptions options{.format = driver().format, .image_bytes = image_bytes, .image_bytes_max = image_bytes};
    Base base;
    base.file = std::make_shared<PatchedFile>(std::vector<std::byte>(Pool::file_bytes_for(options).value()));
    auto pool = Pool::create(std::make_unique<PatchedMedium>(base.file), options);
    demand(pool.has_value());
    base.headers.reserve(2);
    fill(base, *pool);
    base.file = std::make_shared<PatchedFile>(base.file->bytes());
    return base;
}

void change(const Base& base, const std::uint8_t* input, std::uint8_t sealed)
{
    const std::uint64_t pieces = base.entries.size() + base.headers.size();
    const std::uint64_t chosen = (input[0] + 256u * (input[1] / 16u)) % pieces;
    const bool is_entry = chosen < base.entries.size();
    const Piece& piece = is_entry ? base.entries[chosen] : base.headers[chosen - base.entries.size()];
    const std::uint64_t place = (input[2] + 256u * (input[1] % 16u)) % piece.bytes;
    const std::byte value = base.file->bytes()[piece.offset + place] ^ std::byte{input[3]};
    base.file->patch(piece.offset + place, &value, 1);
    if (is_entry && (sealed & 1) != 0) {
        seal_entry(*base.file, piece);
    } else if (!is_entry && (sealed & 2) != 0) {
        seal_chunk(*base.file, piece);
    }
}

bool is_as_logged(const LoggedOperation& operation)
{
    const std::span<const std::byte> arguments = operation.arguments;
    bool same = operation.number <= std::size(sizes) && operation.method == operation.number % 3 &&
                arguments.size() == sizes[operation.number - 1];
    for (std::size_t at = 0; same && at < arguments.size(); ++at) {
        same = arguments[at] == argument_of(operation.number, at);
    }
    return same;
}

void check(const ScannedLog& log, std::uint64_t committed, bool sealed)
{
    std::uint64_t last = committed;
    std::uint64_t sum = 0;
    for (const LoggedOperation& operation : log.operations()) {
        demand(operation.number > last);
        for (const std::byte byte : operation.arguments) {
            sum += static_cast<std::uint64_t>(byte);  // All of it can be read.
        }
        demand(sealed || is_as_logged(operation));
        // Each entry says that those before it were durable.
        demand(sealed || operation.number == last + 1 || (log.damaged_number() > committed && log.damaged_number() <= last + 1));
        last = operation.number;
    }
    demand(sum != UINT64_MAX);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size)
{
    static const Base base = make_base();
    if (size == 0) {
        return 0;
    }
    for (std::size_t at = 1; at + 4 <= size && at < 200; at += 4) {
        change(base, input + at, input[0]);
    }
    const auto pool = Pool::open(std::make_unique<PatchedMedium>(base.file), driver().format, true);
    demand(pool.has_value());
    ObjectRecord record{};
    record.identity = object;
    record.committed = input[0] / 4 % 4;
    const auto chunks = scan_chunks(*pool);
    demand(chunks.has_value());
    std::vector<ScannedChunk> own;
    std::copy_if(chunks->begin(), chunks->end(), std::back_inserter(own),
                 [](const ScannedChunk& chunk) { return chunk.header.object == object; });
    auto log = ScannedLog::read(*pool, own, record);
    if (log) {
        check(*log, record.committed, (input[0] & 3) != 0);
        log->cut_at_damage();
        check(*log, record.committed, true);
    } else {
        demand(log.error().message[0] != '\0');
    }
    base.file->undo();
    return 0;
}
