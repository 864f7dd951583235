#include "engines/breeze/driver.hpp"

#include "engines/breeze/breeze_pool.hpp"
#include "engines/breeze/compaction.hpp"
#include "engines/breeze/conversion.hpp"
#include "engines/breeze/object_view.hpp"
#include "engines/breeze/offline.hpp"
#include "engines/breeze/own_statistics.hpp"
#include "engines/breeze/salvage.hpp"

namespace stillpoint::breeze {

EngineDriver driver() noexcept
{
    EngineDriver made{.format = pool_format(),
                      .make = nullptr,
                      .inspect = &inspect_pool,
                      .check = &check_pool,
                      .table_format = layout::TableFormat::plain,
                      .interval_ms = 0};
    made.sums_program_bytes = false;
    made.statistics = own_statistic_rows;
    made.programs = Programs::typed_objects;
    made.shares_process = true;
    made.opened_by = "nvm_pool_create and nvm_pool_open of stillpoint/breeze.h";
    made.more_formats = {&pool_format(true), 1};
    made.show_objects = &show_objects;
    made.show_memory = &show_memory;
    made.compact = &compact_pool;
    made.convert = &convert_pool;
    made.salvage_objects = &salvage_objects;
    return made;
}

}  // namespace stillpoint::breeze
