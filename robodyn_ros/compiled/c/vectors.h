/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building blocks of a library's kernels: vectors of samples, sines and cosines, and the struct
 * Kernel.
 */
#ifndef ROBODYN_VECTORS_H
#define ROBODYN_VECTORS_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#if defined(__AVX512F__)
#define LANES 8
#elif defined(__AVX__)
#define LANES 4
#else
#define LANES 2
#endif
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define RARE __attribute__((noinline, cold))

typedef double vec __attribute__((vector_size(8 * LANES)));
typedef long long ivec __attribute__((vector_size(8 * LANES)));

/* ---- sines and cosines of angles ---------------------------------------------------------------
 *
 * The angle less the nearest multiple of pi/2, which stands in three parts of 33 bits each, then
 * the polynomials of fdlibm's k_sin.c and k_cos.c: within 1e-16 up to FARTHEST_ANGLE, beyond which
 * (as with NaN and infinities) the C library takes over. The last bits of the angle's multiple,
 * shifted by ROUND, are its integer.
 */
#define FARTHEST_ANGLE 5e5
#define ROUND 6755399441055744.0 /* 1.5 * 2^52 */
#define SHIFTED(x) ((x) * 0.63661977236758134308 + ROUND)
#define REMAINDER(x, k)                                                       \
  (((x) - (k) * 1.57079632673412561417) - (k) * 6.07710050630396597660e-11) - \
    (k) * 2.02226624879595063154e-21
#define SINE(r, z)                                                   \
  (r) + (r) * (z) *                                                  \
          (-1.66666666666666324348e-01 +                             \
           (z) * (8.33333333332248946124e-03 +                       \
                  (z) * (-1.98412698298579493134e-04 +               \
                         (z) * (2.75573137070700676789e-06 +         \
                                (z) * (-2.50507602534068634195e-08 + \
                                       (z) * 1.58969099521155010221e-10)))))
#define COSINE(z, half, w)                                           \
  (w) + (((1.0 - (w)) - (half)) +                                    \
         (z) * (z) *                                                 \
           (4.16666666666666019037e-02 +                             \
            (z) * (-1.38888888888741095749e-03 +                     \
                   (z) * (2.48015872894767294178e-05 +               \
                          (z) * (-2.75573143513906633035e-07 +       \
                                 (z) * (2.08757232129817482790e-09 + \
                                        (z) * -1.13596475577881948265e-11))))))

RARE static void far_sines_and_cosines(const vec * angle, vec * sine, vec * cosine)
{
  for (int lane = 0; lane < LANES; lane++) {
    (*sine)[lane] = sin((*angle)[lane]);
    (*cosine)[lane] = cos((*angle)[lane]);
  }
}

ALWAYS_INLINE void sines_and_cosines(const vec * angle, vec * sine, vec * cosine)
{
  const vec x = *angle;
  const vec shifted = SHIFTED(x);
  const ivec quarters = (ivec)shifted;
  const vec k = shifted - ROUND;
  const vec r = REMAINDER(x, k);
  const vec z = r * r;
  const vec s = SINE(r, z);
  const vec half = 0.5 * z, w = 1.0 - half;
  const vec c = COSINE(z, half, w);
  const ivec swap = -(quarters & 1);
  const ivec si = (((ivec)s & ~swap) | ((ivec)c & swap)) ^ ((quarters & 2) << 62);
  const ivec co = (((ivec)c & ~swap) | ((ivec)s & swap)) ^ (((quarters + 1) & 2) << 62);
  *sine = (vec)si;
  *cosine = (vec)co;
  const ivec near = (x < FARTHEST_ANGLE) & (x > -FARTHEST_ANGLE);
  long long all = -1;
  for (int lane = 0; lane < LANES; lane++) all &= near[lane];
  if (__builtin_expect(!all, 0)) far_sines_and_cosines(angle, sine, cosine);
}

/* One angle alone, without a wait for others: faster where much is computed with them. */
ALWAYS_INLINE void sine_and_cosine(double x, double * sine, double * cosine)
{
  static const double signs[] = {1.0, 1.0, -1.0, -1.0, 1.0};
  const double shifted = SHIFTED(x), k = shifted - ROUND, r = REMAINDER(x, k), z = r * r;
  const double half = 0.5 * z, w = 1.0 - half;
  const double both[] = {SINE(r, z), COSINE(z, half, w)};
  long long quarters;
  memcpy(&quarters, &shifted, sizeof quarters);
  *sine = both[quarters & 1] * signs[quarters & 3];
  *cosine = both[~quarters & 1] * signs[(quarters & 3) + 1];
  if (__builtin_expect(!(fabs(x) < FARTHEST_ANGLE), 0)) {
    *sine = sin(x);
    *cosine = cos(x);
  }
}

/* ---- a kernel ---------------------------------------------------------------------------*/

#define MAX_INPUTS 4
#define MAX_RESULTS 3
#define MAX_ARGUMENTS (MAX_INPUTS + 2) /* and out, tip_wrench */

typedef struct Result
{
  int dimensions;
  ptrdiff_t shape[3];
  ptrdiff_t size;
} Result;

typedef struct Kernel
{
  const char *name, *signature; /* for Python: arguments and docstring */
  int inputs;
  int required; /* of the inputs; those after them are zero where they are not given */
  const char * names[MAX_INPUTS];
  ptrdiff_t widths[MAX_INPUTS];
  int results; /* returned as they are where there is one, as a tuple where there are more */
  Result result[MAX_RESULTS];
  /* One sample, or many. They return whether the results exist: all pivots are positive. */
  int (*one)(const double * parameters, const double * const * in, double * const * out);
  int (*many)(
    const double * parameters, ptrdiff_t count, const double * const * in, double * const * out);
  const struct Kernel * wrench; /* adds the torque of a tip_wrench, or NULL */
} Kernel;

#endif
