#pragma once
// The durable index: what word-index keeps in memory that survives a crash.
//
// It is an ordinary data structure of an ordinary pthread program: native pointers, a mutex in
// every bucket, one more for the list of files. All of it, mutexes included, lives in durable
// memory. Each critical section below is one FASE: after a crash it has happened whole or not at all.
//
// Why the index is right after a crash at any instruction:
//
//   take()    One FASE: the position in the list moves on and the file becomes `taken`.
//   (reading) No lock is held and nothing durable is written: the words of the file are counted
//             in the worker's own volatile memory until the file has been read to its end.
//   post()    One FASE for each word of the file: find or make the word, append one posting
//             (file, count, first line). The block that the posting goes to, when it must be
//             allocated or moved, is allocated in the same FASE, so none can leak.
//   finish()  One FASE: the file becomes `done` and the count of finished files goes up.
//
// A crash returns the memory to a moment when no thread was inside a critical section. Then a file is
//   waiting   nothing of it is in the index, and the position has not passed it: it will be taken;
//   done      every posting of it is in the index (each post() ended before finish() began, and a
//             recovered moment has everything before it), and it is never taken again;
//   taken     some of its postings are in the index. The next run takes these files first, again.
//
// A repeated file is harmless, because a posting is a value, not an increment. It says "this word
// occurs `count` times in this file", computed from the whole file. A repeated file looks for its own
// posting in each word and overwrites it; only where there is none it appends. So posting a
// file twice is the same as posting it once. Files that were never interrupted (all but at most one
// for each worker) cannot have a posting yet and skip the search.

#include <cstdint>
#include <pthread.h>
#include <string>
#include <string_view>
#include <vector>

#include "tree.hpp"

namespace word_index {

struct Posting {
    std::uint32_t file;  ///< position in Index::files
    std::uint32_t count;
    std::uint32_t first_line;  ///< counted from 1
};

/// A word and where it occurs. Its text follows the structure in the same block.
struct Word {
    Word* next;
    Posting* postings;  ///< in the order of posting, not of files
    std::uint64_t hash;
    std::uint32_t posting_count;
    std::uint32_t posting_capacity;
    std::uint32_t length;
    std::uint32_t unused;  ///< 0: padding would bring bytes of the stack into durable memory, which the lint takes for pointers

    [[nodiscard]] char* text() noexcept { return reinterpret_cast<char*>(this + 1); }
    [[nodiscard]] std::string_view view() const noexcept { return {reinterpret_cast<const char*>(this + 1), length}; }
};

struct Bucket {
    pthread_mutex_t lock;  ///< guards the chain, its words and their postings
    Word* first;
};

enum class FileState : std::uint8_t { waiting, taken, done, unreadable };

struct File {
    const char* path;  ///< relative to Index::directory
    std::uint64_t size_bytes;
    std::int64_t modified_ns;
    FileState state;
};

/// The object after the root. `magic` is written last, in the FASE that builds everything else.
struct Index {
    std::uint64_t magic;
    const char* directory;
    File* files;  ///< sorted by path, so that a file's number is the same in every run
    Bucket* buckets;
    std::uint32_t file_count;
    std::uint32_t next_file;      ///< first file that no worker has taken; guarded by list_lock
    std::uint32_t files_done;     ///< done or unreadable; guarded by list_lock
    std::uint32_t bucket_count;   ///< a power of two
    pthread_mutex_t list_lock;
};

/// A file that a worker is to read and post.
struct Task {
    std::uint32_t file;
    bool repeated;  ///< an earlier run was interrupted while it posted this file
};

/// The index and what one run needs to work on it. Members may be called by any thread.
class Indexer {
public:
    /// Finds the index in durable memory, or builds an empty one over `tree`. False: `error` says why
    /// (the pool holds the index of another directory, or there is no memory).
    [[nodiscard]] bool open(const Tree& tree, std::string& error);

    /// False: every file has been taken.
    [[nodiscard]] bool take(Task& task);
    /// Adds one posting. False: no memory.
    [[nodiscard]] bool post(std::string_view word, const Posting& posting, bool repeated);
    /// Returns how many files are finished now.
    std::uint32_t finish(std::uint32_t file, FileState state);

    [[nodiscard]] const Index& index() const noexcept { return *index_; }
    /// Files that an earlier run had taken and not finished.
    [[nodiscard]] std::uint32_t interrupted() const noexcept { return interrupted_; }

private:
    [[nodiscard]] bool build(const Tree& tree);

    Index* index_ = nullptr;
    std::vector<std::uint32_t> repeat_;  ///< interrupted files still to be taken; guarded by list_lock
    std::uint32_t interrupted_ = 0;
};

}  // namespace word_index
