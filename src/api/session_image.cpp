#include "api/session_image.hpp"

#include "heap/image_heap.hpp"
#include "pool/image.hpp"
#include "runtime/data_layout.hpp"
#include "runtime/durable_globals.hpp"
#include "runtime/kept_types.hpp"
#include "runtime/sync_objects.hpp"

namespace stillpoint {

namespace {

Result<std::uint64_t> grow_image(void* context, std::uint64_t wanted) { return static_cast<Engine*>(context)->grow(wanted); }

/// Before main, or in sp_open.
Result<void> settle_layout_of(Session& session, const Options& options)
{
    auto stated = stated_layout(options.layout, session.number == 0);
    if (!stated) {
        return pass_on(stated.error());
    }
    if (!*stated) {
        return {};
    }
    auto steps = settle_layout(*session.engine, session.driver->programs, **stated);
    if (!steps) {
        return pass_on(steps.error());
    }
    session.layout_steps = std::move(*steps);
    return {};
}

}  // namespace

Result<void> attach_image(Session& session, const RecoveryReport& report, const Options& options)
{
    const EngineDriver& driver = *session.driver;
    Engine& engine = *session.engine;
    const PoolFacts& facts = engine.pool_facts();
    if (report.epoch == 0) {
        format_image(engine.image_base(), facts.image_bytes_first_max, driver.table_format);
    } else if (auto checked = check_image(engine.image_base(), driver.table_format,
                                          {facts.image_bytes_first_max, facts.image_bytes_max, facts.base_address});
               !checked) {
        return checked;
    }
    const ImageGeometry geometry = ImageGeometry::for_image(facts.image_bytes_first_max, driver.table_format);
    Heap::Options heap_options = heap_options_of(engine.image_base(), facts, engine.image_bytes(), driver.table_format);
    heap_options.grow = &grow_image;
    heap_options.grow_context = &engine;
    heap_options.free_memory_is_unknown = report.free_memory_is_unknown;
    if (heap_options.image_bytes_max < facts.image_bytes_max) {
        if (auto longer = lengthen_tables(heap_options, engine.image_bytes(), facts.image_bytes_max); !longer) {
            return longer;
        }
    }
    auto heap = Heap::attach(heap_options);
    if (!heap) {
        return pass_on(heap.error());
    }
    session.heap = *heap;
    session.directory.emplace(engine.image_base(), geometry);
    if (report.epoch == 0 && session.named.reserve(session.directory->capacity())) {
        session.named.complete();  // A new pool has no names: its first free need not look for them.
    }
    if (auto attached = sync_objects_attach(heap_options, geometry); !attached) {
        return attached;
    }
    // The program's layout and its variables have one pool.
    if (auto settled = settle_layout_of(session, options); !settled || session.number != 0) {
        return settled;
    }
    if (auto settled = settle_types(*session.heap, heap_options, !session.layout_steps.empty(), options.changed_types == "accept");
        !settled) {
        return settled;
    }
    return restore_durable_globals(engine, *session.heap, heap_options, options.changed_globals == "accept");
}

}  // namespace stillpoint
