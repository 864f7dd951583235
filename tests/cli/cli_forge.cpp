// Makes a pool that this library must refuse, with checksums that hold: cli_forge POOL FIELD. FIELD is
// version (a newer format), engine (another one's), base (another base address), layout (a newer
// layout of the engine) or feature (one that is not known here).

#include <cstdio>
#include <cstring>
#include <string_view>

#include "pool/superblock.hpp"

namespace {

bool forge(stillpoint::layout::Superblock& superblock, std::string_view field)
{
    if (field == "version") {
        ++superblock.format_version;
    } else if (field == "engine") {
        std::memcpy(superblock.engine_name, "otherengine", sizeof "otherengine");
    } else if (field == "base") {
        superblock.base_address += std::uint64_t{1} << 40;
    } else if (field == "layout") {
        ++superblock.engine_layout_version;
    } else if (field == "feature") {
        superblock.feature_bits |= 1;
    } else {
        return false;
    }
    stillpoint::seal_superblock(superblock);
    return true;
}

}  // namespace

int main(int argc, char** argv)
{
    std::FILE* const file = argc == 3 ? std::fopen(argv[1], "r+b") : nullptr;
    if (file == nullptr) {
        std::fprintf(stderr, "usage: cli_forge POOL version|engine|base|layout|feature\n");
        return 64;
    }
    for (long copy = 0; copy < 2; ++copy) {
        alignas(4096) stillpoint::layout::Superblock superblock;
        const long offset = copy * static_cast<long>(sizeof superblock);
        if (std::fseek(file, offset, SEEK_SET) != 0 || std::fread(&superblock, sizeof superblock, 1, file) != 1 ||
            !forge(superblock, argv[2]) || std::fseek(file, offset, SEEK_SET) != 0 ||
            std::fwrite(&superblock, sizeof superblock, 1, file) != 1) {
            return 1;
        }
    }
    return std::fclose(file);
}
