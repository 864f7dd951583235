// Fuzzer: any first two pages of a pool file. The input is laid over (by exclusive or) a good pool of
// 4 MiB, so that the empty input is that pool. Its first byte says which copies get a checksum that
// holds: else hardly an input would come past it.
//
// Demanded: an error, or a pool whose segments lie in the file and whose image lies in the
// window; such a pool can grow or says why not, and is found again.

#include <cstdint>
#include <cstdlib>

#include "support/fake_medium.hpp"
#include "pool/pool.hpp"
#include "pool/superblock.hpp"

namespace {

using namespace stillpoint;
using testing::Bytes;
using testing::FakeDisk;

std::uint64_t one_page_a_mib(std::uint64_t image_pages) { return (image_pages + 255) / 256; }

constexpr EngineFormat format{"fuzzer", 1, 4, one_page_a_mib};

void demand(bool condition)
{
    if (!condition) {
        std::abort();
    }
}

Bytes good_pool()
{
    const Pool::CreateOptions options{.format = format, .image_bytes = 4 * mib, .image_bytes_max = 64 * mib};
    const auto disk = std::make_shared<FakeDisk>(Pool::file_bytes_for(options).value());
    demand(Pool::create(testing::attach(disk), options).has_value());
    return disk->durable;
}

void demand_sound(const Pool& pool, std::uint64_t file_bytes)
{
    const PoolFacts& facts = pool.facts();
    demand(facts.base_address >= window_base && facts.base_address % page_bytes == 0);
    demand(facts.image_bytes <= facts.image_bytes_max && facts.image_bytes_max <= window_bytes);
    demand(facts.base_address - window_base <= window_bytes - facts.image_bytes_max);
    demand(facts.file_bytes <= file_bytes);
    std::uint64_t image_page = 0;
    std::uint64_t file_page = facts.engine_area_first_page + facts.engine_area_pages;
    demand(facts.engine_area_first_page >= 2 && file_page <= file_bytes / page_bytes);
    for (const Segment& segment : pool.segments()) {
        demand(segment.first_image_page == image_page && segment.first_file_page >= file_page);
        demand(segment.file_pages >= one_page_a_mib(segment.image_pages));
        image_page += segment.image_pages;
        file_page = segment.first_file_page + segment.file_pages;
        demand(file_page <= file_bytes / page_bytes);
    }
    demand(image_page == facts.image_bytes / page_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const Bytes good = good_pool();
    const auto disk = std::make_shared<FakeDisk>(good);
    const unsigned sealed = size > 0 ? data[0] : 0U;
    for (std::size_t i = 1; i < size && i <= 2 * page_bytes; ++i) {
        disk->cached[i - 1] ^= std::byte{data[i]};
    }
    for (std::size_t copy = 0; copy < 2; ++copy) {
        if ((sealed >> copy) & 1U) {
            seal_superblock(*reinterpret_cast<layout::Superblock*>(disk->cached.data() + copy * page_bytes));
        }
    }
    disk->durable = disk->cached;
    if (const auto looked_at = Pool::open(testing::attach(disk), format, true)) {
        demand_sound(*looked_at, disk->cached.size());
    }
    auto opened = Pool::open(testing::attach(disk), format);
    if (!opened) {
        demand(!opened.error().text().empty());
        return 0;
    }
    demand_sound(*opened, disk->cached.size());
    // Growth of a hostile but consistent pool may ask for a large disk; the fake one is small.
    disk->size_limit = 1 * mib;
    const std::uint64_t before = opened->facts().image_bytes;
    const auto grown = opened->grow(before + 1, format);
    demand(grown.has_value() ? opened->facts().image_bytes > before : opened->facts().image_bytes == before);
    const auto again = Pool::open(testing::attach(disk), format);
    demand(again.has_value() && again->facts().image_bytes == opened->facts().image_bytes);
    demand_sound(*again, disk->cached.size());
    return 0;
}
