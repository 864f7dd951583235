#include "damage_words.hpp"

#include <array>

#include "output.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::array<PartWords, pool_parts> part_words = {{
    {"superblocks", "where the parts of the pool lie is lost", "their bytes may be whole"},
    {"commit records", "which epoch is the newest durable one is lost", "the pages themselves are not concerned"},
    {"tables", "which copies of some pages are the newest is lost", "pages of other tables are proved by their checksums"},
    {"pages", "the bytes of the pages named, as the newest epoch left them, are lost",
     "every page that is not named is proved by its checksum"},
    {"logs", "what the logs have from the damaged place on, and the pages not yet, is lost",
     "what the pages have is not: the state of the last snapshot or replay"},
    {"image header", "where the directory of handles and the heap lie is lost", "the objects' bytes are not"},
    {"handles", "the names of the objects concerned are lost", "their bytes, and other names, are not"},
    {"heap", "which memory is free is not certain in the places named: no program should allocate there",
     "the bytes of objects are not lost"},
    {"locks", "which locks were in use is lost: locks in durable memory may look held", "no data are lost"},
    {"types", "the descriptions of the program's types are lost", "no data are lost"},
    {"globals", "which variables the durable globals belong to is lost", "their bytes, and all other objects, are not"},
    {"objects", "the objects named, and what only they lead to, are lost", "every other object was examined and is whole"},
}};

}  // namespace

const PartWords& words_of(PoolPart part) noexcept { return part_words[static_cast<std::size_t>(part)]; }

std::vector<Help> helps_for(const std::string& path, const EngineDriver* driver, const Verification& verified)
{
    const auto is_found_in = [&](PoolPart part) { return verified.damages_by_part[static_cast<std::size_t>(part)] != 0; };
    std::vector<Help> helps = {{"stillpoint restore COPY NEW", "makes the pool again as a copy has it"}};
    if (driver == nullptr || is_found_in(PoolPart::superblocks)) {
        return helps;
    }
    const bool engine_can_prove_it = is_found_in(PoolPart::commit_records) || is_found_in(PoolPart::tables) ||
                                     is_found_in(PoolPart::pages) || is_found_in(PoolPart::logs);
    if (driver->opened_by.empty() && driver->sums_program_bytes && engine_can_prove_it) {
        helps.push_back({text_of("stillpoint run --pool {} --damaged older-epoch -- PROGRAM", path),
                         "goes back to the epoch before the newest, if that one is sound"});
    }
    if (driver->salvage != nullptr || driver->salvage_objects != nullptr) {
        const bool proves_data = driver->salvage_objects != nullptr || driver->sums_program_bytes;
        helps.push_back({text_of("stillpoint salvage {}{} NEW", proves_data ? "" : "--accept-unproved ", path),
                         proves_data ? "makes a new pool of what is proved, and lists the rest"
                                     : "makes a new pool with the tables that are proved, and with data that no checksum covers"});
    }
    if (driver->opened_by.empty()) {
        helps.push_back({text_of("stillpoint run --pool {} --damaged read-only -- PROGRAM", path),
                         "lets the program look into what is left, without a write to the pool"});
    }
    return helps;
}

}  // namespace stillpoint::tool
