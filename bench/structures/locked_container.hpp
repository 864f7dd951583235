#pragma once
// A container of the standard library in an engine's memory, under one lock: a volatile container that a program makes durable
// by an allocator and a lock around each operation.

#include <cstddef>
#include <new>

#include "../engines/engine.hpp"

namespace bench {

/// The container object itself lies in the named object: it is made at the first time only, and found again after a restart.
/// It is never destroyed.
template <class Container, MemoryEngine E>
class LockedContainer {
public:
    explicit LockedContainer(const char* name) : place_(static_cast<Place*>(E::root(name, sizeof(Place))))
    {
        typename E::template Operation<1> operation;
        operation.lock(place_->mutex);
        if (!place_->is_made) {
            ::new (static_cast<void*>(place_->memory)) Container();
            place_->is_made = true;
        }
    }

    /// One operation: use(container).
    template <class Use>
    auto update(Use use)
    {
        typename E::template Operation<1> operation;
        operation.lock(place_->mutex);
        return use(container());
    }
    template <class Use>
    auto read(Use use)
    {
        typename E::template Reading<1> reading;
        reading.lock(place_->mutex);
        return use(static_cast<const Container&>(container()));
    }

private:
    struct Place {
        typename E::Mutex mutex;
        typename E::template Durable<bool> is_made;
        alignas(Container) std::byte memory[sizeof(Container)];
    };

    Container& container() noexcept { return *std::launder(reinterpret_cast<Container*>(place_->memory)); }

    Place* place_;
};

}  // namespace bench
