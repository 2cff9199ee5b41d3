/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the outside does to an arm, from one sample to the next: momentum observer and detector.
 *
 * Plain C that C++ takes, too. No allocation, nothing that waits; SI units, arrays in chain order.
 * It computes what momentum_observer.py and contact.py compute, which are its reference: what is
 * said there of the mathematics is not repeated here. A sample that needs a closer look, the
 * first, one that is not finite, one with which a contact begins or ends, is left to them.
 */
#ifndef ROBODYN_CONTACT_STEP_H
#define ROBODYN_CONTACT_STEP_H

#include "torque_step.h"

#define ROBODYN_REST_VELOCITY 0.002 /* rad/s or m/s */
#define ROBODYN_STANDSTILL 0.02     /* rad/s or m/s */
#define ROBODYN_REVERSAL_TIME 0.3   /* s */
#define ROBODYN_RELEASE 0.7
#define ROBODYN_ACCUSTOMING_TIME 1.0            /* s */
#define ROBODYN_ACCUSTOMING_TIME_IN_CONTACT 5.0 /* s */
#define ROBODYN_TIME_ROUNDING 1e-6              /* s */

/* Rows of n coefficients: see friction.py. */
enum { ROBODYN_VISCOUS, ROBODYN_COULOMB, ROBODYN_STEEP_CURVE, ROBODYN_FLAT_CURVE, ROBODYN_OFFSET,
       ROBODYN_LOAD, ROBODYN_FRICTION_ROWS };
#define ROBODYN_STEEP_VELOCITY 0.1 /* rad/s or m/s */
#define ROBODYN_FLAT_VELOCITY 0.4  /* rad/s or m/s */

typedef struct {
    int joints, is_held;
    double friction_slope, presliding;
    const double *gain, *friction;
} robodyn_observer;

/* Rows of n numbers of the observer's state, and of the detector's. */
enum { ROBODYN_LAST_VELOCITY, ROBODYN_LAST_TORQUE, ROBODYN_TURNED, ROBODYN_EXTERNAL,
       ROBODYN_OBSERVER_ROWS };
enum { ROBODYN_STOOD, ROBODYN_VELOCITY_BEFORE, ROBODYN_STICTION, ROBODYN_SINCE,
       ROBODYN_DETECTOR_ROWS };

typedef struct {
    int joints, in_contact;
    double dwell;
    const double *moving, *standing;
} robodyn_detector;

static inline double robodyn_friction(const double *coefficients, int n, int i, double velocity,
                                      double direction, double rigid_torque)
{
    const double *const of = coefficients + i;
    double torque = of[ROBODYN_VISCOUS * n] * velocity + of[ROBODYN_COULOMB * n] * direction;
    if (of[ROBODYN_STEEP_CURVE * n] != 0.0)
        torque += of[ROBODYN_STEEP_CURVE * n] * tanh(velocity / ROBODYN_STEEP_VELOCITY);
    if (of[ROBODYN_FLAT_CURVE * n] != 0.0)
        torque += of[ROBODYN_FLAT_CURVE * n] * tanh(velocity / ROBODYN_FLAT_VELOCITY);
    torque += of[ROBODYN_OFFSET * n] * fabs(direction);
    return torque + of[ROBODYN_LOAD * n] * fabs(rigid_torque) * direction;
}

/* Return the state of presliding after a step at a velocity. */
static inline double robodyn_turned(const robodyn_observer *observer, double before,
                                    double velocity, double step)
{
    if (observer->presliding == 0.0) return tanh(observer->friction_slope * velocity);
    const double moved = fabs(velocity) > ROBODYN_REST_VELOCITY ? velocity * step : 0.0;
    if (moved == 0.0) return before;
    const double sign = moved > 0.0 ? 1.0 : -1.0;
    return sign + exp(-fabs(moved) / observer->presliding) * (before - sign);
}

/*
 * Write the observer's next state, a positive step [s] after the last; the workspace is of 4 n
 * doubles. Return 1, 0 where a number is not finite, -1 where the model failed.
 */
static inline int robodyn_observed(const robodyn_observer *observer, const robodyn_arm *arm,
                                   const double *state, double step, const double *q,
                                   const double *qd, const double *torque, double *workspace,
                                   double *next)
{
    const int n = observer->joints;
    double *const middle = workspace, *const half = middle + n, *const change = half + n,
           *const rigid = change + n;
    const double *const last_qd = state + ROBODYN_LAST_VELOCITY * n,
                 *const last_torque = state + ROBODYN_LAST_TORQUE * n;
    for (int i = 0; i < n; i++) {
        half[i] = 0.5 * (qd[i] + last_qd[i]);
        middle[i] = q[i] - 0.5 * step * half[i];
        change[i] = (qd[i] - last_qd[i]) / step;
    }
    if (arm->inverse_dynamics(arm->model, 1, middle, half, change, rigid)) return -1;
    double size = 0.0;
    for (int i = 0; i < n; i++) {
        const double turned = robodyn_turned(observer, state[ROBODYN_TURNED * n + i], half[i], step);
        const double driven =
            observer->is_held ? torque[i] : 0.5 * (torque[i] + last_torque[i]);
        const double external = rigid[i]
            + robodyn_friction(observer->friction, n, i, half[i], turned, rigid[i]) - driven;
        const double before = state[ROBODYN_EXTERNAL * n + i];
        size += external * external;
        next[ROBODYN_LAST_VELOCITY * n + i] = qd[i];
        next[ROBODYN_LAST_TORQUE * n + i] = torque[i];
        next[ROBODYN_TURNED * n + i] = turned;
        next[ROBODYN_EXTERNAL * n + i] =
            before - expm1(-step * observer->gain[i]) * (external - before);
    }
    return isfinite(size) != 0;
}

/*
 * Write the detector's next state, and since when nothing is beyond its threshold; return whether
 * no contact begins or ends. Times do not go back; the last one is -INFINITY where there is none.
 */
static inline int robodyn_undisturbed(const robodyn_detector *detector, const double *state,
                                      double last_time, double time, const double *qd,
                                      const double *external, double *next, double *free_since)
{
    const int n = detector->joints;
    const double slowness = detector->in_contact ? ROBODYN_ACCUSTOMING_TIME_IN_CONTACT
                                                 : ROBODYN_ACCUSTOMING_TIME;
    const double followed = isinf(last_time) ? 0.0 : -expm1((last_time - time) / slowness);
    const double lately = time - ROBODYN_REVERSAL_TIME - ROBODYN_TIME_ROUNDING;
    const double latest = time - detector->dwell + ROBODYN_TIME_ROUNDING;
    int is_contact = 0, is_free = 1;
    for (int i = 0; i < n; i++) {
        const int is_slow = fabs(qd[i]) < ROBODYN_STANDSTILL;
        double stiction = 0.0, change = external[i], stood = state[ROBODYN_STOOD * n + i];
        if (is_slow) {
            stiction = state[ROBODYN_STICTION * n + i];
            change -= stiction;
            stiction += followed * change;
        }
        if (is_slow || qd[i] * state[ROBODYN_VELOCITY_BEFORE * n + i] <= 0.0) stood = time;
        const double threshold =
            stood >= lately ? detector->standing[i] : detector->moving[i];
        const double ratio = fabs(change) / threshold;
        double since = INFINITY;
        if (ratio > 1.0) since = fmin(state[ROBODYN_SINCE * n + i], time);
        is_contact |= since <= latest;
        is_free &= ratio < ROBODYN_RELEASE;
        next[ROBODYN_STOOD * n + i] = stood;
        next[ROBODYN_VELOCITY_BEFORE * n + i] = qd[i];
        next[ROBODYN_STICTION * n + i] = stiction;
        next[ROBODYN_SINCE * n + i] = since;
    }
    if (!detector->in_contact) return !is_contact;
    *free_since = is_free ? fmin(*free_since, time) : INFINITY;
    return !(*free_since <= latest);
}

#endif
