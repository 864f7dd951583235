#ifndef STILLPOINT_NVHOOKS_ABI_H
#define STILLPOINT_NVHOOKS_ABI_H
/* The agreement between instrumented code and a runtime. The compiler pass, the runtime, the shims of layers/
 * and the tests include this file; it includes nothing. C and C++.
 *
 * Instrumented code calls the hooks of [NVHooks Table 4.1] by the names below, as far as the layer's
 * YAML asks for them (docs/guide/nvhooks.md); the layer's shim defines them. Sizes are in bytes. */

#define NVHOOKS_ABI_VERSION 2

/* ---- The hooks -------------------------------------------------------------------------------
 *
 * bool  nvhooks_is_nvm(const void *address);
 *     Whether `address` is durable memory. The other hooks are called only if it is. Pure: the same
 *     answer for the same address while the program runs.
 * void *nvhooks_to_absolute_ptr(uintptr_t pointer);
 *     The address that a relative pointer stands for. Pure within one FASE.
 * void  nvhooks_pre_nvm_read(const void *address, size_t size);
 * void  nvhooks_post_nvm_read(const void *address, size_t size);
 * void  nvhooks_pre_nvm_write(void *address, size_t size);
 * void  nvhooks_post_nvm_write(void *address, size_t size);
 *     Around an access, or around several that were merged; with absolute addresses.
 * void  nvhooks_pre_nvm_write_gathered(void *address, size_t size);
 * void  nvhooks_writes_gathered(void);
 *     Not in the paper: several writes follow; each is told of by the first instead of pre_nvm_write, and none of them happens
 *     before the second has returned. So a runtime waits once for all of them.
 * void  nvhooks_pointer_stored(void *location, const void *value);
 *     Not in the paper: after a pointer (or a vector of them, one call for each) was stored to
 *     durable memory. For `stillpoint lint`.
 * void  nvhooks_blocking_call(const char *function, uintptr_t first, uintptr_t second);
 *     Not in the paper either: before a call of a function that the layer lists as one that may block, with its
 *     first two arguments; 0 for what is neither a pointer nor an integer. */

/* ---- The window: addresses whose bits `shift` and up are `index` (stillpoint.h, SP_WINDOW_…) -------- */
#define NVHOOKS_WINDOW_SHIFT 40
#define NVHOOKS_WINDOW_INDEX 0x48ULL
#define NVHOOKS_WINDOW_INDEX_UNDER_TSAN 0x58ULL

/* ---- Cards: one byte for each 64 bytes of the window, and a coarse one for each 4 KiB ----------------
 *
 * Bit 0 of a card: its memory was written since the collector took the card. The other bits are the collector's own; a mark
 * stores 1. Order of a store by instrumented code: store; test the card; if bit 0 is clear, set the card, and then the coarse
 * card, unless it is set already. The collector: take the coarse cards; membarrier; take the cards below those; membarrier; copy.
 * A mark may come late, but never after the release that ends its FASE, so in a quiescent
 * state every mark is there. The tables lie at fixed addresses below the window, the coarse one after the fine one, so that code
 * computes a card's address from constants: (address >> NVHOOKS_CARD_SHIFT) + bias. */
#define NVHOOKS_CARD_SHIFT 6
#define NVHOOKS_CARD_WRITTEN 1
#define NVHOOKS_CARD_TABLE_BYTES (1ULL << (NVHOOKS_WINDOW_SHIFT - NVHOOKS_CARD_SHIFT))
#define NVHOOKS_CARD_TABLE_BELOW_WINDOW 0x1000000000ULL /* 64 GiB */
#define NVHOOKS_CARD_TABLE_FOR(index) (((index) << NVHOOKS_WINDOW_SHIFT) - NVHOOKS_CARD_TABLE_BELOW_WINDOW)
#define NVHOOKS_CARD_BIAS_FOR(index) (NVHOOKS_CARD_TABLE_FOR(index) - ((index) << (NVHOOKS_WINDOW_SHIFT - NVHOOKS_CARD_SHIFT)))
#define NVHOOKS_COARSE_SHIFT 12
#define NVHOOKS_COARSE_TABLE_BYTES (1ULL << (NVHOOKS_WINDOW_SHIFT - NVHOOKS_COARSE_SHIFT))
#define NVHOOKS_COARSE_TABLE_FOR(index) (NVHOOKS_CARD_TABLE_FOR(index) + NVHOOKS_CARD_TABLE_BYTES)
#define NVHOOKS_COARSE_BIAS_FOR(index) (NVHOOKS_COARSE_TABLE_FOR(index) - ((index) << (NVHOOKS_WINDOW_SHIFT - NVHOOKS_COARSE_SHIFT)))

/* ---- What an instrumented object says of itself ------------------------------------------------------
 *
 * One record for each instrumented translation unit, in the ELF section NVHOOKS_MODULE_SECTION of the
 * program or library. The runtime refuses the tracker `hooks` where the program has none, or one that
 * it cannot serve. All fields little endian; the section is an array of these records. */
#define NVHOOKS_MODULE_SECTION "sp_nvhooks"
#define NVHOOKS_MODULE_MAGIC 0x314b4f4f48564e53ULL /* "SNVHOOK1" */

#define NVHOOKS_MODULE_MARKS_CARDS 1u /* writes are marked in the card table, in line */
#define NVHOOKS_MODULE_CALLS_HOOKS 2u /* accesses call nvhooks_… */

/* For the command that links, in no program's memory. Strings "CALLEE|PLACE|TEXT": calls of functions that may write durable
 * memory unseen; CALLEE is empty where no other unit can have hooks for it. And XXH3 (64 bits) of the names of the functions that
 * instrumented units define, and that others may call. */
#define NVHOOKS_UNKNOWN_CALLS_SECTION ".stillpoint.unknown_calls"
/* Strings "WITHIN|CLONE|PLACE|TEXT" about functions inside transactions, by the names of their clones; those of one unit alone are
 * followed by @ and the unit. With a text: at PLACE in WITHIN a transaction becomes irrevocable, unless the program has CLONE. Without
 * one: WITHIN calls CLONE; where WITHIN is empty, CLONE is the body of a transaction. */
#define NVHOOKS_IRREVOCABLE_SECTION ".stillpoint.irrevocable"
#define NVHOOKS_FUNCTIONS_SECTION ".stillpoint.functions"

struct nvhooks_module {
    unsigned long long magic;
    unsigned int abi_version;
    unsigned int flags;
    unsigned int card_shift; /* 0 without NVHOOKS_MODULE_MARKS_CARDS */
    unsigned int stores_hooked; /* how many accesses of the unit have a hook, after the optimisations */
    char layer[32]; /* name of the layer's YAML, zero-terminated */
    char source[64]; /* end of the source file's path, zero-terminated */
};

#endif
