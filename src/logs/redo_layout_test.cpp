#include "logs/redo_layout.hpp"

#include <gtest/gtest.h>

namespace stillpoint::logs {
namespace {

TEST(RedoLayout, ARunsHeaderSaysWhatWasEncoded)
{
    for (const logs::Run run : {logs::Run{RunKind::words, run_words_max, (std::uint64_t{1} << 40) - 1}, logs::Run{RunKind::bytes, 0x81, 7},
                                logs::Run{RunKind::zeroes, 1, 0}}) {
        const logs::Run decoded = decode_run(encode_run(run));
        EXPECT_EQ(decoded.kind, run.kind);
        EXPECT_EQ(decoded.count, run.count);
        EXPECT_EQ(decoded.word, run.word);
    }
}

TEST(RedoLayout, TheLargestRecordFillsItsChunk) { EXPECT_EQ(sizeof(ChunkHeader) + record_bytes_for(record_words_max), header_copy_offset); }

}  // namespace
}  // namespace stillpoint::logs
