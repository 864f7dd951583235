#include "media/dax_medium.hpp"

namespace stillpoint {

Result<std::unique_ptr<Medium>> DaxMedium::open(PoolFile file, const MediumOptions& options)
{
    std::unique_ptr<DaxMedium> medium{new DaxMedium(std::move(file), options, os::FileMapping::Mode::shared_direct)};
    if (auto mapped = medium->map(); !mapped) {
        return pass_on(mapped.error());
    }
    return medium;
}

}  // namespace stillpoint
