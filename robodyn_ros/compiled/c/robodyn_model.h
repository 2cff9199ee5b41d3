/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arm's model as a shared library, as `robodyn export --shared` writes it; plain C and C++.
 *
 * The library has one symbol, robodyn_model_v5, whose name holds the version of all that follows:
 * one of another version has none of this name. SI units; arrays in chain order, base to tip, of a
 * tree depth first; matrices row by row; M(q) qdd + C(q, qd) qd + g(q) = tau. No function allocates, waits or keeps
 * anything, so that threads may share a model. A result may be written over an argument.
 */
#ifndef ROBODYN_MODEL_H
#define ROBODYN_MODEL_H

#include <math.h>
#include <stddef.h>

#define ROBODYN_MODEL_ABI 5
#define ROBODYN_MODEL_SYMBOL "robodyn_model_v5"
#define ROBODYN_STRONGEST_GRAVITY 50.0 /* m/s^2; more is a mistake of units */

#ifdef __cplusplus
extern "C" {
#endif

/* What a tip link carries, in its frame. No mass: nothing. */
typedef struct
{
  double mass;              /* kg */
  double center_of_mass[3]; /* m */
  double inertia[6];        /* kg m2, about the centre of mass: xx xy xz yy yz zz */
  int tip;                  /* of tip_links */
} robodyn_payload;

/* Why a load is refused. No element: it is not; no unit: it is no number that has a limit. */
typedef struct
{
  const char *element, *unit;
  double value, limit;
  const char * allowed; /* in place of the limit, or what is to be said after it */
} robodyn_refusal;

typedef struct
{
  int abi;    /* ROBODYN_MODEL_ABI */
  int joints; /* n */
  /* Drives that turn with several joints, and their velocity for a unit velocity of each joint, row
     * by row. */
  int coupled_drives;
  const double * coupling;
  /* Number of doubles of a load: mass, first moments and inertia of a payload, and gravity, as the
     * functions below take them. */
  int load_size;
  const char * generator;
  /* UTF-8 */
  const char * const * joint_names;
  /* Joints of the robot that move nothing of the model: a trajectory may name them. */
  int unmodelled;
  const char * const * unmodelled_joints;
  const char * base_link;
  int tips; /* one of a chain, several of a tree */
  const char * const * tip_links;
  int tip; /* the one that is meant where none is named: whoever loads the library may choose */
  /* SHA-256 of the kinematics, as an identified model has it. */
  const char * kinematics;
  const unsigned char * is_prismatic;
  /* Infinite where the description has none; positions: lower and upper of each joint. */
  const double *position_limits, *velocity_limits, *effort_limits;
  /* Lower and upper of each joint, too: a position beyond is in another unit. */
  const double * possible_positions;
  const double * gravity; /* of the export, in the base link's axes; three */
  /* Farthest that a tip link's origin can be from the base link's [m]; infinite: not known. */
  double reach;

  /* Write the load of a payload, NULL: none, and a gravity, NULL: that of the export; nothing
     * where it is refused. */
  robodyn_refusal (*make_load)(
    const robodyn_payload * payload, const double * gravity, double * load);
  /* Of rows times n numbers each. */
  void (*inverse_dynamics)(
    const double * load, int rows, const double * q, const double * qd, const double * qdd,
    double * tau);
  void (*gravity_torque)(const double * load, const double * q, double * tau);
  void (*mass_matrix)(const double * load, const double * q, double * mass);
  /* The torque that overcomes friction, for a direction of motion, -1 to 1, of each joint, then of
     * each coupled drive. */
  void (*friction_torque)(
    const double * qd, const double * direction, const double * rigid_torque, double * tau);
  /* A tip link's pose (4, 4) in the base link's frame. */
  void (*forward_kinematics)(int tip, const double * q, double * pose);
  /* Its Jacobian (6, n), linear rows first, in base link axes. */
  void (*jacobian)(int tip, const double * q, double * jacobian);
  /* Return the number of results that differ from those of the export. */
  int (*self_test)(void);
} robodyn_model;

const robodyn_model * robodyn_model_v5(void);

/* Write the principal moments of an inertia, xx xy xz yy yz zz, the smallest first; numbers that
 * are not finite give moments that are not. By Jacobi rotations, to rounding error. */
static inline void robodyn_principal_moments(const double inertia[6], double moments[3])
{
  double a[3][3] = {
    {inertia[0], inertia[1], inertia[2]},
    {inertia[1], inertia[3], inertia[4]},
    {inertia[2], inertia[4], inertia[5]}};
  for (int rotation = 0; rotation < 30; rotation++) {
    const int r = rotation % 3, p = r == 0 ? 1 : 0, q = r == 2 ? 1 : 2;
    if (a[p][q] == 0.0) continue;
    const double ratio = 0.5 * (a[q][q] - a[p][p]) / a[p][q];
    const double t = (ratio < 0.0 ? -1.0 : 1.0) / (fabs(ratio) + sqrt(ratio * ratio + 1.0));
    const double c = 1.0 / sqrt(t * t + 1.0), s = t * c, rp = a[r][p], rq = a[r][q];
    a[p][p] -= t * a[p][q];
    a[q][q] += t * a[p][q];
    a[p][q] = a[q][p] = 0.0;
    a[r][p] = a[p][r] = c * rp - s * rq;
    a[r][q] = a[q][r] = s * rp + c * rq;
  }
  for (int k = 0; k < 3; k++) moments[k] = a[k][k];
  for (int k = 0; k < 3; k++) {
    const int i = k % 2;
    const double first = moments[i];
    if (first > moments[i + 1]) {
      moments[i] = moments[i + 1];
      moments[i + 1] = first;
    }
  }
}

/* Return why a payload or a gravity is refused: not finite, no body, or in other units than these.
 * The same limits as control/load.py, the same bodies as payload.py. */
static inline robodyn_refusal robodyn_check_load(
  const robodyn_payload * payload, const double * gravity, double heaviest, double largest)
{
  const robodyn_refusal none = {NULL, NULL, 0.0, 0.0, ""};
  const robodyn_refusal no_body = {
    "payload", NULL, 0.0, 0.0, "an inertia that a body of this mass has"};
  const double strength = hypot(hypot(gravity[0], gravity[1]), gravity[2]);
  if (isnan(0.0 * gravity[0] + 0.0 * gravity[1] + 0.0 * gravity[2])) {
    const robodyn_refusal refusal = {"gravity", NULL, 0.0, 0.0, "finite numbers"};
    return refusal;
  }
  if (!(strength <= ROBODYN_STRONGEST_GRAVITY)) {
    const robodyn_refusal refusal = {
      "gravity strength", "m/s^2", strength, ROBODYN_STRONGEST_GRAVITY, ""};
    return refusal;
  }
  if (!payload) return none;
  const double *const J = payload->inertia, *const c = payload->center_of_mass;
  const double m = payload->mass, distance = hypot(hypot(c[0], c[1]), c[2]);
  double size = 0.0, zero = 0.0 * m + 0.0 * c[0] + 0.0 * c[1] + 0.0 * c[2], moments[3];
  for (int k = 0; k < 6; k++) {
    zero += 0.0 * J[k];
    size = fmax(size, fabs(J[k]));
  }
  if (isnan(zero)) {
    const robodyn_refusal refusal = {"payload", NULL, 0.0, 0.0, "finite numbers"};
    return refusal;
  }
  if (!(m <= heaviest)) {
    const robodyn_refusal refusal = {"payload mass", "kg", m, heaviest, ""};
    return refusal;
  }
  if (m < 0.0) {
    const robodyn_refusal refusal = {"payload mass", NULL, 0.0, 0.0, "zero or more"};
    return refusal;
  }
  robodyn_principal_moments(J, moments);
  if (m > 0.0 && !(moments[2] <= largest * largest * m)) {
    const robodyn_refusal refusal = {
      "payload radius of gyration", "m", sqrt(moments[2] / m), largest,
      ": inertia is in kg m2, about the centre of mass"};
    return refusal;
  }
  if (m > 0.0 && !(distance <= largest)) {
    const robodyn_refusal refusal = {
      "payload centre of mass, distance from the link", "m", distance, largest, ""};
    return refusal;
  }
  if (
    size > 0.0 && !(m > 0.0 && moments[0] >= -1e-9 * size &&
                    moments[2] <= (moments[0] + moments[1]) * (1.0 + 1e-6) + 1e-12 * size))
    return no_body;
  return none;
}

#ifdef __cplusplus
}
#endif

#endif
