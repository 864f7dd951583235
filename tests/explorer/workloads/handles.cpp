// Named objects are made and deleted; the directory must hold just those that the root lists.

#include "stillpoint/stillpoint.h"
#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

class Handles final : public Workload {
    static constexpr std::size_t names = 30;
    struct Root {
        std::uint64_t serial;
        std::uint64_t present[names];  ///< serial number of the object, 0: none
    };
    struct Object {
        std::uint64_t serial;
        std::uint64_t words[40];
    };

    std::size_t root_bytes() const override { return sizeof(Root); }

    static std::string name_of(std::size_t index)
    {
        return "object " + std::string(index % 7, 'x') + std::to_string(index);
    }

    void perform(void* memory, Random& random) override
    {
        auto& root = *static_cast<Root*>(memory);
        for (int i = 0; i < 2; ++i) {
            const std::size_t index = random() % names;
            const std::string name = name_of(index);
            if (root.present[index] != 0) {
                sp_root_delete(name.c_str());
                root.present[index] = 0;
                stored(root.present[index]);
                continue;
            }
            auto& object = *static_cast<Object*>(sp_root(name.c_str(), sizeof(Object)));
            object.serial = ++root.serial;
            for (std::uint64_t& word : object.words) {
                word = object.serial;
            }
            root.present[index] = object.serial;
            stored(object);
            stored(root.serial);
            stored(root.present[index]);
        }
    }

    std::string check(const void* memory, const FindObject& find) const override
    {
        const auto& root = *static_cast<const Root*>(memory);
        for (std::size_t i = 0; i < names; ++i) {
            const auto* const object = static_cast<const Object*>(find(name_of(i)));
            if ((object != nullptr) != (root.present[i] != 0)) {
                return "the directory and the root differ about " + name_of(i);
            }
            if (object == nullptr) {
                continue;
            }
            if (!may_be_followed(object) || object->serial != root.present[i] || object->words[0] != object->serial ||
                object->words[39] != object->serial) {
                return name_of(i) + " leads to another object";
            }
        }
        return "";
    }

    std::uint64_t digest(const void* memory, const FindObject&) const override
    {
        Digest digest;
        for (const std::uint64_t serial : static_cast<const Root*>(memory)->present) {
            digest.add(serial);
        }
        return digest.value();
    }
};

}  // namespace

std::unique_ptr<Workload> make_handles() { return std::make_unique<Handles>(); }

}  // namespace stillpoint::explorer
