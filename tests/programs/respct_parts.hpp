#pragma once
// The parts of programs with restart points, as their sources share them: what is durable, and how it is found.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "respct_program.h"
#include "stillpoint/respct.hpp"
#include "stillpoint/stillpoint.h"

namespace respct = stillpoint::respct;

template <class Value>
using Logged = respct::logged<Value>;

struct Chunk;
struct Node;

struct Locals {
    Logged<std::uint64_t> count, torn;
    Logged<std::uint64_t> touched[respct_parts_max];
    Logged<std::uint64_t> by_section[respct_sections_max];
};
using Frame = respct::thread_frame<Locals>;

/// The common state of every part, under its lock.
struct Head {
    Logged<std::uint64_t> touched[respct_workers_max];
    Logged<std::uint64_t> count;  ///< of a stack's nodes, of a log's entries
    Logged<std::uint64_t> sum;    ///< of what the nodes hold
    Logged<Node*> top;
    Logged<Chunk*> newest;      ///< of the pages that were read
    Logged<std::uint64_t> there;  ///< a bit for each name
};

/// A lock and a condition that threads meet at, and how often.
struct Meeting {
    respct::mutex lock;
    respct::condition changed;
    Logged<std::uint64_t> put, taken;
};

struct Node {
    Node* next;
    std::uint64_t number, inverted, room[9];
};

struct Word {
    Logged<std::uint64_t> value;
};

struct Entry {
    std::uint64_t number, inverted;
};

struct Part {
    respct_part plan;
    Head* head;
    Word* words;
    Entry* entries;
    Meeting* meeting;
};

extern std::array<Part, respct_parts_max> parts;
extern std::uint64_t roots;

inline std::string name_of(const char* what, unsigned number) { return what + std::to_string(number); }

template <class T>
T* found(const char* what, unsigned number, std::size_t count = 1)
{
    ++roots;
    return respct::root<T>(name_of(what, number).c_str(), count);
}

struct respct_worker {
    unsigned id;
    Frame frame;
};

inline void touch(unsigned part, respct_worker& worker)
{
    ++parts[part].head->touched[worker.id];
    ++worker.frame->touched[part];
}

/// The file that pages are read from.
void make_pages();

/// Each returns the blocks that the part has besides its roots.
std::uint64_t verify_chunks(const Part& part);
std::uint64_t verify_names(const Part& part);
void verify_queue(const Part& part);
