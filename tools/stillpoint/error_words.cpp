#include "error_words.hpp"

#include <algorithm>
#include <iterator>

#include "exit_codes.hpp"

namespace stillpoint::tool {

namespace {

struct CodeWords {
    int exit_code;
    std::string_view code;
    std::string_view next;
};

constexpr CodeWords code_words[] = {
    {exit_codes::found, "found", "read the report: it names each place"},
    {exit_codes::usage, "usage", "correct the command line: `stillpoint COMMAND --help` lists what the command takes"},
    {exit_codes::data_error, "data_error",
     "`stillpoint check POOL` tells what is damaged; restore the pool from a copy, or use the program and "
     "the version that made it"},
    {exit_codes::no_input, "no_input", "check the path; only `stillpoint run` and sp_open create pools"},
    {exit_codes::unavailable, "unavailable", "`stillpoint doctor FOLDER` tells what is available there"},
    {exit_codes::defect, "defect", "report it as a defect of Stillpoint, with the command and its output"},
    {exit_codes::system_error, "system_error", "free some memory, or raise the limit (`ulimit -v`), and try again"},
    {exit_codes::no_space, "no_space", "free some space, raise the limit that the message names, or choose a name that is not taken"},
    {exit_codes::input_output, "input_output", "check the disk, and where the output goes; the kernel's log may say more"},
    {exit_codes::in_use, "in_use", "wait for the process that has the pool open, or end it"},
    {exit_codes::no_permission, "no_permission", "run the command as the owner of the pool"},
    {exit_codes::not_runnable, "not_runnable", "name a program of this machine that is dynamically linked and has no set-uid bit"},
    {exit_codes::program_missing, "program_missing", "check the name of the program; a name without a slash is looked up in PATH"},
};

const CodeWords* find(int exit_code)
{
    const auto* const found = std::ranges::find(code_words, exit_code, &CodeWords::exit_code);
    return found == std::end(code_words) ? nullptr : found;
}

}  // namespace

std::string_view code_word_for(sp_error code)
{
    switch (code) {
    case SP_OK: break;
    case SP_E_INVALID_ARGUMENT: return "invalid_argument";
    case SP_E_NOT_OPEN: return "not_open";
    case SP_E_ALREADY_OPEN: return "already_open";
    case SP_E_POOL_MISSING: return "pool_missing";
    case SP_E_POOL_EXISTS: return "pool_exists";
    case SP_E_NOT_A_POOL: return "not_a_pool";
    case SP_E_POOL_TRUNCATED: return "pool_truncated";
    case SP_E_POOL_VERSION: return "pool_version";
    case SP_E_POOL_ENGINE: return "pool_engine";
    case SP_E_POOL_CORRUPT: return "pool_corrupt";
    case SP_E_POOL_LOCKED: return "pool_locked";
    case SP_E_POOL_READ_ONLY: return "pool_read_only";
    case SP_E_WINDOW_TAKEN: return "window_taken";
    case SP_E_NO_SPACE: return "no_space";
    case SP_E_IO: return "io";
    case SP_E_NO_MEMORY: return "no_memory";
    case SP_E_POOL_FULL: return "pool_full";
    case SP_E_UNSUPPORTED: return "unsupported";
    case SP_E_HANDLE_MISSING: return "handle_missing";
    case SP_E_HANDLE_SIZE: return "handle_size";
    case SP_E_DIRECTORY_FULL: return "directory_full";
    case SP_E_INSIDE_FASE: return "inside_fase";
    case SP_E_TIMED_OUT: return "timed_out";
    case SP_E_DETACHED: return "detached";
    case SP_E_GLOBALS_CHANGED: return "globals_changed";
    case SP_E_PROGRAM_REFUSED: return "program_refused";
    case SP_E_NOT_DURABLE_ADDRESS: return "not_durable_address";
    case SP_E_OBJECT_TYPE: return "object_type";
    case SP_E_OBJECT_REFUSED: return "object_refused";
    case SP_E_NOT_DETERMINISTIC: return "not_deterministic";
    case SP_E_CONFLICT: return "conflict";
    case SP_E_TRANSACTION_TOO_LARGE: return "transaction_too_large";
    case SP_E_NO_TRANSACTION: return "no_transaction";
    case SP_E_ABORTED: return "aborted";
    case SP_E_LAYOUT: return "layout";
    case SP_E_DIVERGED: return "diverged";
    }
    return "unknown";
}

std::string_view code_word_for(int exit_code)
{
    const CodeWords* const words = find(exit_code);
    return words == nullptr ? "unknown" : words->code;
}

std::string_view next_step_for(int exit_code)
{
    const CodeWords* const words = find(exit_code);
    return words == nullptr ? "docs/guide/exit-codes.md explains the exit code" : words->next;
}

}  // namespace stillpoint::tool
