// Named objects are made and deleted; the directory must hold just those that the root lists.

#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

constexpr std::size_t name_count = 30;

template <class Memory>
struct Names {
    typename Memory::template Field<std::uint64_t> serial;
    typename Memory::template Field<std::uint64_t> present[name_count];  ///< serial number of the object, 0: none
};

/// Filled once, and then only read.
struct Object {
    std::uint64_t serial;
    std::uint64_t words[40];
};

template <class Memory>
class Handles final : public WorkloadOn<Memory, Names<Memory>> {
    using Root = Names<Memory>;

    static std::string name_of(std::size_t index) { return "object " + std::string(index % 7, 'x') + std::to_string(index); }

    void change(Root& root, Random& random) override
    {
        if (random() % 2 == 0) {  // An epoch may leave the directory as it was.
            ++root.serial;
            Memory::stored(root.serial);
            return;
        }
        for (int i = 0; i < 2; ++i) {
            const std::size_t index = random() % name_count;
            const std::string name = name_of(index);
            if (root.present[index] != 0) {
                sp_root_delete(name.c_str());
                root.present[index] = 0;
                Memory::stored(root.present[index]);
                continue;
            }
            auto& object = *Memory::template root<Object>(name.c_str());
            ++root.serial;
            object.serial = root.serial;
            for (std::uint64_t& word : object.words) {
                word = object.serial;
            }
            root.present[index] = object.serial;
            Memory::filled(object);
            Memory::stored(root.serial);
            Memory::stored(root.present[index]);
        }
    }

    std::string problem_of(const Root& root, const FindObject& find) const override
    {
        for (std::size_t i = 0; i < name_count; ++i) {
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

    std::uint64_t digest_of(const Root& root, const FindObject&) const override
    {
        Digest digest;
        for (const std::uint64_t serial : root.present) {
            digest.add(serial);
        }
        return digest.value();
    }
};

}  // namespace

WorkloadMakers handles() { return over_memory_without_transactions<Handles>(); }

}  // namespace stillpoint::explorer
