/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arm's model as a shared library, as `robodyn export --shared` writes it; plain C and C++.
 *
 * The library has one symbol, robodyn_model_v1, whose name holds the version of all that follows:
 * one of another version has none of this name. SI units; arrays in chain order, base to tip;
 * matrices row by row; M(q) qdd + C(q, qd) qd + g(q) = tau. No function allocates, waits or keeps
 * anything, so that threads may share a model. A result may be written over an argument.
 */
#ifndef ROBODYN_MODEL_H
#define ROBODYN_MODEL_H

#define ROBODYN_MODEL_ABI 1
#define ROBODYN_MODEL_SYMBOL "robodyn_model_v1"

#ifdef __cplusplus
extern "C" {
#endif

/* What the tip link carries, in its frame. No mass: nothing. */
typedef struct {
    double mass;              /* kg */
    double center_of_mass[3]; /* m */
    double inertia[6];        /* kg m2, about the centre of mass: xx xy xz yy yz zz */
} robodyn_payload;

typedef struct {
    int abi;    /* ROBODYN_MODEL_ABI */
    int joints; /* n */
    /* Doubles of a load: what a payload and a gravity are for the functions below. */
    int load_size;
    const char *generator;
    /* UTF-8 */
    const char *const *joint_names;
    const char *base_link, *tip_link;
    /* SHA-256 of the kinematics, as an identified model has it. */
    const char *kinematics;
    const unsigned char *is_prismatic;
    /* Infinite where the description has none; positions: lower and upper of each joint. */
    const double *position_limits, *velocity_limits, *effort_limits;
    const double *gravity; /* that it was exported with, in the base link's axes; three */
    double mass, reach;    /* of what moves, carrying nothing; lengths of all links together */

    /* Write the load of a payload, NULL: none, and a gravity, NULL: that of the export. Returns 0,
     * or -1 and writes nothing for a number that is not finite or an inertia that no body has. */
    int (*make_load)(const robodyn_payload *payload, const double *gravity, double *load);
    void (*inverse_dynamics)(const double *load, const double *q, const double *qd,
                             const double *qdd, double *tau);
    void (*gravity_torque)(const double *load, const double *q, double *tau);
    void (*mass_matrix)(const double *load, const double *q, double *mass);
    /* What overcomes friction, with tanh(qd / width) for the sign; the width in rad/s or m/s. */
    void (*friction_torque)(double width, const double *qd, const double *rigid_torque,
                            double *tau);
    /* The tip link's pose (4, 4) in the base link's frame. */
    void (*forward_kinematics)(const double *q, double *pose);
    /* Return how many results differ from those that were computed without this code. */
    int (*self_test)(void);
} robodyn_model;

const robodyn_model *robodyn_model_v1(void);

#ifdef __cplusplus
}
#endif

#endif
