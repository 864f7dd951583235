// Rings: objects that point at each other, which reference counts never free.

#include <iterator>
#include <stdexcept>

#include "typed/typed_stores.hpp"

namespace stillpoint::explorer {

namespace {

struct RingNode {
    RingNode* next;
    RingNode* previous;
    std::uint64_t value;
};
struct RingRoot {
    RingNode* rings[3];
};
NVM_TYPE(RingNode, NVM_HAS_PTR(RingNode, next), NVM_HAS_PTR(RingNode, previous));
NVM_TYPE(RingRoot, NVM_HAS_PTR(RingRoot, rings));

class Rings final : public TypedProgram {
public:
    void* make_root(NVM_POOL* pool) override { return make<RingRoot>(pool, NVM_TYPE_ID(RingRoot)); }

    void change(NVM_POOL* pool, void* root, unsigned /*part*/, Random& random) override
    {
        auto& rings = static_cast<RingRoot*>(root)->rings;
        RingNode*& ring = rings[random() % std::size(rings)];
        switch (ring == nullptr ? 0 : random() % 5) {
        case 0: {
            RingNode* first = nullptr;
            for (std::uint64_t length = 1 + random() % 3; length > 0; --length) {
                first = insert(pool, first, random());
            }
            set(ring, first);  // The old one cannot be reached any more.
            break;
        }
        case 1:
        case 2: set(ring, insert(pool, ring, random())); break;
        case 3: {
            RingNode* const gone = ring;
            set(ring, gone->next == gone ? nullptr : gone->next);
            set(gone->previous->next, gone->next);
            set(gone->next->previous, gone->previous);
            break;
        }
        default: set(ring->value, random()); break;
        }
    }

    [[nodiscard]] std::uint64_t digest(const void* root, unsigned /*part*/) const override
    {
        BoundedDigest digest;
        for (const RingNode* const ring : static_cast<const RingRoot*>(root)->rings) {
            digest.add(0);
            const RingNode* node = ring;
            while (node != nullptr) {
                digest.add(node->value);
                if (node->next->previous != node) {
                    throw std::runtime_error("a ring is broken");
                }
                node = node->next == ring ? nullptr : node->next;
            }
        }
        return digest.value();
    }

private:
    static RingNode* insert(NVM_POOL* pool, RingNode* before, std::uint64_t value)
    {
        // There are two sizes: a collection frees a ring of both in two steps.
        auto* const node = make<RingNode>(pool, NVM_TYPE_ID(RingNode), (1 + value % 2 * 3) * sizeof(RingNode));
        node->value = value;
        node->next = before == nullptr ? node : before;
        node->previous = before == nullptr ? node : before->previous;
        if (before != nullptr) {
            set(before->previous->next, node);
            set(before->previous, node);
        }
        return node;
    }
};

}  // namespace

std::unique_ptr<TypedProgram> make_rings() { return std::make_unique<Rings>(); }

}  // namespace stillpoint::explorer
