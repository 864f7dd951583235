// Memory that held synchronisation objects and holds integers now must come back as it was, however the objects died; objects that
// are in use at a crash must come back fit for use. What reuse_test.py runs, ends and runs again:
//
//     sync_reuse POOL OPTIONS way NAME END     an object dies in that way; `check` must follow
//     sync_reuse POOL OPTIONS random SEED STEPS END     any of them, in any order; verifies what it finds first
//     sync_reuse POOL OPTIONS check
//
// END: exit, or kill (after a checkpoint). Exit code 1: a byte is not what the program stored; each is named.

#include <signal.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "marks_by_hand.h"
#include "reuse_objects.hpp"
#include "stillpoint/nvthreads.h"
#include "stillpoint/pronto.hpp"
#include "stillpoint/stillpoint.h"

namespace pronto = stillpoint::pronto;

namespace {

using namespace reuse;

/// Durable memory at `address`, of `bytes`: allocated until the heap gives it out again.
std::byte* block_at(const std::byte* address, std::size_t bytes)
{
    for (int i = 0; i < 100'000; ++i) {
        auto* const block = static_cast<std::byte*>(sp_malloc(bytes));
        if (block == address) {
            return block;
        }
    }
    std::printf("the heap does not give the block out again\n");
    std::exit(3);
}

class Monitor : public pronto::object<Monitor> {
public:
    static constexpr char type_name[] = "monitor";
    static constexpr auto methods() { return pronto::methods(pronto::method<&Monitor::set>("set")); }
    void set(int value)
    {
        run<&Monitor::set>(value, [&] { value_ = value; });
    }
    Objects& objects() { return objects_; }

private:
    int value_ = 0;
    Objects objects_{};
};

/// Where objects lay, all integers now.
void fill_in_fase(std::byte* block, std::size_t bytes)
{
    sp_fase_begin();
    put_integers(pieces()[0], block, bytes, 0);
    sp_fase_end();
}

std::byte* block_with_objects(std::size_t bytes, std::size_t offset)
{
    auto* const block = static_cast<std::byte*>(sp_calloc(1, bytes));
    initialise(*reinterpret_cast<Objects*>(block + offset));
    use(*reinterpret_cast<Objects*>(block + offset));
    return block;
}

void storage_way()
{
    constexpr std::size_t bytes = 1000;
    fill_in_fase(block_with_objects(bytes, 64), bytes);  // As after std::mutex's destructor, which calls nothing.
}

void shrink_way()
{
    constexpr std::size_t bytes = 1000;
    auto* block = block_with_objects(bytes, 640);
    block = static_cast<std::byte*>(sp_realloc(block, 600));
    block = static_cast<std::byte*>(sp_realloc(block, bytes));
    fill_in_fase(block, bytes);
}

void shrink_large_way()
{
    constexpr std::size_t bytes = 1 << 20;
    auto* block = block_with_objects(bytes, bytes - 4096);
    block = static_cast<std::byte*>(sp_realloc(block, 100'000));
    block = static_cast<std::byte*>(sp_realloc(block, bytes));
    fill_in_fase(block, bytes);
}

void move_way()
{
    constexpr std::size_t bytes = 1000;
    auto* const block = block_with_objects(bytes, 64);
    if (sp_realloc(block, 100'000) == block) {
        std::exit(3);
    }
    fill_in_fase(block_at(block, bytes), bytes);
}

void free_way()
{
    constexpr std::size_t bytes = 1000;
    auto* const block = block_with_objects(bytes, 64);
    sp_free(block);
    fill_in_fase(block_at(block, bytes), bytes);
}

void root_delete_way()
{
    constexpr std::size_t bytes = 1000;
    auto* const block = static_cast<std::byte*>(sp_root("objects", bytes));
    initialise(*reinterpret_cast<Objects*>(block));
    use(*reinterpret_cast<Objects*>(block));
    sp_root_delete("objects");
    fill_in_fase(block_at(block, bytes), bytes);
}

void nvmalloc_way()
{
    constexpr std::size_t bytes = 1000;
    auto* const block = static_cast<std::byte*>(nvmalloc(bytes, "objects"));
    initialise(*reinterpret_cast<Objects*>(block));
    use(*reinterpret_cast<Objects*>(block));
    nvmalloc(bytes, "objects");
    fill_in_fase(block_at(block, bytes), bytes);
}

void delete_object_way()
{
    auto& monitor = pronto::get_object<Monitor>("monitor");
    initialise(monitor.objects());
    use(monitor.objects());
    auto* const begin = reinterpret_cast<std::byte*>(&monitor);
    pronto::delete_object("monitor");
    // The object lies inside its block, after a record.
    sp_fase_begin();
    for (std::size_t bytes = sizeof(Monitor) + 64; bytes < sizeof(Monitor) + 1024; bytes += 64) {
        for (int tries = 0; tries < 1000; ++tries) {
            auto* const block = static_cast<std::byte*>(sp_aligned_alloc(64, bytes));
            if (block <= begin && begin + sizeof(Monitor) <= block + bytes) {
                put_integers(pieces()[0], block, bytes, 0);
                sp_fase_end();
                return;
            }
        }
    }
    std::exit(3);
}

/// Not dead: the opposite.
void in_use_way()
{
    auto* const block = static_cast<std::byte*>(sp_calloc(1, sizeof(Objects)));
    initialise(*reinterpret_cast<Objects*>(block));
    sp_fase_begin();
    pieces()[0] = {Piece::objects, 0, block, sizeof(Objects), 0, sizeof(Objects)};
    stored(&pieces()[0]);
    sp_fase_end();
    keep_in_use(*reinterpret_cast<Objects*>(block));
}

const std::map<std::string, void (*)()> ways = {
    {"storage", &storage_way},
    {"shrink", &shrink_way},
    {"shrink_large", &shrink_large_way},
    {"move", &move_way},
    {"free", &free_way},
    {"root_delete", &root_delete_way},
    {"nvmalloc", &nvmalloc_way},
    {"delete_object", &delete_object_way},
    {"in_use", &in_use_way},
};

/// The random form: pieces change between integers and objects, by every way, under a FASE each.
class Random {
public:
    explicit Random(unsigned seed) : random_(seed) {}

    void step()
    {
        Piece& piece = pieces()[random_() % pieces_max];
        if (piece.kind == Piece::unused) {
            const std::size_t bytes = random_() % 8 == 0 ? 70'000 + random_() % 200'000 : 16 + random_() % 3000;
            sp_fase_begin();
            put_integers(piece, static_cast<std::byte*>(sp_malloc(bytes)), bytes, random_());
            sp_fase_end();
        } else if (piece.kind == Piece::objects) {
            die(piece);
        } else if (random_() % 2 == 0 && piece.block_bytes >= sizeof(Objects) + 8) {
            make_objects(piece);
        } else {
            change_size(piece);
        }
        if (random_() % 16 == 0) {
            sp_checkpoint();
        }
    }
    unsigned number() { return static_cast<unsigned>(random_()); }

private:
    void make_objects(Piece& piece)
    {
        const std::uint64_t offset = random_() % (piece.block_bytes - sizeof(Objects)) / 8 * 8;
        sp_fase_begin();
        initialise(*reinterpret_cast<Objects*>(piece.block + offset));
        piece.kind = Piece::objects;
        piece.offset = offset;
        piece.bytes = sizeof(Objects);
        stored(&piece);
        sp_fase_end();
        use(piece.object());
    }

    void die(Piece& piece)
    {
        sp_fase_begin();
        if (random_() % 4 == 0) {
            pthread_cond_destroy(&piece.object().condition);
            pthread_mutex_destroy(&piece.object().mutex);
        }
        if (random_() % 2 == 0) {  // Storage that is used again.
            put_integers(piece, piece.block, piece.block_bytes, random_());
        } else {
            change_size(piece);
        }
        sp_fase_end();
    }

    /// By realloc, larger or smaller, or free and malloc.
    void change_size(Piece& piece)
    {
        const std::size_t bytes = piece.block_bytes / 2 + 8 + random_() % piece.block_bytes;
        sp_fase_begin();
        void* block = nullptr;
        if (random_() % 3 == 0) {
            sp_free(piece.block);
            block = sp_malloc(bytes);
        } else {
            block = sp_realloc(piece.block, bytes);
        }
        put_integers(piece, static_cast<std::byte*>(block), bytes, random_());
        sp_fase_end();
    }

    std::minstd_rand random_;
};

int run_random(unsigned seed, int steps)
{
    const int wrong = verify();
    if (wrong != 0) {
        return wrong;
    }
    sp_fase_begin();
    for (std::size_t i = 0; i < pieces_max; ++i) {  // Their threads are gone.
        if (Piece& piece = pieces()[i]; piece.kind == Piece::objects) {
            put_integers(piece, piece.block, piece.block_bytes, seed + i);
        }
    }
    sp_fase_end();
    Random random(seed);
    for (int i = 0; i < steps; ++i) {
        random.step();
    }
    for (std::size_t i = 0; i < pieces_max; ++i) {
        if (Piece& piece = pieces()[i]; piece.kind == Piece::objects && random.number() % 2 == 0) {
            keep_in_use(piece.object());
        }
    }
    return 0;
}

[[noreturn]] void end(const std::string& how, int outcome)
{
    std::fflush(stdout);
    if (outcome == 0 && how == "kill") {
        if (sp_checkpoint() != SP_OK) {
            std::printf("no checkpoint: %s\n", sp_last_error());
            std::exit(5);
        }
        raise(SIGKILL);
    }
    std::exit(outcome);  // While threads are in their waits.
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc < 4) {
        return 2;
    }
    if (sp_open(argv[1], argv[2]) != SP_OK) {
        std::fprintf(stderr, "%s\n", sp_last_error());
        return 4;
    }
    const std::string command = argv[3];
    if (command == "check") {
        end("exit", verify());
    }
    if (command == "way" && argc == 6) {
        ways.at(argv[4])();
        end(argv[5], 0);
    }
    if (command == "random" && argc == 7) {
        end(argv[6], run_random(static_cast<unsigned>(std::atoi(argv[4])), std::atoi(argv[5])));
    }
    return 2;
}
