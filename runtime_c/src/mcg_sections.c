/* mcugen runtime: start-up of what the linker fragment places.
 *
 * Independent of any model and of the board: the linker tells what there is, and what is absent costs nothing.
 * Not here: caches, MPU, and the user's own .data and .bss.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_sections.h"

#if defined(__ELF__)

#define MCG_WEAK __attribute__((weak))
#define MCG_WEAK_HIDDEN __attribute__((weak, visibility("hidden")))

/* Tables are read as words whatever their type. Volatile: each store stays one aligned 32-bit store (the RAM has
 * an error code per word, and a compiler would make a call of memcpy from a plain loop). */
typedef uint32_t mcg_word_t __attribute__((may_alias));

/* One loop of words and one of bytes, called for code and for tables and not inlined: start-up is to be small. */
MCG_NOINLINE static void copy_bytes(void *to, const void *from, uint32_t bytes)
{
    const uint32_t words = MCG_ALIGNED(to, 4u) && MCG_ALIGNED(from, 4u) ? bytes / 4u : 0u;
    for (uint32_t i = 0u; i != words; i++) {
        ((volatile mcg_word_t *)to)[i] = ((const mcg_word_t *)from)[i];
    }
    /* The tail of a table whose size is no multiple of 4, and tables that are not aligned: the words around these
     * bytes have been zeroed, by the loop below or as part of .bss, so their error codes are valid. */
    for (uint32_t i = 4u * words; i != bytes; i++) {
        ((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    }
}

static void fence(void)
{
#if defined(__arm__)
    __asm volatile("dsb 0xF\n\tisb 0xF" ::: "memory");
#else
    __asm volatile("" ::: "memory");
#endif
}

/* Set by the linker: both ends of the section that MCG_TABLE_COPY fills. */
extern const mcg_table_copy_t __start_mcg_table_copies[] MCG_WEAK_HIDDEN;
extern const mcg_table_copy_t __stop_mcg_table_copies[] MCG_WEAK_HIDDEN;

static void copy_tables(void)
{
    const uintptr_t stop = (uintptr_t)__stop_mcg_table_copies;
    const mcg_table_copy_t *entry = __start_mcg_table_copies;
    for (; (uintptr_t)entry < stop; entry++) {
        copy_bytes(entry->copy, entry->image, entry->bytes);
    }
    fence();
    for (entry = __start_mcg_table_copies; (uintptr_t)entry < stop; entry++) {
        *entry->active = entry->copy;
    }
}

/* A host has no fragment. Its absent weak symbols would need a dynamic relocation each, so it does not ask. */
#if !defined(__unix__)

/* Set by the fragment, all absent without it. Slots are the writable memories of the board, in its order. */
#define MCG_ZERO_SLOTS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

#define MCG_DECLARE(n)                                \
    extern uint32_t __mcg_zero##n##_start[] MCG_WEAK; \
    extern uint32_t __mcg_zero##n##_end[] MCG_WEAK;   \
    extern uint32_t __mcg_zero##n##_clock[] MCG_WEAK; \
    extern uint32_t __mcg_zero##n##_clock_mask[] MCG_WEAK;
MCG_ZERO_SLOTS(MCG_DECLARE)

extern uint32_t __mcg_code_start[] MCG_WEAK;
extern uint32_t __mcg_code_end[] MCG_WEAK;
extern const uint32_t __mcg_code_load[] MCG_WEAK;

typedef struct {
    uint32_t *start;
    uint32_t *end;
    volatile uint32_t *clock; /* register that switches the memory on, or null */
    uint32_t *clock_mask;     /* its address is the value, as the linker sets it */
} mcg_zero_t;

#define MCG_ENTRY(n) {__mcg_zero##n##_start, __mcg_zero##n##_end, __mcg_zero##n##_clock, __mcg_zero##n##_clock_mask},
static const mcg_zero_t zero_slots[] = {MCG_ZERO_SLOTS(MCG_ENTRY)};

static void zero_memories(void)
{
    for (uint32_t i = 0u; i < (uint32_t)(sizeof zero_slots / sizeof zero_slots[0]); i++) {
        const mcg_zero_t *slot = &zero_slots[i];
        if ((uintptr_t)slot->start == (uintptr_t)slot->end) {
            continue;
        }
        if (slot->clock != NULL) {
            *slot->clock |= (uint32_t)(uintptr_t)slot->clock_mask;
            (void)*slot->clock; /* reading it back waits until the clock runs */
            fence();
        }
        for (volatile uint32_t *word = slot->start; (uintptr_t)word < (uintptr_t)slot->end; word++) {
            *word = 0u;
        }
    }
}

/* The fragment looks whether this is linked. If it is not, nobody calls mcg_sections_init, and code that is to run from
 * RAM would never get there: a link error then. Never read or written. */
static uint32_t called MCG_SECTION(".bss.mcugen.called");

static void copy_code(void)
{
    __asm volatile("" ::"r"(&called));
    const uint32_t bytes = (uint32_t)((uintptr_t)__mcg_code_end - (uintptr_t)__mcg_code_start);
    copy_bytes(__mcg_code_start, __mcg_code_load, bytes);
}

#else

static void zero_memories(void) {}

static void copy_code(void) {}

#endif

void mcg_sections_init(void)
{
    /* A second call must not zero memories that are in use. */
    static uint32_t done;
    if (done != 0u) {
        return;
    }
    zero_memories();
    copy_code();
    copy_tables();
    fence();
    done = 1u;
}

#else

/* Without ELF sections there are no lists to walk: tables are read where they are. */
void mcg_sections_init(void) {}

#endif
