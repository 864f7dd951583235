#include "api/registry.hpp"

namespace stillpoint {

const EngineDriver* find_engine(std::string_view name) noexcept
{
    for (const EngineDriver& driver : every_engine_driver()) {
        if (driver.format.name == name) {
            return &driver;
        }
    }
    return nullptr;
}

}  // namespace stillpoint
