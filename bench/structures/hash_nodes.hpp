#pragma once
// The nodes of the hash map: how a key, a value and the next node lie in memory, by what the engine rolls back.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "../engines/engine.hpp"

namespace bench {

/// Values of any size after the key. Where the engine rolls back only what it logs by name, nodes never change once they are linked.
template <MemoryEngine E>
class ByteNodes {
public:
    struct Node;

private:
    using NodeLink = std::conditional_t<E::rolls_back_bytes, typename E::template Durable<Node*>, Node*>;

public:
    struct Node {
        NodeLink next;
        std::uint64_t key;
    };
    static constexpr bool may_change = E::rolls_back_bytes;

    explicit ByteNodes(std::size_t value_bytes) : value_bytes_(value_bytes), blocks_(value_at + value_bytes) {}

    [[nodiscard]] std::size_t value_bytes() const noexcept { return value_bytes_; }
    static Node* next_of(const Node& node) noexcept { return node.next; }
    static std::uint64_t key_of(const Node& node) noexcept { return node.key; }
    static void link(Node& node, Node* next) { node.next = next; }
    void read(const Node& node, std::span<std::byte> out) const noexcept
    {
        std::memcpy(out.data(), reinterpret_cast<const std::byte*>(&node) + value_at, out.size());
    }
    void write(Node& node, std::span<const std::byte> value) const
    {
        E::about_to_write(value_of(node), value.size());
        std::memcpy(value_of(node), value.data(), value.size());
    }
    Node* make(std::uint64_t key, std::span<const std::byte> value, Node* next) const
    {
        Node* const node = blocks_.make();
        node->key = key;
        if constexpr (may_change) {
            E::init(node->next, next);
        } else {
            node->next = next;
        }
        std::memcpy(value_of(*node), value.data(), value.size());
        return node;
    }
    /// A node with the same key and value, in front of another node.
    Node* copy(Node& node, Node* next) const { return make(node.key, {value_of(node), value_bytes_}, next); }

private:
    static constexpr std::size_t value_at = sizeof(NodeLink) + sizeof(std::uint64_t);
    static std::byte* value_of(Node& node) noexcept { return reinterpret_cast<std::byte*>(&node) + value_at; }

    std::size_t value_bytes_;
    typename E::template Blocks<Node> blocks_;
};

/// Values of 8 bytes, logged together with the next node: both change in place. The key lies in the line's spare bytes.
template <MemoryEngine E>
class PairNodes {
public:
    struct Node;
    static constexpr bool may_change = true;
    static constexpr std::size_t value_bytes() noexcept { return sizeof(std::uint64_t); }

private:
    struct Pair {
        Node* next;
        std::uint64_t value;
    };

public:
    struct Node {
        typename E::template Durable<Pair> pair;
    };

    explicit PairNodes(std::size_t) {}

    static Node* next_of(const Node& node) noexcept { return node.pair.get().next; }
    static std::uint64_t key_of(const Node& node) noexcept { return node.pair.template spare<std::uint64_t>(); }
    static void link(Node& node, Node* next) { node.pair = Pair{next, node.pair.get().value}; }
    void read(const Node& node, std::span<std::byte> out) const noexcept
    {
        const std::uint64_t value = node.pair.get().value;
        std::memcpy(out.data(), &value, sizeof value);
    }
    void write(Node& node, std::span<const std::byte> value) const { node.pair = Pair{next_of(node), number_in(value)}; }
    Node* make(std::uint64_t key, std::span<const std::byte> value, Node* next) const
    {
        Node* const node = blocks_.make_unnoted();
        node->pair.set_spare(key);
        E::init(node->pair, Pair{next, number_in(value)});
        return node;
    }

private:
    static std::uint64_t number_in(std::span<const std::byte> value) noexcept
    {
        std::uint64_t number = 0;
        std::memcpy(&number, value.data(), sizeof number);
        return number;
    }

    typename E::template Blocks<Node> blocks_;
};

}  // namespace bench
