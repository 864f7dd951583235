#ifndef MARKS_BY_HAND_H
#define MARKS_BY_HAND_H
/* For a test program that marks what it writes by hand: the record that the compiler pass would
 * leave in it, so that the tracker `hooks` takes it. One file of a program includes this. */

#include "nvhooks/abi/nvhooks_abi.h"
#include "stillpoint/nvhooks.h"

#ifndef RECORD_MAGIC
#define RECORD_MAGIC NVHOOKS_MODULE_MAGIC
#endif
#ifndef RECORD_ABI
#define RECORD_ABI NVHOOKS_ABI_VERSION
#endif
#ifndef RECORD_FLAGS
#define RECORD_FLAGS NVHOOKS_MODULE_MARKS_CARDS
#endif
#ifndef RECORD_CARD_SHIFT
#define RECORD_CARD_SHIFT NVHOOKS_CARD_SHIFT
#endif
#ifndef RECORD_LAYER
#define RECORD_LAYER "pmthreads"
#endif

__attribute__((section(NVHOOKS_MODULE_SECTION), used)) static const struct nvhooks_module marks_by_hand_record = {
    RECORD_MAGIC, RECORD_ABI, RECORD_FLAGS, RECORD_CARD_SHIFT, 1, RECORD_LAYER, "by hand"};

#endif
