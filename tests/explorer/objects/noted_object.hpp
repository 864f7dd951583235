#pragma once
// NotedObject: what the explored classes share: each change of theirs is a state of their part, and each is told apart.

#include <cstdint>

#include "objects/object_workload.hpp"
#include "stillpoint/pronto.hpp"

namespace stillpoint::explorer {

namespace pronto = stillpoint::pronto;

/// A noted object of a class with one part. Own has add_to(Digest&).
template <class Own>
class NotedObject : public pronto::object<Own> {
public:
    [[nodiscard]] std::uint64_t digest() const
    {
        Digest sum;
        sum.add(life_);
        sum.add(operations_);
        static_cast<const Own*>(this)->add_to(sum);
        return sum.value();
    }
    [[nodiscard]] std::uint64_t part() const noexcept { return part_; }

    /// The last operation has returned, or the object was made: that is durable.
    void acknowledge() const
    {
        ObjectNotes::acknowledged(part_, digest());
        ObjectNotes::number(part_, this, operations_ > 1);  // Making it takes no number.
    }

protected:
    /// `life` differs for each object that ever has this name. Own's constructor ends with changed().
    NotedObject(std::uint64_t part, std::uint64_t life) noexcept : part_(part), life_(life) {}

    /// The operation's changes are made, and it is not committed yet.
    void changed()
    {
        ++operations_;
        ObjectNotes::state(part_, digest());
    }

private:
    std::uint64_t part_;
    std::uint64_t life_;
    std::uint64_t operations_ = 0;
};

}  // namespace stillpoint::explorer
