// Shapes: members of a union, nested structures, arrays of structures, large objects, and freeing by hand.

#include <cstddef>
#include <iterator>

#include "core/units.hpp"
#include "typed/typed_stores.hpp"

namespace stillpoint::explorer {

namespace {

struct Pair {
    struct Shape* first;
    std::uint64_t number;
};
struct Shape {
    std::uint32_t tag;  ///< 1: `link` is there, else `number`
    union {
        Shape* link;
        std::uint64_t number;
    };
    Pair pairs[2];
};
struct Sheet {
    std::uint64_t marks[33'000];  ///< more than one zone of the pool
};
struct ShapeRoot {
    Shape* shapes;      ///< an array
    Sheet* sheet;
};
NVM_TYPE(Pair, NVM_HAS_PTR(Pair, first));
NVM_TYPE(Shape, NVM_HAS_PTR_IF(Shape, link, tag, 1), NVM_HAS_STRUCT(Shape, pairs, Pair));
NVM_TYPE(Sheet, NVM_HAS_TAIL(Sheet, marks));
NVM_TYPE(ShapeRoot, NVM_HAS_PTR(ShapeRoot, shapes), NVM_HAS_PTR(ShapeRoot, sheet));

class Shapes final : public TypedProgram {
public:
    void* make_root(NVM_POOL* pool) override
    {
        auto* const root = make<ShapeRoot>(pool, NVM_TYPE_ID(ShapeRoot));
        root->shapes = make<Shape>(pool, NVM_TYPE_ID(Shape), shapes * sizeof(Shape));
        return root;
    }

    void change(NVM_POOL* pool, void* root, unsigned /*part*/, Random& random) override
    {
        auto& all = *static_cast<ShapeRoot*>(root);
        Shape& shape = all.shapes[random() % shapes];
        switch (random() % 7) {
        case 0:
        case 1: {
            auto* const made = make<Shape>(pool, NVM_TYPE_ID(Shape));
            made->number = random();
            link(shape, made);
            break;
        }
        case 2: link(shape, shape.pairs[0].first); break;
        case 3:
            if (nvm_log(&shape, offsetof(Shape, pairs)) != SP_OK) {
                refused("a union is refused");
            }
            shape.tag = 0;
            shape.number = random();
            break;
        case 4: set(shape.pairs[random() % 2].first, &all.shapes[random() % shapes]); break;  // Into an object.
        case 5: set(shape.pairs[0].first, shape.tag == 1 ? shape.link : nullptr); break;
        default:
            if (all.sheet == nullptr) {
                auto* const sheet = make<Sheet>(pool, NVM_TYPE_ID(Sheet));
                sheet->marks[random() % std::size(sheet->marks)] = random();
                sheet->marks[word_of_second_zone] = random();
                set(all.sheet, sheet);
            } else {
                Sheet* const sheet = all.sheet;
                set(all.sheet, static_cast<Sheet*>(nullptr));
                if (random() % 2 == 0 && nvm_free(pool, sheet) != SP_OK) {
                    refused("a sheet is not freed");
                }
            }
            break;
        }
    }

    [[nodiscard]] std::uint64_t digest(const void* root, unsigned /*part*/) const override
    {
        const auto& all = *static_cast<const ShapeRoot*>(root);
        BoundedDigest digest;
        for (std::size_t i = 0; i < shapes; ++i) {
            const Shape& shape = all.shapes[i];
            digest.add(shape.tag == 1 ? 1 : 0);
            digest.add(shape.tag != 1 ? shape.number : digest_of(all, shape.link));
            for (const Pair& pair : shape.pairs) {
                digest.add(digest_of(all, pair.first));
            }
        }
        if (all.sheet != nullptr) {
            digest.add(checksum64(all.sheet->marks, sizeof all.sheet->marks, 0));
        }
        return digest.value();
    }

private:
    static constexpr std::size_t shapes = 3;
    /// There the zone has the header of its first block, unless it is a part of a larger one.
    static constexpr std::size_t word_of_second_zone = (256 * kib - 48) / sizeof(std::uint64_t);

    static std::uint64_t digest_of(const ShapeRoot& all, const Shape* shape)
    {
        if (shape == nullptr) {
            return 0;
        }
        const bool is_of_array = shape >= all.shapes && shape < all.shapes + shapes;
        return is_of_array ? static_cast<std::uint64_t>(shape - all.shapes) + 1 : shape->number + 100;
    }

    static void link(Shape& shape, Shape* other)
    {
        if (nvm_log(&shape, offsetof(Shape, pairs)) != SP_OK) {
            refused("a union is refused");
        }
        shape.tag = 1;
        shape.link = other != &shape ? other : nullptr;
    }
};

}  // namespace

std::unique_ptr<TypedProgram> make_shapes() { return std::make_unique<Shapes>(); }

}  // namespace stillpoint::explorer
