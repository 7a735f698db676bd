/* mcugen runtime: status codes, ABI number, section and numeric macros.
 *
 * Independent of any model: every export of one mcugen version carries the same bytes.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_H
#define MCG_H

#include <stddef.h>
#include <stdint.h>

#include "mcg_placement.h"

/* Raised when generated files and runtime files of different versions must not be mixed, and when results change. */
#define MCG_ABI 3

#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__)
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "mcugen: generated tables are little-endian; this target is not"
#endif
#endif

#ifdef __cplusplus
#define MCG_BEGIN_DECLS extern "C" {
#define MCG_END_DECLS }
#else
#define MCG_BEGIN_DECLS
#define MCG_END_DECLS
#endif

/* 0 is success, negative is an error, positive is "no result yet". */
typedef int32_t mcg_status_t;
#define MCG_OK 0
#define MCG_PENDING 1    /* a stateful model has taken the sample and needs more */
#define MCG_ERR_ARG (-1) /* a pointer is null or misaligned */

#if defined(__GNUC__) || defined(__clang__)
#define MCG_INLINE static inline __attribute__((always_inline))
#define MCG_UNUSED __attribute__((unused))
#define MCG_NOINLINE __attribute__((noinline))
#else
#define MCG_INLINE static inline
#define MCG_UNUSED
#define MCG_NOINLINE
#endif

/* Puts an object or function into a named linker section; only where objects are ELF (a host's Mach-O has other names). */
#if defined(__ELF__)
#define MCG_SECTION(name) __attribute__((section(name)))
#else
#define MCG_SECTION(name)
#endif

/* Before a function of the runtime: it stands in a section of its own, or in the one that mcg_placement.h gives it with
 * #define MCG_AT_name 0, MCG_SECTION("..."). The second argument counts, and such a definition moves it to the front. */
#define MCG_SECOND(first, second, ...) second
#define MCG_CHOICE(...) MCG_SECOND(__VA_ARGS__)
#define MCG_CODE(name) MCG_CHOICE(MCG_AT_##name, MCG_SECTION(".text.mcugen." #name), 0)

/* Which ABI this object file was compiled for: a section without memory, equal strings of which the linker merges.
 * mcugen check-elf finds files of two versions, or of two floating-point ABIs, by it. */
#if defined(__ELF__) && defined(__arm__)
#define MCG_TEXT_OF(x) #x
#define MCG_TEXT(x) MCG_TEXT_OF(x)
#if defined(__ARM_PCS_VFP)
#define MCG_FLOAT_ABI "hard"
#elif defined(__ARM_FP)
#define MCG_FLOAT_ABI "softfp"
#else
#define MCG_FLOAT_ABI "soft"
#endif
__asm__(".pushsection .mcugen.abi,\"MS\",%progbits,1\n"
        ".asciz \"abi " MCG_TEXT(MCG_ABI) " " MCG_FLOAT_ABI "\"\n"
                                          ".popsection");
#endif

/* Keeps a product from being fused into the sum that follows: a * b + c must round twice, as the reference does. GCC
 * fuses by default in gnu modes, whatever the source says; an empty asm that "changes" the product stops it. */
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__SSE2__))
#define MCG_ROUNDED_F32(v) __asm__("" : "+x"(v))
#define MCG_ROUNDED_F64(v) __asm__("" : "+x"(v))
#elif defined(__GNUC__) && defined(__aarch64__)
#define MCG_ROUNDED_F32(v) __asm__("" : "+w"(v))
#define MCG_ROUNDED_F64(v) __asm__("" : "+w"(v))
#elif defined(__GNUC__) && defined(__ARM_FP) && (__ARM_FP & 8)
#define MCG_ROUNDED_F32(v) __asm__("" : "+t"(v))
#define MCG_ROUNDED_F64(v) __asm__("" : "+w"(v))
#elif defined(__GNUC__) && defined(__ARM_FP) && (__ARM_FP & 4)
#define MCG_ROUNDED_F32(v) __asm__("" : "+t"(v))
#define MCG_ROUNDED_F64(v) __asm__("" : "+r"(v))
#elif defined(__GNUC__)
#define MCG_ROUNDED_F32(v) __asm__("" : "+m"(v))
#define MCG_ROUNDED_F64(v) __asm__("" : "+m"(v))
#else
#error "mcugen: this compiler has no MCG_ROUNDED; see mcg.h"
#endif

/* True when a pointer has the natural alignment of an element of the given size (a power of two). */
#define MCG_ALIGNED(pointer, size) ((((uintptr_t)(pointer)) & ((uintptr_t)(size) - 1u)) == 0u)

#endif
