#pragma once
// The common part of the programs over durable objects: a named object that may not be there, and snapshots.

#include <stdexcept>
#include <string>
#include <utility>

#include "objects/noted_object.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::explorer {

/// One object of a class, found or made.
template <class Object>
class Slot {
public:
    Slot(std::string name, std::uint64_t number) : name_(std::move(name)), part_(number * parts_of_an_object) {}

    void find() { object_ = pronto::find_object<Object>(name_.c_str()); }
    [[nodiscard]] bool exists() const noexcept { return object_ != nullptr; }
    /// Made where there is none.
    [[nodiscard]] Object& get(Random& random)
    {
        if (object_ == nullptr) {
            object_ = &pronto::get_object<Object>(name_.c_str(), part_, random());
            object_->acknowledge();
        }
        return *object_;
    }
    void remove()
    {
        ObjectNotes::state(part_, absent);
        object_ = nullptr;
        pronto::delete_object(name_.c_str());
        ObjectNotes::acknowledged(part_, absent);
    }
    void add_to(PartDigests& digests) const { digests[part_] = object_ != nullptr ? object_->digest() : absent; }

private:
    std::string name_;
    std::uint64_t part_;
    Object* object_ = nullptr;
};

/// Two snapshots of nine operations.
inline void take_snapshot_sometimes(Random& random)
{
    if (random() % 9 < 2 && sp_pronto_snapshot() != SP_OK) {
        throw std::runtime_error(sp_last_error());
    }
}

}  // namespace stillpoint::explorer
