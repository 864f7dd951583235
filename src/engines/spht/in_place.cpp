#include "engines/spht/in_place.hpp"

#include <mutex>

namespace stillpoint::spht {

void InPlace::apply(const logs::RecordBuilder& record) noexcept
{
    const std::lock_guard guard(medium_lock_);
    const std::uint64_t* const words = record.payload();
    for (std::uint64_t at = 0; at < record.words();) {
        const logs::Run run = logs::decode_run(words[at]);
        apply_run(run, words + at + 1);
        at += 1 + logs::run_data_words(run);
    }
}

void InPlace::apply_run(logs::Run run, const std::uint64_t* data) noexcept
{
    const std::uint64_t page = run.word / logs::run_words_max;
    for (const std::uint32_t home : table_.home_locations(page)) {
        if (!locations_.is_free_and_has_room(home)) {
            continue;
        }
        const std::uint64_t offset = std::uint64_t{home} * page_bytes + run.word % logs::run_words_max * 8;
        static constexpr std::uint64_t zeroes[logs::run_words_max] = {};
        const bool has_bytes = run.kind == logs::RunKind::bytes;
        if (has_bytes) {
            const auto* const bytes = reinterpret_cast<const std::byte*>(data);
            for (unsigned i = 0; i < 8; ++i) {
                if ((run.count >> i & 1) != 0) {
                    medium_.store(offset + i, bytes + i, 1);
                }
            }
        } else {
            medium_.store(offset, run.kind == logs::RunKind::words ? data : zeroes, run.count * 8);
        }
        medium_.write_back(offset, has_bytes ? 8 : run.count * 8);
        return;
    }
}

}  // namespace stillpoint::spht
